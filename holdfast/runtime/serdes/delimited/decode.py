"""Delimited records to typed columns."""

import re

from holdfast.runtime.serdes.delimited.dialect import check, delimiter
from holdfast.runtime.serdes.scalar_text import decimal_sql, literal, moment_sql
from holdfast.runtime.serdes.side import DecodedSide, DecodeFailure, RecordSide, not_decoded
from holdfast.types import Decimal, Scalar, SqlType


def decode_delimited(side: RecordSide) -> DecodedSide:
    """The decoding of delimited keys or values.

    Each field is matched together with the delimiter before it, so that an empty field matches too. A delimiter is
    prepended for the first field.
    """
    columns, raw, prefix = side.columns, side.raw, side.prefix
    absent = f"{raw} IS NULL"
    if not columns:
        return DecodedSide(absent)
    check(columns, side.info)
    line, quoted, plain = f"{prefix}l", f"{prefix}q", f"{prefix}p"
    separator = delimiter(side.info)
    field = rf"\G{_field(separator)}"
    first_line = rf"\A(?:{_field(separator)})++(?:[\r\n]|\z)"
    text = f"trim(LEADING {literal(chr(13) + chr(10))} FROM CAST({raw} AS STRING))"
    names = [f"{prefix}t{i}" for i in range(len(columns))]
    return DecodedSide(
        absent=absent,
        parsed=(
            (line, f"concat({literal(separator)}, {text})"),
            (quoted, f"regexp_extract_all(concat({literal(separator)}, {text}), {literal(field)}, 1)"),
            (plain, f"regexp_extract_all(concat({literal(separator)}, {text}), {literal(field)}, 2)"),
        ),
        texts=tuple((name, _text(f"{quoted}[{i}]", f"{plain}[{i}]")) for i, name in enumerate(names)),
        typed=tuple(_typed(name, column.type) for name, column in zip(names, columns, strict=True)),
        failed=(
            DecodeFailure(f"length({line}) = 1", literal(f"the {raw} is empty")),
            DecodeFailure(f"NOT {line} RLIKE {literal(first_line)}", literal(f"the {raw} has a misplaced quote")),
            DecodeFailure(f"size({plain}) <> {len(columns)}", _reason(raw, plain, len(columns))),
            DecodeFailure(f"NOT is_valid_utf8(CAST({raw} AS STRING))", literal(f"the {raw} is not UTF-8")),
            *not_decoded(names, side),
        ),
    )


def _reason(raw: str, fields: str, columns: int) -> str:
    """The reason for too few or too many fields."""
    suffix = literal(f" fields for {columns} column{'s' if columns > 1 else ''}")
    return f"concat({literal(f'the {raw} has ')}, size({fields}), {suffix})"


def _field(separator: str) -> str:
    """A delimiter and the field after it: in quotes (group 1), or up to the next delimiter (group 2)."""
    escaped = re.escape(separator)
    end = rf"(?=[{escaped}\r\n]|\z)"
    quoted = rf"\"((?:[^\"]++|\"\")*+)\"[\s&&[^{escaped}\r\n]]*+{end}"
    plain = rf"([^\"{escaped}\r\n][^{escaped}\r\n]*+|){end}"
    return rf"[{escaped}](?:{quoted}|{plain})"


def _text(quoted: str, plain: str) -> str:
    """The content of a field, NULL when it is empty. One of the two groups is always empty."""
    return f"nullif(concat(replace({quoted}, '\"\"', '\"'), {plain}), '')"


def _typed(text: str, type_: SqlType) -> str:
    match type_:
        case Scalar.BOOLEAN:
            return f"lower({text}) = 'true'"
        case Scalar.INTEGER:
            return _integer(text, "INT")
        case Scalar.BIGINT:
            return _integer(text, "BIGINT")
        case Scalar.DOUBLE:
            return f"CAST({text} AS DOUBLE)"
        case Scalar.BYTES:
            return f"try_to_binary({text}, 'base64')"
        case Scalar.DATE | Scalar.TIME | Scalar.TIMESTAMP:
            return moment_sql(_integer(text, "BIGINT"), type_)
        case Decimal():
            return decimal_sql(text, type_)
        case _:
            return text


def _integer(text: str, spark: str) -> str:
    return f"IF({text} RLIKE {literal('^[-+]?[0-9]+$')}, CAST({text} AS {spark}), NULL)"
