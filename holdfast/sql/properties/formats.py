"""The formats: which types they can hold, and how plans write them."""

from collections.abc import Callable, Sequence

from holdfast.errors import BindError, Feature, NotYetSupported, Position, nearest
from holdfast.runtime.plan.formats import FormatInfo, FormatProperties, Formats, SerdeFeature
from holdfast.runtime.plan.optional import ABSENT, Maybe
from holdfast.runtime.serdes.formats import FORMATS
from holdfast.types import Array, Column, Map, SqlType, Struct

KAFKA = "KAFKA"
JSON = "JSON"
DELIMITED = "DELIMITED"
NONE = "NONE"

REGISTERED_FORMATS = ("AVRO", "JSON_SR", "PROTOBUF", "PROTOBUF_NOSR")

NO_PROPERTIES = FormatProperties()

KEY_HINT = "Write WITH (KEY_FORMAT='JSON')."


def format_info(name: str, *, side: str, delimiter: str | None = None, position: Position | None = None) -> FormatInfo:
    """The format of that name, if this release supports it; `side` is `key` or `value`."""
    if name not in (*FORMATS, *REGISTERED_FORMATS):
        hint = nearest(name, list(FORMATS), plural="formats")
        raise BindError(f'format "{name}" does not exist', hint=hint, position=position)
    if name not in FORMATS:
        raise NotYetSupported(
            Feature.FORMAT,
            f"{name} of {side}s",
            f"the {side} format {name} is not supported yet",
            hint=f"Supported {side} formats are: {', '.join(FORMATS)}.",
            position=position,
        )
    if delimiter is not None and name != DELIMITED:
        raise BindError(f"{side.upper()}_DELIMITER needs the format DELIMITED, not {name}", position=position)
    return FormatInfo(
        format=name, properties=NO_PROPERTIES if delimiter is None else FormatProperties(delimiter=delimiter)
    )


def check_key(name: str, key: Sequence[Column], *, position: Position | None = None) -> None:
    """Refuse key columns that the format cannot hold."""
    for column in key:
        if _has(column.type, lambda type_: isinstance(type_, Map)):
            raise BindError(
                f'key column "{column.name}" of type {column.type} cannot be or contain a MAP',
                detail="A MAP has no fixed order, so equal keys could be written in different ways.",
                position=position,
            )
    _check(name, key, side="key", hint=KEY_HINT, position=position)


def check_value(name: str, values: Sequence[Column], *, position: Position | None = None) -> None:
    """Refuse value columns that the format cannot hold."""
    _check(name, values, side="value", hint="Write WITH (VALUE_FORMAT='JSON').", position=position)


STRING_KEYS = "The keys of a MAP must be STRING: write MAP<STRING, …>."


def _check(name: str, columns: Sequence[Column], *, side: str, hint: str, position: Position | None) -> None:
    names = ", ".join(column.name for column in columns)
    limit = FORMATS[name].most_columns if name in FORMATS else None
    if limit == 0 and columns:
        raise BindError(f"the {side} format {name} holds no columns, not {names}", hint=hint, position=position)
    if limit == 1 and len(columns) > 1:
        raise BindError(
            f"the {side} format {name} holds one column, not {len(columns)}: {names}", hint=hint, position=position
        )
    for column in columns:
        if not fits(name, column.type):
            raise BindError(
                f'the {side} format {name} cannot hold column "{column.name}" of type {column.type}',
                hint=STRING_KEYS if name == JSON else hint,
                position=position,
            )


def fits(name: str, type_: SqlType) -> bool:
    """Whether a format can hold a column of the type."""
    return name not in FORMATS or FORMATS[name].fits(type_)


def _wrapping(name: str) -> tuple[SerdeFeature, ...]:
    return FORMATS[name].wrapping if name in FORMATS else ()


def build_formats(
    key: FormatInfo,
    value: FormatInfo,
    *,
    key_columns: int,
    value_features: Maybe[tuple[SerdeFeature, ...]] = ABSENT,
) -> Formats:
    """The formats of a topic as plans write them. A key with a single column is written without a wrapper."""
    unwrapped = key_columns == 1 and len(_wrapping(key.format)) > 1
    return Formats(
        key_format=key,
        value_format=value,
        key_features=(SerdeFeature.UNWRAP_SINGLES,) if unwrapped else ABSENT,
        value_features=value_features,
    )


def wrap_features(
    wrap: bool | None, name: str, values: Sequence[Column], *, default: bool | None, position: Position | None = None
) -> Maybe[tuple[SerdeFeature, ...]]:
    """The serde features of WRAP_SINGLE_VALUE, or else of the session's `default` where it applies."""
    wrapped = default if wrap is None else wrap
    if wrapped is None:
        return ABSENT
    feature = SerdeFeature.WRAP_SINGLES if wrapped else SerdeFeature.UNWRAP_SINGLES
    possible = feature in _wrapping(name)
    if wrap is None:
        return (feature,) if possible and len(values) == 1 else ABSENT
    if not possible:
        shown = str(wrap).upper()
        raise BindError(
            f"the value format {name} does not take WRAP_SINGLE_VALUE = {shown}",
            hint="Leave WRAP_SINGLE_VALUE out.",
            position=position,
        )
    if len(values) != 1:
        raise BindError(
            "WRAP_SINGLE_VALUE needs exactly one value column",
            detail=f"It sets how a single value is written, but there are {len(values)} value columns.",
            hint="Leave WRAP_SINGLE_VALUE out.",
            position=position,
        )
    return (feature,)


def internal_key_format(inherited: FormatInfo, types: Sequence[SqlType]) -> FormatInfo:
    """The format of a key inside a query: the source's, unless it cannot hold these types."""
    several = inherited.format == KAFKA and len(types) != 1
    unfit = not all(fits(inherited.format, type_) for type_ in types)
    return FormatInfo(format=JSON, properties=NO_PROPERTIES) if several or unfit else inherited


def _has(type_: SqlType, condition: Callable[[SqlType], bool]) -> bool:
    """Whether a type or a type inside it satisfies a condition."""
    if condition(type_):
        return True
    match type_:
        case Array(element):
            return _has(element, condition)
        case Map(key, value):
            return _has(key, condition) or _has(value, condition)
        case Struct(fields):
            return any(_has(field.type, condition) for field in fields)
        case _:
            return False
