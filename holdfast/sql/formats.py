"""Which formats there are, what they can hold, and how a plan writes them."""

from collections.abc import Callable, Sequence

from holdfast.errors import BindError, Feature, NotYetSupported, Position, nearest
from holdfast.runtime.plan.formats import FormatInfo, FormatProperties, Formats, SerdeFeature
from holdfast.runtime.plan.presence import ABSENT, Maybe
from holdfast.types import Array, Column, Map, Scalar, SqlType, Struct

KAFKA = "KAFKA"
JSON = "JSON"
DELIMITED = "DELIMITED"
NONE = "NONE"

FORMATS = (DELIMITED, JSON, KAFKA, NONE)
REGISTERED_FORMATS = ("AVRO", "JSON_SR", "PROTOBUF", "PROTOBUF_NOSR")

KAFKA_TYPES = (Scalar.INTEGER, Scalar.BIGINT, Scalar.DOUBLE, Scalar.STRING, Scalar.BYTES)
NO_PROPERTIES = FormatProperties()

WRAPPING = {
    JSON: (SerdeFeature.WRAP_SINGLES, SerdeFeature.UNWRAP_SINGLES),
    KAFKA: (SerdeFeature.UNWRAP_SINGLES,),
}
"""How a format can write a value of one column; the others have no choice."""

KEY_HINT = "Write WITH (KEY_FORMAT='JSON')."


def format_info(name: str, *, side: str, delimiter: str | None = None, position: Position | None = None) -> FormatInfo:
    """A format that this release plans, by name; `side` is `key` or `value`."""
    if name not in (*FORMATS, *REGISTERED_FORMATS):
        hint = nearest(name, FORMATS, plural="formats")
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
        raise BindError(f"{side.upper()}_DELIMITER is for the format DELIMITED, not for {name}", position=position)
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


STRING_KEYS = "The keys of a MAP are texts there: write MAP<STRING, …>."


def _check(name: str, columns: Sequence[Column], *, side: str, hint: str, position: Position | None) -> None:
    names = ", ".join(column.name for column in columns)
    if name == NONE and columns:
        raise BindError(f"the {side} format NONE holds no columns, not {names}", hint=hint, position=position)
    if name == KAFKA and len(columns) > 1:
        raise BindError(
            f"the {side} format KAFKA holds one column, not {len(columns)}: {names}", hint=hint, position=position
        )
    for column in columns:
        if not fits(name, column.type):
            raise BindError(
                f'the {side} format {name} cannot hold column "{column.name}" of type {column.type}',
                hint=STRING_KEYS if name == JSON else hint,
                position=position,
            )


def fits(name: str, type_: SqlType) -> bool:
    """Whether a format can hold a column of that type."""
    match name:
        case "KAFKA":
            return type_ in KAFKA_TYPES
        case "DELIMITED":
            return not isinstance(type_, Array | Map | Struct)
        case "JSON":
            return not _has(type_, lambda inner: isinstance(inner, Map) and inner.key is not Scalar.STRING)
        case _:
            return True


def build_formats(
    key: FormatInfo,
    value: FormatInfo,
    *,
    key_columns: int,
    value_features: Maybe[tuple[SerdeFeature, ...]] = ABSENT,
) -> Formats:
    """The formats of a topic as plans write them. The key of one column is written without a wrapper."""
    unwrapped = key_columns == 1 and len(WRAPPING.get(key.format, ())) > 1
    return Formats(
        key_format=key,
        value_format=value,
        key_features=(SerdeFeature.UNWRAP_SINGLES,) if unwrapped else ABSENT,
        value_features=value_features,
    )


def wrap_features(
    wrap: bool | None, name: str, values: Sequence[Column], *, default: bool | None, position: Position | None = None
) -> Maybe[tuple[SerdeFeature, ...]]:
    """What WRAP_SINGLE_VALUE asks for, or else the session's `default` where it can be followed."""
    asked = default if wrap is None else wrap
    if asked is None:
        return ABSENT
    feature = SerdeFeature.WRAP_SINGLES if asked else SerdeFeature.UNWRAP_SINGLES
    possible = feature in WRAPPING.get(name, ())
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
            detail=f"It says how a single value is written; here are {len(values)}.",
            hint="Leave WRAP_SINGLE_VALUE out.",
            position=position,
        )
    return (feature,)


def internal_key_format(inherited: FormatInfo, types: Sequence[SqlType]) -> FormatInfo:
    """The format of a key on its way through a query: the source's, unless it cannot hold these types."""
    several = inherited.format == KAFKA and len(types) != 1
    held = all(fits(inherited.format, type_) for type_ in types)
    return FormatInfo(format=JSON, properties=NO_PROPERTIES) if several or not held else inherited


def _has(type_: SqlType, condition: Callable[[SqlType], bool]) -> bool:
    """Whether a type or a part of it meets a condition."""
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
