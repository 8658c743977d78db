"""DELIMITED, one line per record, column by column.

| type      | read from                                  | written as                                     |
|-----------|--------------------------------------------|------------------------------------------------|
| BOOLEAN   | true in any case; anything else is false   | true, false                                    |
| INTEGER   | integer in range                           | number                                         |
| BIGINT    | the same                                   | number                                         |
| DOUBLE    | number, NaN, ±Infinity                     | as Java: with an exponent below 0.001 and from |
|           |                                            | ten million on                                 |
| DECIMAL   | number that fits without rounding          | number with all its digits                     |
| STRING    | anything                                   | itself                                         |
| BYTES     | base64                                     | base64                                         |
| DATE      | days since the epoch                       | the same                                       |
| TIME      | milliseconds of the day                    | the same                                       |
| TIMESTAMP | milliseconds since the epoch               | the same                                       |

An empty field is NULL, so the empty STRING is the only value that is not read back as it was written. A field in
double quotes may contain delimiters, line ends and doubled quotes. Lines after the first are ignored. A record cannot
be decoded if its number of fields is not the number of columns, or if a quote is not closed.
"""
