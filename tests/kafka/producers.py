"""Kafka producers for tests, independent of the package."""

from collections.abc import Iterable

from confluent_kafka import Producer

from holdfast.config import Settings
from holdfast.kafka.client_properties import kafka_client


def write(settings: Settings, topic: str, *values: bytes | None, key: bytes | None = b"k", **more) -> None:
    """Write records outside any transaction."""
    producer = Producer(kafka_client(settings))
    for value in values:
        producer.produce(topic, value, key, **more)
    assert producer.flush(10) == 0


def open_transaction(settings: Settings, topic: str, values: Iterable[bytes], *, id: str) -> Producer:
    """A producer whose transaction has written `values` and is neither committed nor aborted."""
    producer = Producer({**kafka_client(settings), "transactional.id": id})
    producer.init_transactions(10)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, b"k")
    producer.flush(10)
    return producer
