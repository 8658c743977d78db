"""Errors of topics that are no longer what they were."""

from holdfast.errors import KafkaError, TopicChanged
from holdfast.kafka.port import Topic, TopicSpec
from holdfast.kafka.records import Partition
from holdfast.names import TopicName

HINT = "To read the topic from its start, drop the objects that read it and create them again."


def recreated(name: TopicName, id: str, now: Topic | None) -> TopicChanged:
    return TopicChanged(
        f'topic "{name}" was {"recreated" if now else "deleted"}',
        detail=f"It had the id {id}" + (f", and now has {now.id}." if now else "."),
        hint=HINT,
    )


def truncated(partition: Partition, at: int, start: int, end: int) -> TopicChanged:
    """The error of a partition that no longer has the offset `at`."""
    topic, number = partition
    return TopicChanged(
        f'topic "{topic}" was truncated or recreated',
        detail=f"Partition {number} is to be read from offset {at}, but now has offsets {start} to {end}.",
        hint=HINT,
    )


def different_partitions(spec: TopicSpec, found: Topic) -> KafkaError:
    return KafkaError(
        f'topic "{spec.name}" exists with a different number of partitions',
        detail=f"It has {found.partitions}, not {spec.partitions}.",
        hint=f"Use the topic as it is with PARTITIONS={found.partitions}, or choose another topic.",
    )
