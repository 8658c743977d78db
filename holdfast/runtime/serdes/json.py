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
| ARRAY     | array                                            | array                            |
| MAP       | object; the keys are STRINGs                     | object                           |
| STRUCT    | object                                           | object with all its fields       |

null and a missing name read as NULL; a part that cannot be read makes the whole record undecodable. Names of columns
and of a STRUCT's fields are matched without regard to case: every spelling of a name that a topic uses is a field of
the parsed struct, because Spark matches exactly.
"""

from collections.abc import Iterable, Iterator, Sequence
from json import dumps
from typing import assert_never

from holdfast.errors import NotSupported
from holdfast.runtime.expressions.physical import Dialect, field_name, string_literal
from holdfast.types import Array, Column, Decimal, Map, Scalar, SqlType, Struct, StructField

CORRUPT = "__holdfast_corrupt__"
UNWRAPPED = "v"
DATES = (-2_147_483_646, 2_147_483_646)
TIMESTAMPS = (-9_223_372_022_400_000, 9_223_372_036_854_774)
"""What the store can hold; the next ones are its infinities."""
OPTIONS = f"map('columnNameOfCorruptRecord', '{CORRUPT}', 'allowSingleQuotes', 'false')"
NAMES = string_literal(r'"((?:[^"\\]|\\.)*)"\s*:', Dialect.SPARK)
"""Whatever stands before a colon, at any depth; more than the names of objects, but never less."""


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


def parse_sql(
    raw: str, spelled: Sequence[Sequence[str]], columns: Sequence[Column], seen: frozenset[str], *, unwrapped: bool
) -> str:
    """The struct of texts of a record, as deep as its types are; a leaf is read as text and typed later.

    Decimals are typed at once: the text that Spark gives of a number with a point has gone through a double.
    """
    text = f"CAST({raw} AS STRING)"
    if unwrapped:
        text = f"concat('{{\"{UNWRAPPED}\":', {text}, '}}')"
    fields = [
        f"{_quoted(name)} {_texts(column.type, seen)}"
        for names, column in zip(spelled, columns, strict=True)
        for name in names
    ]
    schema = ", ".join([*fields, f"{_quoted(CORRUPT)} STRING"])
    return f"from_json({text}, {string_literal(schema, Dialect.SPARK)}, {OPTIONS})"


def _texts(type_: SqlType, seen: frozenset[str]) -> str:
    """The type of a value whose leaves are texts."""
    match type_:
        case Decimal(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case Array(element):
            return f"ARRAY<{_texts(element, seen)}>"
        case Map(_, value):
            return f"MAP<STRING, {_texts(value, seen)}>"
        case Struct(fields):
            named = zip(_spelled(type_, seen), fields, strict=True)
            parts = [f"{_quoted(name)}: {_texts(field.type, seen)}" for names, field in named for name in names]
            return f"STRUCT<{', '.join(parts)}>"
        case _:
            return "STRING"


def _spelled(type_: Struct, seen: frozenset[str]) -> list[list[str]]:
    return spellings([field.name for field in type_.fields], seen)


def text_sql(parsed: str, names: Sequence[str]) -> str:
    fields = [f"{parsed}.{_quoted(name)}" for name in names]
    return fields[0] if len(fields) == 1 else f"coalesce({', '.join(fields)})"


def check(type_: SqlType) -> None:
    """Refuse types that JSON cannot hold."""
    match type_:
        case Array(element):
            check(element)
        case Map(key, value):
            if key is not Scalar.STRING:
                raise NotSupported(
                    f"JSON cannot hold {type_}",
                    detail="The names of a JSON object are texts.",
                    hint="Use STRING for the keys of the MAP.",
                )
            check(value)
        case Struct(fields):
            for field in fields:
                check(field.type)


def value_sql(texts: str, type_: SqlType, seen: frozenset[str], depth: int = 0) -> str:
    """The typed value of texts; undefined where `wrong_sql` is true."""
    part = f"x{depth}"
    match type_:
        case Array(element):
            return f"transform({texts}, {part} -> {value_sql(part, element, seen, depth + 1)})"
        case Map(_, value):
            return f"transform_values({texts}, (k{part}, {part}) -> {value_sql(part, value, seen, depth + 1)})"
        case Struct(fields):
            found = [(value_sql(t, f.type, seen, depth), i) for i, (f, t) in enumerate(_fields(texts, type_, seen))]
            parts = ", ".join(f"'{field_name(i)}', {sql}" for sql, i in found)
            return (
                f"IF({texts} IS NULL, NULL, named_struct({parts}))"
                if fields
                else f"IF({texts} IS NULL, NULL, struct())"
            )
        case _:
            return decode_sql(texts, type_)


def wrong_sql(texts: str, type_: SqlType, seen: frozenset[str], depth: int = 0) -> str | None:
    """True where a text at some depth is not of its type; None when every text is."""
    part = f"x{depth}"
    match type_:
        case Scalar.STRING | Decimal():
            return None
        case Array(element):
            inner = wrong_sql(part, element, seen, depth + 1)
            return inner and f"coalesce(exists({texts}, {part} -> {inner}), false)"
        case Map(_, value):
            inner = wrong_sql(part, value, seen, depth + 1)
            return inner and f"coalesce(exists(map_values({texts}), {part} -> {inner}), false)"
        case Struct():
            found = [wrong_sql(t, f.type, seen, depth) for f, t in _fields(texts, type_, seen)]
            return " OR ".join(sql for sql in found if sql) or None
        case _:
            return f"({texts} IS NOT NULL AND {decode_sql(texts, type_)} IS NULL)"


def _fields(texts: str, type_: Struct, seen: frozenset[str]) -> list[tuple[StructField, str]]:
    named = zip(type_.fields, _spelled(type_, seen), strict=True)
    return [(field, text_sql(f"({texts})", names)) for field, names in named]


def decode_sql(text: str, type_: Scalar | Decimal) -> str:
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
            assert_never(type_)


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
    """True when a record may lack a column or a field but has its name in a spelling that is not known."""
    lacking = "true" if _is_deep(columns) else " OR ".join(f"{text} IS NULL" for text in texts)
    names = ", ".join(string_literal(name, Dialect.SPARK) for name in sorted(set(known)))
    unknown = f"n -> lower(n) IN ({_wanted(columns)}) AND n NOT IN ({names})"
    return f"(({lacking}) AND coalesce(exists({_all_names(raw, columns)}, {unknown}), false))"


def names_sql(raw: str, columns: Sequence[Column], view: str) -> str:
    """The SELECT of the names in a view's records that spell a column; others would be learnt for nothing."""
    names = f"SELECT explode({_all_names(raw, columns)}) AS name FROM {view}"
    return f"SELECT DISTINCT name FROM ({names}) WHERE lower(name) IN ({_wanted(columns)})"


