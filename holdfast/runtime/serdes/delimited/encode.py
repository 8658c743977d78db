"""Rows to delimited lines, as SQL of the store's engine."""

import re

from holdfast.runtime.expressions.physical import Dialect, string_literal
from holdfast.runtime.serdes.delimited.dialect import delimiter
from holdfast.runtime.serdes.side import RecordSide
from holdfast.types import Scalar, SqlType


def delimited_sql(side: RecordSide) -> str:
    """A field is quoted where a reader could misread it; the rules for the first field are stricter."""
    columns, separator = side.columns, delimiter(side.info)
    # An empty line would not be a record.
    null = "''" if len(columns) > 1 else "'\"\"'"
    inside = rf'[\r\n"{re.escape(separator)}]|[\x00-\x20]\z'
    fields = []
    for position, (column, name) in enumerate(zip(columns, side.physical, strict=True)):
        start = r"\A[^0-9A-Za-z]|\A\z" if position == 0 else r"\A[\x00-\x23]"
        fields.append(_field(_text(name, column.type), f"{start}|{inside}", null))
    return f" || {string_literal(separator, Dialect.DUCKDB)} || ".join(fields)


def _field(text: str, quoted: str, null: str) -> str:
    pattern = string_literal(quoted, Dialect.DUCKDB)
    inside = f"'\"' || replace({text}, '\"', '\"\"') || '\"'"
    return f"CASE WHEN {text} IS NULL THEN {null} WHEN regexp_matches({text}, {pattern}) THEN {inside} ELSE {text} END"


def _text(value: str, type_: SqlType) -> str:
    match type_:
        case Scalar.STRING:
            return value
        case Scalar.DOUBLE:
            return _java_text(value)
        case Scalar.BYTES:
            return f"to_base64({value})"
        case Scalar.DATE:
            return f"CAST({value} - DATE '1970-01-01' AS VARCHAR)"
        case Scalar.TIMESTAMP:
            return f"CAST(epoch_ms({value}) AS VARCHAR)"
        case _:
            return f"CAST({value} AS VARCHAR)"


def _java_text(value: str) -> str:
    """A DOUBLE as Java writes it: with an exponent below 0.001 and from ten million on."""
    text = f"CAST({value} AS VARCHAR)"
    size = f"abs({value})"
    sign = f"CASE WHEN {value} < 0 THEN '-' ELSE '' END"
    mantissa = f"regexp_extract({text}, '([0-9]+)[.]?([0-9]*)(?:e([-+][0-9]+))?', ['whole', 'fraction', 'power'])"
    # The digits without leading zeros, and the exponent from the number of digits before the point.
    scientific = (
        f"list_transform([{mantissa}], lambda m: list_transform([ltrim(m.whole || m.fraction, '0')], lambda d: "
        f"d[1] || '.' || coalesce(nullif(rtrim(d[2:], '0'), ''), '0') || 'E' || CAST("
        f"length(d) - length(m.fraction) - 1 + coalesce(TRY_CAST(m.power AS INTEGER), 0) AS VARCHAR))[1])[1]"
    )
    # One digit is enough to identify these numbers, but Java writes the nearest two-digit number.
    smallest = f"WHEN {size} = 5e-324 THEN {sign} || '4.9E-324' WHEN {size} = 1e-323 THEN {sign} || '9.9E-324'"
    return (
        f"CASE {smallest} WHEN isnan({value}) THEN 'NaN' WHEN isinf({value}) THEN {sign} || 'Infinity' "
        f"WHEN {value} = 0 OR ({size} >= 0.001 AND {size} < 10000000) THEN {text} ELSE {sign} || {scientific} END"
    )
