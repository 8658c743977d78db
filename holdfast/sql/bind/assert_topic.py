"""ASSERT TOPIC: conditions that a topic must satisfy."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from holdfast.errors import BindError
from holdfast.names import TopicName
from holdfast.sql.syntax import statements as sql

NUMBERS = ("PARTITIONS", "REPLICAS")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundAssertTopic:
    """A topic that must exist (or not) within `timeout_ms`, with these partitions, replicas and configuration."""

    topic: TopicName
    exists: bool
    partitions: int | None = None
    replicas: int | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    timeout_ms: int = 1_000


def bind_assert_topic(statement: sql.AssertTopic) -> BoundAssertTopic:
    """The properties are PARTITIONS, REPLICAS and the topic's configuration (`'retention.ms'`)."""
    entries = {entry.name: entry for entry in statement.properties}
    if entries and not statement.exists:
        first = next(iter(entries.values()))
        raise BindError("ASSERT NOT EXISTS cannot have a WITH clause", hint="Leave out WITH.", position=first.position)
    config = {name.lower().replace("_", "."): _text(entry) for name, entry in entries.items() if name not in NUMBERS}
    bound = BoundAssertTopic(
        topic=TopicName(statement.topic),
        exists=statement.exists,
        partitions=_number(entries.get("PARTITIONS")),
        replicas=_number(entries.get("REPLICAS")),
        config=config,
    )
    if statement.timeout is None:
        return bound
    return replace(bound, timeout_ms=statement.timeout.millis)


def _number(entry: sql.Property | None) -> int | None:
    if entry is None:
        return None
    if isinstance(entry.value, bool) or not isinstance(entry.value, int) or entry.value < 1:
        raise BindError(f"{entry.name} must be a whole number of at least 1", position=entry.position)
    return entry.value


def _text(entry: sql.Property) -> str:
    return str(entry.value).lower() if isinstance(entry.value, bool) else str(entry.value)
