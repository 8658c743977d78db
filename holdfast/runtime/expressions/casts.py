"""Casts in both dialects, with Java's semantics: integers wrap, fractions are truncated, a string that is not a
number is NULL. A cast that DuckDB cannot do exactly as Spark does is `NotRenderable` there."""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone

from holdfast.errors import Feature, NotYetSupported
from holdfast.runtime.expressions.coercion import as_decimal
from holdfast.runtime.expressions.java import trimmed, wrap32, wrap64
from holdfast.runtime.expressions.physical import Dialect, NotRenderable, field_name, physical_type, string_literal
from holdfast.types import Array, Decimal, Map, Scalar, SqlType, Struct, is_number


def refusal(source: SqlType, target: SqlType, dialect: Dialect) -> Exception:
    """DuckDB leaves the cast to Spark; a cast that Spark does not support either is an error for the user."""
    if dialect is Dialect.DUCKDB:
        return NotRenderable(f"{source} to {target}")
    message = f"casts from {source} to {target} are not supported yet"
    return NotYetSupported(Feature.EXPRESSION, f"CAST of {source} to {target}", message)


_INTEGER_TEXT = "[+-]?[0-9]+"
_NUMBER_TEXT = "[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?"
_DOUBLE_TEXT = f"{_NUMBER_TEXT}|[+-]?(NaN|Infinity)"
_TRUE_TEXTS = "('t', 'tr', 'tru', 'true', 'y', 'ye', 'yes')"

# Up to this many digits, a DOUBLE is exact enough for both engines to round a DECIMAL in the same way.
_EXACT_DIGITS = 15
_EXACT_SCALE = 22
# java.math.BigDecimal prints smaller numbers with an exponent.
_PLAIN_SCALE = 6


def cast(text: str, source: SqlType, target: SqlType, dialect: Dialect) -> str:
    """The text of `CAST(text AS target)`."""
    if source == target:
        return text
    if is_number(source) and is_number(target):
        return _number(text, source, target, dialect)
    if target is Scalar.STRING:
        return _to_string(text, source, dialect)
    if source is Scalar.STRING:
        return _from_string(text, target, dialect)
    match source, target:
        case (Scalar.DATE, Scalar.TIMESTAMP) | (Scalar.TIMESTAMP, Scalar.DATE):
            return f"CAST({text} AS {physical_type(target, dialect)})"
        case Scalar.TIMESTAMP, Scalar.TIME:
            millis = (
                f"CAST(extract(SECOND FROM {text}) * 1000 AS INT)"
                if dialect is Dialect.SPARK
                else f"millisecond({text})"
            )
            return (
                f"CAST(hour({text}) * 3600000 + minute({text}) * 60000 + {millis} AS {physical_type(target, dialect)})"
            )
        case Array(a), Array(b):
            return transform(text, lambda item: cast(item, a, b, dialect), dialect)
        case Map(), Map():
            return _map(text, source, target, dialect)
        case Struct(), Struct():
            return _struct(text, source, target, dialect)
    raise refusal(source, target, dialect)


def transform(text: str, each: Callable[[str], str], dialect: Dialect) -> str:
    """A list with `each` applied to its items; the parameter's name depends on the depth, so that lambdas nest."""
    name = f"x{len(text)}"
    if dialect is Dialect.SPARK:
        return f"transform({text}, {name} -> {each(name)})"
    return f"list_transform({text}, lambda {name}: {each(name)})"


