"""JSON, column by column.

| type      | read from                                        | written as                       |
|-----------|--------------------------------------------------|----------------------------------|
| BOOLEAN   | true, false (also as text)                       | true, false                      |
| INTEGER   | number (fraction cut off), text of one; in range | number                           |
| BIGINT    | the same                                         | number                           |
| DOUBLE    | number, text of one                              | number; NaN, ±Infinity as text   |
| DECIMAL   | number, text of one; rounded to the scale        | number with all its digits       |
| STRING    | text; anything else as its JSON text             | text                             |
| BYTES     | base64 text                                      | base64 text                      |
| DATE      | days since the epoch                             | the same                         |
| TIME      | milliseconds of the day                          | the same                         |
| TIMESTAMP | milliseconds since the epoch                     | the same                         |

null and a missing name read as NULL. Names are matched without regard to case: every spelling of a name that a
topic uses is a field of the parsed struct, because Spark matches exactly.
"""

from collections.abc import Iterable, Sequence
from json import dumps

from holdfast.errors import Feature, NotYetSupported
from holdfast.runtime.expressions.physical import Dialect, string_literal
from holdfast.types import Column, Decimal, Scalar, SqlType

CORRUPT = "__holdfast_corrupt__"
UNWRAPPED = "v"
DATES = (-2_147_483_646, 2_147_483_646)
TIMESTAMPS = (-9_223_372_022_400_000, 9_223_372_036_854_774)
"""What the store can hold; the next ones are its infinities."""
OPTIONS = f"map('columnNameOfCorruptRecord', '{CORRUPT}', 'allowSingleQuotes', 'false')"


def spellings(columns: Sequence[str], seen: frozenset[str]) -> list[list[str]]:
    """For each column the names that mean it: its own first, then the other spellings seen and lower case."""
    own = set(columns)
    found = []
    taken: set[str] = set()
    for column in columns:
        others = sorted({s for s in (*seen, column.lower()) if s.lower() == column.lower()} - own - taken)
        taken.update(others)
        found.append([column, *others])
    return found


def parse_sql(raw: str, spelled: Sequence[Sequence[str]], columns: Sequence[Column], *, unwrapped: bool) -> str:
    """The struct of texts of a record; a leaf is read as text and typed later.

    Decimals are typed at once: the text that Spark gives of a number with a point has gone through a double.
    """
    text = f"CAST({raw} AS STRING)"
    if unwrapped:
        text = f"concat('{{\"{UNWRAPPED}\":', {text}, '}}')"
    fields = [
        f"{_quoted(name)} {_leaf(column.type)}"
        for names, column in zip(spelled, columns, strict=True)
        for name in names
    ]
    schema = ", ".join([*fields, f"{_quoted(CORRUPT)} STRING"])
    return f"from_json({text}, {string_literal(schema, Dialect.SPARK)}, {OPTIONS})"


def _leaf(type_: SqlType) -> str:
    return f"DECIMAL({type_.precision},{type_.scale})" if isinstance(type_, Decimal) else "STRING"


def text_sql(parsed: str, names: Sequence[str]) -> str:
    fields = [f"{parsed}.{_quoted(name)}" for name in names]
    return fields[0] if len(fields) == 1 else f"coalesce({', '.join(fields)})"


def decode_sql(text: str, type_: SqlType) -> str:
    """The typed value of a JSON text, NULL when it is not one."""
    match type_:
        case Scalar.BOOLEAN:
            return f"CASE {text} WHEN 'true' THEN true WHEN 'false' THEN false END"
        case Scalar.INTEGER | Scalar.TIME:
            return _whole(text, "INT", 31)
        case Scalar.BIGINT:
            return _whole(text, "BIGINT", 63)
        case Scalar.DOUBLE:
            return f"CAST({text} AS DOUBLE)"
        case Scalar.STRING:
            return text
        case Scalar.BYTES:
            return f"try_to_binary({text}, 'base64')"
        case Scalar.DATE:
            return f"date_add(DATE'1970-01-01', {_within(text, 'INT', DATES)})"
        case Scalar.TIMESTAMP:
            return f"CAST(timestamp_millis({_within(text, 'BIGINT', TIMESTAMPS)}) AS TIMESTAMP_NTZ)"
        case Decimal(precision, scale):
            return f"CAST({text} AS DECIMAL({precision},{scale}))"
        case _:
            raise unsupported(type_)


