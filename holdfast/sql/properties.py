"""The WITH clause: which properties there are, and what values they take."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.catalog.objects import TopicSettings
from holdfast.errors import BindError, Feature, NotYetSupported, Position, UnknownProperty
from holdfast.names import TopicName, folded
from holdfast.sql.statements import Property

COMMON = (
    "KAFKA_TOPIC",
    "FORMAT",
    "KEY_FORMAT",
    "VALUE_FORMAT",
    "PARTITIONS",
    "REPLICAS",
    "RETENTION_MS",
    "TIMESTAMP",
    "TIMESTAMP_FORMAT",
    "WRAP_SINGLE_VALUE",
)

# Properties of ksqlDB that this release does not have.
LATER = (
    "CLEANUP_POLICY",
    "KEY_DELIMITER",
    "KEY_PROTOBUF_NULLABLE_REPRESENTATION",
    "KEY_SCHEMA_FULL_NAME",
    "KEY_SCHEMA_ID",
    "QUERY_ID",
    "SOURCED_BY_CONNECTOR",
    "SOURCE_CONNECTOR",
    "VALUE_AVRO_SCHEMA_FULL_NAME",
    "VALUE_DELIMITER",
    "VALUE_PROTOBUF_NULLABLE_REPRESENTATION",
    "VALUE_SCHEMA_FULL_NAME",
    "VALUE_SCHEMA_ID",
    "WINDOW_SIZE",
    "WINDOW_TYPE",
)

MAX_TOPIC_NAME = 249
_TOPIC = re.compile(r"[A-Za-z0-9._-]+\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class WithProperties:
    """A WITH clause that has been checked; None is a property that was not given."""

    topic: TopicName | None = None
    key_format: str | None = None
    value_format: str | None = None
    topic_settings: TopicSettings
    timestamp: str | None = None
    timestamp_format: str | None = None
    wrap_single_value: bool | None = None
    positions: Mapping[str, Position | None]

    def position(self, *names: str) -> Position | None:
        """Where the first of these properties that was given stands."""
        return next((self.positions[name] for name in names if name in self.positions), None)


def read_properties(properties: tuple[Property, ...]) -> WithProperties:
    """Check a WITH clause."""
    given: dict[str, Property] = {}
    for item in properties:
        if item.name in LATER:
            raise NotYetSupported(Feature.PROPERTY, item.name, position=item.position)
        if item.name not in COMMON:
            raise UnknownProperty(item.name, known=COMMON, position=item.position)
        if item.name in given:
            raise BindError(f"property {item.name} is given twice", position=item.position)
        given[item.name] = item
    for side in ("KEY_FORMAT", "VALUE_FORMAT"):
        if side in given and "FORMAT" in given:
            raise BindError(
                f"FORMAT and {side} cannot both be given",
                hint="FORMAT sets both; write KEY_FORMAT and VALUE_FORMAT to set each.",
                position=given[side].position,
            )
    both = _text(given.get("FORMAT"))
    return WithProperties(
        topic=_topic(given.get("KAFKA_TOPIC")),
        key_format=_upper(_text(given.get("KEY_FORMAT")) or both),
        value_format=_upper(_text(given.get("VALUE_FORMAT")) or both),
        topic_settings=TopicSettings(
            _number(given.get("PARTITIONS"), least=1),
            _number(given.get("REPLICAS"), least=1),
            _number(given.get("RETENTION_MS"), least=-1),
        ),
        timestamp=_column_name(_text(given.get("TIMESTAMP"))),
        timestamp_format=_text(given.get("TIMESTAMP_FORMAT")),
        wrap_single_value=_flag(given.get("WRAP_SINGLE_VALUE")),
        positions={name: item.position for name, item in given.items()},
    )


def _wrong(item: Property, wanted: str) -> BindError:
    shown = f"'{item.value}'" if isinstance(item.value, str) else str(item.value).upper()
    return BindError(f"property {item.name} must be {wanted}, not {shown}", position=item.position)


def _text(item: Property | None) -> str | None:
    if item is None:
        return None
    if not isinstance(item.value, str) or not item.value:
        raise _wrong(item, "a text")
    return item.value


def _number(item: Property | None, *, least: int) -> int | None:
    if item is None:
        return None
    value = item.value
    if isinstance(value, str) and re.fullmatch(r"-?\d+", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise _wrong(item, f"a whole number of at least {least}")
    return value


def _flag(item: Property | None) -> bool | None:
    if item is None:
        return None
    value = item.value.lower() == "true" if item.value in ("true", "false", "TRUE", "FALSE") else item.value
    if not isinstance(value, bool):
        raise _wrong(item, "TRUE or FALSE")
    return value


def _topic(item: Property | None) -> TopicName | None:
    name = _text(item)
    if name is None or item is None:
        return None
    if len(name) > MAX_TOPIC_NAME or name in (".", "..") or not _TOPIC.match(name):
        raise BindError(
            f"'{name}' cannot be the name of a topic",
            hint='Use at most 249 of the characters a-z, A-Z, 0-9, ".", "_" and "-".',
            position=item.position,
        )
    return TopicName(name)


def _upper(text: str | None) -> str | None:
    return text.upper() if text is not None else None


def _column_name(text: str | None) -> str | None:
    return folded(text) if text is not None else None