def _number(text: str, source: SqlType, target: SqlType, dialect: Dialect) -> str:
    type_ = physical_type(target, dialect)
    plain = f"CAST({text} AS {type_})"
    if dialect is Dialect.SPARK:
        return plain
    match source, target:
        case Scalar.INTEGER, Scalar.BIGINT | Scalar.DOUBLE:
            return plain
        case Scalar.BIGINT, Scalar.DOUBLE:
            return plain
        case Scalar.BIGINT, Scalar.INTEGER:
            return wrap32(f"({text} & 4294967295)")
        case Scalar.DOUBLE, Scalar.INTEGER:
            return _clamped(text, "INTEGER", -(2**31), 2**31 - 1)
        case Scalar.DOUBLE, Scalar.BIGINT:
            return _clamped(text, "BIGINT", -(2**63), 2**63 - 1)
        case Decimal(precision, scale), Scalar.DOUBLE:
            if precision > _EXACT_DIGITS or scale > _EXACT_SCALE:
                raise NotRenderable(f"{source} to DOUBLE")
            return plain
        case Decimal(), Scalar.INTEGER:
            integer = f"CAST(trunc({text}) AS HUGEINT)"
            return wrap32(f"CAST({integer} & 4294967295::HUGEINT AS BIGINT)")
        case Decimal(), Scalar.BIGINT:
            return wrap64(f"CAST(trunc({text}) AS HUGEINT)")
        case Scalar.DOUBLE, Decimal():
            raise NotRenderable(f"DOUBLE to {target}")
    assert isinstance(target, Decimal), (source, target)
    lossless = as_decimal(source)
    wide = target.precision - target.scale >= lossless.precision - lossless.scale and target.scale >= lossless.scale
    return plain if wide else f"TRY_CAST({text} AS {type_})"


def _clamped(text: str, type_: str, least: int, greatest: int) -> str:
    return (
        f"CASE WHEN isnan({text}) THEN 0 WHEN {text} >= {greatest} THEN {greatest} WHEN {text} <= {least} THEN {least}"
        f" ELSE CAST(trunc({text}) AS {type_}) END"
    )


def _to_string(text: str, source: SqlType, dialect: Dialect) -> str:
    spark = dialect is Dialect.SPARK
    match source:
        case Scalar.BOOLEAN | Scalar.INTEGER | Scalar.BIGINT | Scalar.DATE:
            return f"CAST({text} AS {physical_type(Scalar.STRING, dialect)})"
        case Decimal(precision, scale):
            if not spark or scale <= _PLAIN_SCALE:
                return f"CAST({text} AS {physical_type(Scalar.STRING, dialect)})"
            picture = f"{'9' * (precision - scale)}0.{'0' * scale}"[-39:]
            return f"concat(CASE WHEN {text} < 0 THEN '-' ELSE '' END, trim(to_char(abs({text}), '{picture}')))"
        case Scalar.TIMESTAMP:
            if spark:
                return f"date_format({text}, \"yyyy-MM-dd'T'HH:mm:ss.SSS\")"
            return f"strftime({text}, '%Y-%m-%dT%H:%M:%S.%g')"
        case Scalar.TIME:
            return _time_text(text, dialect)
        case Scalar.DOUBLE:
            if spark:
                return f"CAST({text} AS STRING)"
        case Array(element):
            if spark and element in (Scalar.BOOLEAN, Scalar.INTEGER, Scalar.BIGINT, Scalar.DOUBLE, Scalar.STRING):
                return f"CAST({text} AS STRING)"
    raise refusal(source, Scalar.STRING, dialect)


def _time_text(text: str, dialect: Dialect) -> str:
    """Like Java's LocalTime: seconds and milliseconds only if they are not zero."""
    divide, string = ("div", "STRING") if dialect is Dialect.SPARK else ("//", "VARCHAR")

    def digits(number: str, count: int) -> str:
        return f"lpad(CAST({number} AS {string}), {count}, '0')"

    minutes = f"concat({digits(f'{text} {divide} 3600000', 2)}, ':', {digits(f'({text} {divide} 60000) % 60', 2)})"
    seconds = f"concat({minutes}, ':', {digits(f'({text} {divide} 1000) % 60', 2)})"
    millis = f"concat({seconds}, '.', {digits(f'{text} % 1000', 3)})"
    return (
        f"CASE WHEN {text} IS NULL THEN NULL WHEN {text} % 1000 <> 0 THEN {millis}"
        f" WHEN {text} % 60000 <> 0 THEN {seconds} ELSE {minutes} END"
    )