def _whole(text: str, spark: str, bits: int) -> str:
    """A whole number in range; Spark writes floating ones from ten million on with an exponent, which CAST refuses."""
    number = f"CAST({text} AS DECIMAL(38,9))"
    cut = f"IF({number} > -{2**bits + 1} AND {number} < {2**bits}, CAST({number} AS {spark}), NULL)"
    return f"coalesce(CAST({text} AS {spark}), {cut})"


def _within(text: str, spark: str, limits: tuple[int, int]) -> str:
    """A number that both engines can count as days or milliseconds, else NULL: Spark fails where it overflows."""
    number, (least, greatest) = f"CAST({text} AS {spark})", limits
    return f"IF({number} BETWEEN {least} AND {greatest}, {number}, NULL)"


def corrupt_sql(raw: str, parsed: str) -> str:
    unreadable = f"octet_length({raw}) = 0 OR NOT is_valid_utf8(CAST({raw} AS STRING))"
    return f"{parsed} IS NULL OR {parsed}.{CORRUPT} IS NOT NULL OR {unreadable}"


def misspelled_sql(raw: str, texts: Sequence[str], columns: Sequence[Column], known: Iterable[str]) -> str:
    """True when a record lacks a column but has its name in a spelling that is not known."""
    lacking = " OR ".join(f"{text} IS NULL" for text in texts)
    names = ", ".join(string_literal(name, Dialect.SPARK) for name in sorted(set(known)))
    unknown = f"n -> lower(n) IN ({_wanted(columns)}) AND n NOT IN ({names})"
    other = f"exists(json_object_keys(CAST({raw} AS STRING)), {unknown})"
    return f"(({lacking}) AND coalesce({other}, false))"


def names_sql(raw: str, columns: Sequence[Column], view: str) -> str:
    """The SELECT of the names in a view's records that spell a column; others would be learnt for nothing."""
    names = f"SELECT explode(json_object_keys(CAST({raw} AS STRING))) AS name FROM {view}"
    return f"SELECT DISTINCT name FROM ({names}) WHERE lower(name) IN ({_wanted(columns)})"


def _wanted(columns: Sequence[Column]) -> str:
    return ", ".join(string_literal(column.name.lower(), Dialect.SPARK) for column in columns)


def encode_sql(columns: Sequence[Column], physical: Sequence[str], *, unwrapped: bool) -> str:
    """The JSON text of a row, as the reading dialect's SQL."""
    values = [f"coalesce({_value_sql(name, c.type)}, 'null')" for c, name in zip(columns, physical, strict=True)]
    if unwrapped:
        return values[0]
    parts = []
    for position, (column, value) in enumerate(zip(columns, values, strict=True)):
        comma = "," if position else ""
        name = string_literal(f"{comma}{_json_text(column.name)}:", Dialect.DUCKDB)
        parts.append(f"{name} || {value}")
    return "'{' || " + " || ".join([*parts, "'}'"])


def _value_sql(name: str, type_: SqlType) -> str:
    match type_:
        case Scalar.BOOLEAN | Scalar.INTEGER | Scalar.BIGINT | Scalar.TIME | Decimal():
            return f"CAST({name} AS VARCHAR)"
        case Scalar.DOUBLE:
            other = (
                f"CASE WHEN isnan({name}) THEN '\"NaN\"' WHEN {name} > 0 THEN '\"Infinity\"' ELSE '\"-Infinity\"' END"
            )
            return f"CASE WHEN isfinite({name}) THEN CAST({name} AS VARCHAR) WHEN {name} IS NOT NULL THEN {other} END"
        case Scalar.STRING:
            return f"CAST(to_json({name}) AS VARCHAR)"
        case Scalar.BYTES:
            return f"'\"' || to_base64({name}) || '\"'"
        case Scalar.DATE:
            return f"CAST({name} - DATE '1970-01-01' AS VARCHAR)"
        case Scalar.TIMESTAMP:
            return f"CAST(epoch_ms({name}) AS VARCHAR)"
        case _:
            raise unsupported(type_)


def unsupported(type_: SqlType) -> NotYetSupported:
    return NotYetSupported(
        Feature.TYPE,
        f"{str(type_).partition('<')[0]} in JSON",
        f"JSON columns of type {type_} are not supported",
        hint="Declare the column as STRING to get its JSON text.",
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _json_text(name: str) -> str:
    return dumps(name, ensure_ascii=False)
