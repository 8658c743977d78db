"""ASSERT TOPIC: what is asked of a topic."""

from dataclasses import replace

from holdfast.errors import BindError
from holdfast.names import TopicName
from holdfast.sql import statements as sql
from holdfast.sql.bound import BoundAssertTopic

NUMBERS = ("PARTITIONS", "REPLICAS")


def bind_assert_topic(statement: sql.AssertTopic) -> BoundAssertTopic:
    """PARTITIONS, REPLICAS and settings of the topic (`'retention.ms'`), each of which must be as it says."""
    given = {entry.name: entry for entry in statement.properties}
    if given and not statement.exists:
        first = next(iter(given.values()))
        raise BindError("what does not exist has no properties", hint="Leave out WITH.", position=first.position)
    config = {name.lower().replace("_", "."): _text(entry) for name, entry in given.items() if name not in NUMBERS}
    bound = BoundAssertTopic(
        topic=TopicName(statement.topic),
        exists=statement.exists,
        partitions=_number(given.get("PARTITIONS")),
        replicas=_number(given.get("REPLICAS")),
        config=config,
    )
    if statement.timeout is None:
        return bound
    return replace(bound, timeout_ms=statement.timeout.millis)


def _number(entry: sql.Property | None) -> int | None:
    if entry is None:
        return None
    if isinstance(entry.value, bool) or not isinstance(entry.value, int) or entry.value < 1:
        raise BindError(f"{entry.name} is a whole number of 1 or more", position=entry.position)
    return entry.value


def _text(entry: sql.Property) -> str:
    return str(entry.value).lower() if isinstance(entry.value, bool) else str(entry.value)
