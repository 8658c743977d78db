"""JSON, column by column.

| type      | read from                                                        | written as                     |
|-----------|------------------------------------------------------------------|--------------------------------|
| BOOLEAN   | true, false                                                      | true, false                    |
| INTEGER   | number or numeric text (fraction truncated); in range            | number                         |
| BIGINT    | the same                                                         | number                         |
| DOUBLE    | number or numeric text                                           | number; NaN, ±Infinity as text |
| DECIMAL   | number or numeric text that fits without rounding                | number with all its digits     |
| STRING    | text; a number as it is written; anything else as its JSON text  | text                           |
| BYTES     | base64 text                                                      | base64 text                    |
| DATE      | days since the epoch, as BIGINT                                  | number                         |
| TIME      | milliseconds of the day, as BIGINT                               | number                         |
| TIMESTAMP | milliseconds since the epoch, as BIGINT                          | number                         |
| ARRAY     | array                                                            | array                          |
| MAP       | object; the last of equal keys wins                              | object                         |
| STRUCT    | object                                                           | object with all fields         |

null and a missing name are read as NULL. A record that is `null` has no value. An upper-case column or field name
matches names in any case; any other name, which the statement must have quoted, matches exactly.
"""
