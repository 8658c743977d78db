"""JSON, column by column.

| type      | read from                                                        | written as                     |
|-----------|------------------------------------------------------------------|--------------------------------|
| BOOLEAN   | true, false                                                      | true, false                    |
| INTEGER   | number (fraction cut off), text of one; in range                 | number                         |
| BIGINT    | the same                                                         | number                         |
| DOUBLE    | number, text of one                                              | number; NaN, ±Infinity as text |
| DECIMAL   | number, text of one, that fits without rounding                  | number with all its digits     |
| STRING    | text; a number as it is written; anything else as its JSON text  | text                           |
| BYTES     | base64 text                                                      | base64 text                    |
| DATE      | days since the epoch, as BIGINT                                  | number                         |
| TIME      | milliseconds of the day, as BIGINT                               | number                         |
| TIMESTAMP | milliseconds since the epoch, as BIGINT                          | number                         |
| ARRAY     | array                                                            | array                          |
| MAP       | object; the last of equal keys counts                            | object                         |
| STRUCT    | object                                                           | object with all fields         |

null and a missing name read as NULL. A record that is `null` is one without a value. The name of a column or field
in upper case is found in every spelling; one that has been quoted, only as it is.
"""