def _from_string(text: str, target: SqlType, dialect: Dialect) -> str:
    spark = dialect is Dialect.SPARK
    bare = trimmed(text, dialect)
    type_ = physical_type(target, dialect)
    match target:
        case Scalar.BOOLEAN:
            return f"(lower({bare}) IN {_TRUE_TEXTS})"
        case Scalar.INTEGER | Scalar.BIGINT:
            pattern = _INTEGER_TEXT
        case Scalar.DOUBLE:
            pattern = _DOUBLE_TEXT
        case Decimal():
            pattern = _NUMBER_TEXT
        case Scalar.TIMESTAMP if spark:
            return f"CAST(CAST({text} AS TIMESTAMP) AS TIMESTAMP_NTZ)"
        case Scalar.DATE if spark:
            return f"CAST({text} AS DATE)"
        case Scalar.TIME if spark:
            moment = f"CAST(concat('1970-01-01T', {text}) AS TIMESTAMP)"
            return f"CAST(unix_millis({moment}) AS INT)"
        case _:
            raise refusal(Scalar.STRING, target, dialect)
    matches = (
        f"{bare} RLIKE {string_literal(f'{chr(92)}A({pattern}){chr(92)}z', dialect)}"
        if spark
        else f"regexp_full_match({bare}, '{pattern}')"
    )
    return f"CASE WHEN {matches} THEN TRY_CAST({bare} AS {type_}) END"


def _map(text: str, source: Map, target: Map, dialect: Dialect) -> str:
    if dialect is Dialect.DUCKDB:
        raise refusal(source, target, dialect)
    result = text
    if source.key != target.key:
        result = f"transform_keys({result}, (k, v) -> {cast('k', source.key, target.key, dialect)})"
    if source.value != target.value:
        name = f"v{len(text)}"
        result = f"transform_values({result}, (k, {name}) -> {cast(name, source.value, target.value, dialect)})"
    return result


def _struct(text: str, source: Struct, target: Struct, dialect: Dialect) -> str:
    """Fields are matched by name, as in ksqlDB; fields that the source does not have are NULL."""
    positions = {field.name: (index, field.type) for index, field in enumerate(source.fields)}
    parts = []
    for index, field in enumerate(target.fields):
        if field.name in positions:
            position, type_ = positions[field.name]
            value = cast(f"({text}).{field_name(position)}", type_, field.type, dialect)
        else:
            value = f"CAST(NULL AS {physical_type(field.type, dialect)})"
        parts.append((field_name(index), value))
    return f"CASE WHEN {text} IS NOT NULL THEN {struct(parts, dialect)} END"


def struct(parts: list[tuple[str, str]], dialect: Dialect) -> str:
    parts = parts or [(field_name(0), "CAST(NULL AS BOOLEAN)")]
    if dialect is Dialect.SPARK:
        return f"named_struct({', '.join(f'{chr(39)}{name}{chr(39)}, {value}' for name, value in parts)})"
    return f"struct_pack({', '.join(f'{name} := {value}' for name, value in parts)})"


def moment_literal(text: str, target: SqlType, dialect: Dialect) -> str | None:
    """A string constant as a TIME, DATE or TIMESTAMP literal; None if it is not one."""
    try:
        match target:
            case Scalar.TIME:
                at = time.fromisoformat(text)
                return str(((at.hour * 60 + at.minute) * 60 + at.second) * 1000 + at.microsecond // 1000)
            case Scalar.DATE:
                return f"DATE '{date.fromisoformat(text).isoformat()}'"
            case Scalar.TIMESTAMP:
                return _timestamp_literal(text, dialect)
    except ValueError:
        pass
    return None


def _timestamp_literal(text: str, dialect: Dialect) -> str:
    suffix = {4: "-01-01", 7: "-01"}.get(len(text), "")
    moment = datetime.fromisoformat(text + suffix)
    if moment.tzinfo is not None:
        moment = moment.astimezone(timezone(timedelta(0))).replace(tzinfo=None)
    keyword = "TIMESTAMP_NTZ" if dialect is Dialect.SPARK else "TIMESTAMP"
    return f"{keyword} '{moment.isoformat(' ', 'milliseconds')}'"