def _all_names(raw: str, columns: Sequence[Column]) -> str:
    text = f"CAST({raw} AS STRING)"
    return f"regexp_extract_all({text}, {NAMES}, 1)" if _is_deep(columns) else f"json_object_keys({text})"


def _wanted(columns: Sequence[Column]) -> str:
    names = {column.name.lower() for column in columns} | {n.lower() for c in columns for n in field_names(c.type)}
    return ", ".join(string_literal(name, Dialect.SPARK) for name in sorted(names))


def _is_deep(columns: Sequence[Column]) -> bool:
    return any(True for column in columns for _ in field_names(column.type))


def field_names(type_: SqlType) -> Iterator[str]:
    """The names of all fields at all depths of a type."""
    match type_:
        case Array(element):
            yield from field_names(element)
        case Map(_, value):
            yield from field_names(value)
        case Struct(fields):
            for field in fields:
                yield field.name
                yield from field_names(field.type)


def encode_sql(columns: Sequence[Column], physical: Sequence[str], *, unwrapped: bool) -> str:
    """The JSON text of a row, as the reading dialect's SQL."""
    values = [_null_or(_value_sql(name, c.type)) for c, name in zip(columns, physical, strict=True)]
    return values[0] if unwrapped else _object_sql(list(zip((c.name for c in columns), values, strict=True)))


def _object_sql(members: Sequence[tuple[str, str]]) -> str:
    """The text of an object of names and texts."""
    parts = []
    for position, (name, value) in enumerate(members):
        comma = "," if position else ""
        parts.append(f"{string_literal(f'{comma}{_json_text(name)}:', Dialect.DUCKDB)} || {value}")
    return " || ".join(["'{'", *parts, "'}'"])


def _value_sql(name: str, type_: SqlType, depth: int = 0) -> str:
    part = f"x{depth}"
    match type_:
        case Array(element):
            return f"'[' || {_joined(name, part, _null_or(_value_sql(part, element, depth + 1)))} || ']'"
        case Map(_, value):
            shown = _null_or(_value_sql(f"{part}.value", value, depth + 1))
            pair = f"CAST(to_json({part}.key) AS VARCHAR) || ':' || {shown}"
            return f"'{{' || {_joined(f'map_entries({name})', part, pair)} || '}}'"
        case Struct(fields):
            parts = [f"struct_extract({name}, '{field_name(i)}')" for i in range(len(fields))]
            pairs = zip((f.name for f in fields), map(_value_sql, parts, (f.type for f in fields)), strict=True)
            return f"CASE WHEN {name} IS NOT NULL THEN {_object_sql([(n, _null_or(v)) for n, v in pairs])} END"
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
            assert_never(type_)


def _joined(items: str, part: str, shown: str) -> str:
    return f"array_to_string(list_transform({items}, lambda {part}: {shown}), ',')"


def _null_or(text: str) -> str:
    return f"coalesce({text}, 'null')"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _json_text(name: str) -> str:
    return dumps(name, ensure_ascii=False)
