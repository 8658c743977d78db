"""How a topic or an internal topic is serialised, and which column holds a record's timestamp."""

from dataclasses import dataclass
from enum import StrEnum

from holdfast.runtime.plan.optional import ABSENT, Maybe


class SerdeFeature(StrEnum):
    """An option of one side (key or value) of a format."""

    SCHEMA_INFERENCE = "SCHEMA_INFERENCE"
    WRAP_SINGLES = "WRAP_SINGLES"
    UNWRAP_SINGLES = "UNWRAP_SINGLES"


class SerdeOption(StrEnum):
    """ksqlDB 5.5's predecessor of `SerdeFeature`; applies to the value."""

    WRAP_SINGLE_VALUES = "WRAP_SINGLE_VALUES"
    UNWRAP_SINGLE_VALUES = "UNWRAP_SINGLE_VALUES"


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatProperties:
    """The settings of a format, each as text."""

    delimiter: Maybe[str] = ABSENT
    full_schema_name: Maybe[str] = ABSENT
    schema_id: Maybe[str] = ABSENT
    unwrap_primitives: Maybe[str] = ABSENT
    nullable_representation: Maybe[str] = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatInfo:
    """A format by name (`JSON`, `KAFKA`, `DELIMITED`, …) with its settings."""

    format: str
    properties: Maybe[FormatProperties] = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Formats:
    """The formats of a topic's keys and values."""

    key_format: FormatInfo
    value_format: FormatInfo
    key_features: Maybe[tuple[SerdeFeature, ...]] = ABSENT
    value_features: Maybe[tuple[SerdeFeature, ...]] = ABSENT
    options: Maybe[tuple[SerdeOption, ...]] = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampColumn:
    """The column that replaces a record's own timestamp; `format` is a java.time pattern for text columns."""

    column: str
    format: Maybe[str] = ABSENT
