"""Which formats there are, what they can hold, and how a plan writes them."""

from collections.abc import Sequence

from holdfast.errors import BindError, Feature, NotYetSupported, Position, nearest
from holdfast.runtime.plan.formats import FormatInfo, FormatProperties, Formats, SerdeFeature
from holdfast.runtime.plan.presence import ABSENT, Maybe
from holdfast.types import Array, Column, Map, Scalar, SqlType, Struct

KAFKA = "KAFKA"
JSON = "JSON"

KEY_FORMATS = (KAFKA, JSON)
VALUE_FORMATS = (JSON, KAFKA)
KNOWN_FORMATS = ("AVRO", "DELIMITED", JSON, "JSON_SR", KAFKA, "NONE", "PROTOBUF", "PROTOBUF_NOSR")

KAFKA_TYPES = (Scalar.INTEGER, Scalar.BIGINT, Scalar.DOUBLE, Scalar.STRING, Scalar.BYTES)


def check_format(name: str, *, side: str, position: Position | None = None) -> str:
    """The name of a format that this release reads and writes on that side, `key` or `value`."""
    supported = KEY_FORMATS if side == "key" else VALUE_FORMATS
    if name in supported:
        return name
    if name not in KNOWN_FORMATS:
        hint = nearest(name, supported, plural="formats")
        raise BindError(f'format "{name}" does not exist', hint=hint, position=position)
    raise NotYetSupported(
        Feature.FORMAT,
        f"{name} of {side}s",
        f"the {side} format {name} is not supported yet",
        hint=f"Supported {side} formats are: {', '.join(supported)}.",
        position=position,
    )


def check_key(name: str, key: Sequence[Column], *, position: Position | None = None) -> None:
    """Refuse key columns that the format cannot hold."""
    for column in key:
        if _has_map(column.type):
            raise BindError(
                f'key column "{column.name}" of type {column.type} cannot be or contain a MAP',
                detail="A MAP has no fixed order, so equal keys could be written in different ways.",
                position=position,
            )
    _check_kafka(name, key, side="key", position=position)


def check_value(name: str, value: Sequence[Column], *, position: Position | None = None) -> None:
    """Refuse value columns that the format cannot hold."""
    _check_kafka(name, value, side="value", position=position)


def _check_kafka(name: str, columns: Sequence[Column], *, side: str, position: Position | None) -> None:
    if name != KAFKA:
        return
    hint = f"Write WITH ({side.upper()}_FORMAT='JSON')."
    if len(columns) > 1:
        names = ", ".join(column.name for column in columns)
        told = f"the {side} format KAFKA holds one column, not {len(columns)}: {names}"
        raise BindError(told, hint=hint, position=position)
    for column in columns:
        if column.type not in KAFKA_TYPES:
            raise BindError(
                f'the {side} format KAFKA cannot hold column "{column.name}" of type {column.type}',
                hint=hint,
                position=position,
            )


def build_formats(
    key_format: str,
    value_format: str,
    *,
    key_columns: int,
    value_features: Maybe[tuple[SerdeFeature, ...]] = ABSENT,
) -> Formats:
    """The formats of a topic as plans write them."""
    return Formats(
        key_format=FormatInfo(format=key_format, properties=FormatProperties()),
        value_format=FormatInfo(format=value_format, properties=FormatProperties()),
        key_features=(SerdeFeature.UNWRAP_SINGLES,) if key_format == JSON and key_columns == 1 else ABSENT,
        value_features=value_features,
    )


def wrap_features(
    wrap: bool | None, value_format: str, values: Sequence[Column], *, position: Position | None = None
) -> Maybe[tuple[SerdeFeature, ...]]:
    """What WRAP_SINGLE_VALUE asks for."""
    if wrap is None:
        return ABSENT
    if wrap and value_format == KAFKA:
        raise BindError(
            "the value format KAFKA does not take WRAP_SINGLE_VALUE = TRUE",
            detail="Its one column is never wrapped.",
            position=position,
        )
    if len(values) != 1:
        raise BindError("WRAP_SINGLE_VALUE needs exactly one value column", position=position)
    return (SerdeFeature.WRAP_SINGLES if wrap else SerdeFeature.UNWRAP_SINGLES,)


def internal_key_format(inherited: str, types: Sequence[SqlType]) -> str:
    """The format of a key on its way through a query: the source's, unless it cannot hold these types."""
    fits = inherited != KAFKA or (len(types) == 1 and types[0] in KAFKA_TYPES)
    return inherited if fits else JSON


def _has_map(type_: SqlType) -> bool:
    match type_:
        case Map():
            return True
        case Array(element):
            return _has_map(element)
        case Struct(fields):
            return any(_has_map(field.type) for field in fields)
        case _:
            return False
