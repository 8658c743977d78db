"""Delimited records to typed columns."""

import re
from collections.abc import Sequence

from holdfast.runtime.plan.formats import FormatInfo
from holdfast.runtime.serdes.delimited.dialect import check, delimiter
from holdfast.runtime.serdes.side import Failure, Side, not_decoded
from holdfast.runtime.serdes.texts import decimal_sql, literal, moment_sql
from holdfast.types import Column, Decimal, Scalar, SqlType


def side(columns: Sequence[Column], raw: str, info: FormatInfo, *, prefix: str) -> Side:
    """The decoding of delimited keys or values.

    Each field is looked for with the delimiter before it, so that an empty one is a match too; the first gets one.
    """
    absent = f"{raw} IS NULL"
    if not columns:
        return Side(absent)
    check(columns, info)
    line, quoted, plain = f"{prefix}l", f"{prefix}q", f"{prefix}p"
    own = delimiter(info)
    field = rf"\G{_field(own)}"
    whole = rf"\A(?:{_field(own)})++(?:[\r\n]|\z)"
    text = f"trim(LEADING {literal(chr(13) + chr(10))} FROM CAST({raw} AS STRING))"
    names = [f"{prefix}t{i}" for i in range(len(columns))]
    return Side(
        absent=absent,
        parsed=(
            (line, f"concat({literal(own)}, {text})"),
            (quoted, f"regexp_extract_all(concat({literal(own)}, {text}), {literal(field)}, 1)"),
            (plain, f"regexp_extract_all(concat({literal(own)}, {text}), {literal(field)}, 2)"),
        ),
        texts=tuple((name, _text(f"{quoted}[{i}]", f"{plain}[{i}]")) for i, name in enumerate(names)),
        typed=tuple(_typed(name, column.type) for name, column in zip(names, columns, strict=True)),
        failed=(
            Failure(f"length({line}) = 1", literal(f"the {raw} is empty")),
            Failure(f"NOT {line} RLIKE {literal(whole)}", literal(f"the {raw} has a quote out of place")),
            Failure(f"size({plain}) <> {len(columns)}", _why(raw, plain, len(columns))),
            Failure(f"NOT is_valid_utf8(CAST({raw} AS STRING))", literal(f"the {raw} is not UTF-8")),
            *not_decoded(names, columns, prefix),
        ),
    )


def _why(raw: str, fields: str, columns: int) -> str:
    """That there are too few or too many fields."""
    than = literal(f" fields for {columns} column{'s' if columns > 1 else ''}")
    return f"concat({literal(f'the {raw} has ')}, size({fields}), {than})"


def _field(own: str) -> str:
    """A field with its delimiter: in quotes (1), or anything else up to the next one (2)."""
    mark = re.escape(own)
    end = rf"(?=[{mark}\r\n]|\z)"
    quoted = rf"\"((?:[^\"]++|\"\")*+)\"[\s&&[^{mark}\r\n]]*+{end}"
    plain = rf"([^\"{mark}\r\n][^{mark}\r\n]*+|){end}"
    return rf"[{mark}](?:{quoted}|{plain})"


def _text(quoted: str, plain: str) -> str:
    """The content of a field, NULL when it is empty; at most one of both is not."""
    return f"nullif(concat(replace({quoted}, '\"\"', '\"'), {plain}), '')"


def _typed(text: str, type_: SqlType) -> str:
    match type_:
        case Scalar.BOOLEAN:
            return f"lower({text}) = 'true'"
        case Scalar.INTEGER:
            return _whole(text, "INT")
        case Scalar.BIGINT:
            return _whole(text, "BIGINT")
        case Scalar.DOUBLE:
            return f"CAST({text} AS DOUBLE)"
        case Scalar.BYTES:
            return f"try_to_binary({text}, 'base64')"
        case Scalar.DATE | Scalar.TIME | Scalar.TIMESTAMP:
            return moment_sql(_whole(text, "BIGINT"), type_)
        case Decimal():
            return decimal_sql(text, type_)
        case _:
            return text


def _whole(text: str, spark: str) -> str:
    return f"IF({text} RLIKE {literal('^[-+]?[0-9]+$')}, CAST({text} AS {spark}), NULL)"
