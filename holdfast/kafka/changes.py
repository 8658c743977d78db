"""Errors of topics that are no longer what they were."""

from collections.abc import Mapping

from holdfast.errors import KafkaError, TopicChanged
from holdfast.kafka.port import Topic, TopicAdmin, TopicSpec
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


def check_positions(topics: TopicAdmin, positions: Mapping[Partition, int], ends: Mapping[Partition, int]) -> None:
    """Raise `TopicChanged` for a position past the end of its partition: the topic was deleted and created again.

    `ends` are those that are known. A reader that began at the first retained record may be past them, if the topic
    retains nothing: then Kafka decides.
    """
    past = {partition: at for partition, at in positions.items() if at > ends.get(partition, at)}
    if past:
        starts, written = topics.starts(past), topics.written(past)
        for partition, at in past.items():
            if at > written[partition]:
                raise truncated(partition, at, starts[partition], written[partition])


def different_partitions(spec: TopicSpec, found: Topic) -> KafkaError:
    return KafkaError(
        f'topic "{spec.name}" exists with a different number of partitions',
        detail=f"It has {found.partitions}, not {spec.partitions}.",
        hint=f"Use the topic as it is with PARTITIONS={found.partitions}, or choose another topic.",
    )
