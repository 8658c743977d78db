"""The WITH clause: its properties and their allowed values."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.catalog.objects import TopicSettings
from holdfast.errors import BadTime, BindError, Feature, NotYetSupported, Position, UnknownProperty
from holdfast.names import TopicName, folded
from holdfast.runtime.plan.windows import Duration, WindowInfo, WindowTopic
from holdfast.sql.literals.duration import EXAMPLES, duration_ms
from holdfast.sql.properties.values import flag_of, number_of, text_of, wrong_value
from holdfast.sql.properties.windows import retention_of, window_of, window_topic_of
from holdfast.sql.syntax.statements import Property

COMMON = (
    "KAFKA_TOPIC",
    "FORMAT",
    "KEY_FORMAT",
    "VALUE_FORMAT",
    "PARTITIONS",
    "REPLICAS",
    "RETENTION_MS",
    "CLEANUP_POLICY",
    "TIMESTAMP",
    "TIMESTAMP_FORMAT",
    "WRAP_SINGLE_VALUE",
    "KEY_DELIMITER",
    "VALUE_DELIMITER",
    "RETAIN_HISTORY",
)
OF_SOURCES = (*COMMON, "WINDOW_TYPE", "WINDOW_SIZE", "WINDOW_TOPIC", "RETENTION")
OF_INSERTS = ("QUERY_ID",)

# Properties of ksqlDB that this release does not support.
UNSUPPORTED = (
    "KEY_PROTOBUF_NULLABLE_REPRESENTATION",
    "KEY_SCHEMA_FULL_NAME",
    "KEY_SCHEMA_ID",
    "SOURCED_BY_CONNECTOR",
    "SOURCE_CONNECTOR",
    "VALUE_AVRO_SCHEMA_FULL_NAME",
    "VALUE_PROTOBUF_NULLABLE_REPRESENTATION",
    "VALUE_SCHEMA_FULL_NAME",
    "VALUE_SCHEMA_ID",
)

POLICIES = ("compact", "delete")
NAMED_DELIMITERS = ("SPACE", "TAB")
MAX_TOPIC_NAME = 249
MAX_RETAIN_MS = 10 * 366 * 86_400_000
_TOPIC = re.compile(r"[A-Za-z0-9._-]+\Z")
_QUERY_ID = re.compile(r"[A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class WithProperties:
    """A checked WITH clause; None for a missing property."""

    topic: TopicName | None = None
    key_format: str | None = None
    value_format: str | None = None
    topic_settings: TopicSettings
    timestamp: str | None = None
    timestamp_format: str | None = None
    wrap_single_value: bool | None = None
    key_delimiter: str | None = None
    value_delimiter: str | None = None
    window: WindowInfo | None = None
    window_topic: WindowTopic | None = None
    retention: Duration | None = None
    query_id: str | None = None
    retain_ms: int | None = None
    positions: Mapping[str, Position | None]

    def position(self, *names: str) -> Position | None:
        """The position of the first of these properties that is set."""
        return next((self.positions[name] for name in names if name in self.positions), None)


def no_history(stream: str, position: Position | None) -> BindError:
    return BindError(
        f'"{stream}" is a stream and has no history',
        detail="How long its records are retained is a setting of its topic.",
        hint="Use RETAIN HISTORY only on tables.",
        position=position,
    )


def retained_ms(item: Property | None) -> int | None:
    """The milliseconds of RETAIN HISTORY."""
    text = text_of(item)
    if text is None:
        return None
    assert item is not None
    duration = duration_ms(text)
    if duration is None:
        raise BadTime(f"'{text}' is not a valid duration", hint=EXAMPLES, position=item.position)
    if not 1 <= duration <= MAX_RETAIN_MS:
        raise BadTime(
            f"RETAIN HISTORY cannot be FOR '{text}'",
            detail="It must be from one millisecond to ten years.",
            position=item.position,
        )
    return duration


def read_properties(properties: tuple[Property, ...], known: Sequence[str] = COMMON) -> WithProperties:
    """Check a WITH clause; `known` are the properties that its statement accepts."""
    items: dict[str, Property] = {}
    for item in properties:
        if item.name in UNSUPPORTED:
            raise NotYetSupported(Feature.PROPERTY, item.name, position=item.position)
        if item.name not in known:
            raise UnknownProperty(item.name, known=known, position=item.position)
        if item.name in items:
            raise BindError(f"property {item.name} is specified twice", position=item.position)
        items[item.name] = item
    for side in ("KEY_FORMAT", "VALUE_FORMAT"):
        if side in items and "FORMAT" in items:
            raise BindError(
                f"FORMAT and {side} cannot both be given",
                hint="FORMAT sets both; write KEY_FORMAT and VALUE_FORMAT to set each.",
                position=items[side].position,
            )
    both = text_of(items.get("FORMAT"))
    return WithProperties(
        topic=_topic(items.get("KAFKA_TOPIC")),
        key_format=_upper(text_of(items.get("KEY_FORMAT")) or both),
        value_format=_upper(text_of(items.get("VALUE_FORMAT")) or both),
        topic_settings=TopicSettings(
            number_of(items.get("PARTITIONS"), minimum=1),
            number_of(items.get("REPLICAS"), minimum=1),
            number_of(items.get("RETENTION_MS"), minimum=-1),
            _policy(items.get("CLEANUP_POLICY")),
        ),
        timestamp=_column_name(text_of(items.get("TIMESTAMP"))),
        timestamp_format=text_of(items.get("TIMESTAMP_FORMAT")),
        wrap_single_value=flag_of(items.get("WRAP_SINGLE_VALUE")),
        key_delimiter=_delimiter(items.get("KEY_DELIMITER")),
        value_delimiter=_delimiter(items.get("VALUE_DELIMITER")),
        window=window_of(items.get("WINDOW_TYPE"), items.get("WINDOW_SIZE")),
        window_topic=window_topic_of(items.get("WINDOW_TOPIC")),
        retention=retention_of(items.get("RETENTION")),
        query_id=_query_id(items.get("QUERY_ID")),
        retain_ms=retained_ms(items.get("RETAIN_HISTORY")),
        positions={name: item.position for name, item in items.items()},
    )


def _policy(item: Property | None) -> str | None:
    """One or both of Kafka's cleanup policies, in Kafka's notation."""
    if item is None:
        return None
    words = [word.strip().lower() for word in str(item.value).split(",")]
    if not set(words) <= set(POLICIES) or len(set(words)) < len(words):
        raise wrong_value(item, "'compact', 'delete' or 'compact,delete'")
    return ",".join(sorted(words))


def _topic(item: Property | None) -> TopicName | None:
    name = text_of(item)
    return None if name is None or item is None else topic_name(name, item.position)


def topic_name(name: str, position: Position | None, *, hint: str = "") -> TopicName:
    """The name of a topic; refuses a name that Kafka does not allow, with `hint`."""
    if len(name) > MAX_TOPIC_NAME or name in (".", "..") or not _TOPIC.match(name):
        raise BindError(
            f"'{name}' is not a valid topic name",
            hint=hint or 'Use at most 249 of the characters a-z, A-Z, 0-9, ".", "_" and "-".',
            position=position,
        )
    return TopicName(name)


def _query_id(item: Property | None) -> str | None:
    text = text_of(item)
    if text is None or item is None:
        return None
    if not _QUERY_ID.fullmatch(text):
        raise wrong_value(item, "a name", hint='Use the letters a-z and A-Z, digits and "_".')
    return text.upper()


def _delimiter(item: Property | None) -> str | None:
    """One character, SPACE or TAB."""
    if item is None:
        return None
    value = item.value
    if isinstance(value, str) and (value in NAMED_DELIMITERS or (len(value) == 1 and not value.isspace())):
        return value
    named = " or ".join(NAMED_DELIMITERS)
    raise wrong_value(item, f"one character or {named}", hint=f"Write {item.name} = 'TAB', for instance.")


def _upper(text: str | None) -> str | None:
    return text.upper() if text is not None else None


def _column_name(text: str | None) -> str | None:
    return folded(text) if text is not None else None
