"""DELIMITED, one line per record, column by column.

| type      | read from                                  | written as                                     |
|-----------|--------------------------------------------|------------------------------------------------|
| BOOLEAN   | true in any case; anything else is false   | true, false                                    |
| INTEGER   | whole number in range                      | number                                         |
| BIGINT    | the same                                   | number                                         |
| DOUBLE    | number, NaN, ±Infinity                     | as Java: with an exponent below 0.001 and from |
|           |                                            | ten million on                                 |
| DECIMAL   | number that fits without rounding          | number with all its digits                     |
| STRING    | anything                                   | itself                                         |
| BYTES     | base64                                     | base64                                         |
| DATE      | days since the epoch                       | the same                                       |
| TIME      | milliseconds of the day                    | the same                                       |
| TIMESTAMP | milliseconds since the epoch               | the same                                       |

Nothing between two delimiters is NULL; so an empty STRING, and only it, does not come back as it was. A field in
double quotes may have delimiters and line ends in it, and quotes doubled. Lines after the first are not looked at. A
record with another number of fields than columns cannot be decoded, nor one with a quote that is not closed.
"""
