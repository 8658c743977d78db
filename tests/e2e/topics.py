"""Reads and writes topics with a plain Kafka client."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

SECONDS = 60.0
IDEMPOTENT = {"enable.idempotence": True, "partitioner": "murmur2_random", "linger.ms": 2, "log_level": 2}


@dataclass(frozen=True, slots=True)
class Record:
    """A record as a `read_committed` consumer receives it."""

    partition: int
    offset: int
    key: str | None
    value: bytes | None
    timestamp: int


def create_topics(kafka: str, *names: str, partitions: int = 2) -> None:
    admin = AdminClient({"bootstrap.servers": kafka})
    for future in admin.create_topics([NewTopic(name, partitions, 1) for name in names]).values():
        future.result(SECONDS)


def delete_topic(kafka: str, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.delete_topics([name])[name].result(SECONDS)


def topic_names(kafka: str) -> set[str]:
    return set(AdminClient({"bootstrap.servers": kafka}).list_topics(timeout=SECONDS).topics)


def producer(kafka: str, transactional_id: str | None = None) -> Producer:
    """A producer that partitions like Java clients; transactional if it has an id."""
    more: dict[str, Any] = {"transactional.id": transactional_id} if transactional_id else {}
    made = Producer({"bootstrap.servers": kafka, **IDEMPOTENT, **more})
    if transactional_id:
        made.init_transactions(SECONDS)
    return made


def write(kafka: str, topic: str, records: Sequence[tuple[str, bytes | None]]) -> None:
    """Write records, outside of any transaction; they are written when this returns."""
    plain = producer(kafka)
    for key, value in records:
        plain.produce(topic, value, key)
    assert plain.flush(SECONDS) == 0


@contextmanager
def committed_reader(kafka: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": kafka,
            "group.id": "e2e-tests",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 20,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def read(kafka: str, topic: str) -> list[Record]:
    """All committed records of a topic, each partition in order."""
    found: list[Record] = []
    with committed_reader(kafka) as consumer:
        partitions = consumer.list_topics(topic, timeout=SECONDS).topics[topic].partitions
        left = set(partitions)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        deadline = monotonic() + SECONDS
        while left:
            assert monotonic() < deadline, f"topic {topic} could not be read to its end within {SECONDS:.0f} s"
            for message in consumer.consume(10_000, 0.2):
                error = message.error()
                if error is None:
                    key = message.key()
                    _, timestamp = message.timestamp()
                    found.append(
                        Record(
                            message.partition(),
                            message.offset(),
                            None if key is None else key.decode(),
                            message.value(),
                            timestamp,
                        )
                    )
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition())
                else:
                    raise AssertionError(f"topic {topic} cannot be read: {error}")
    return found
