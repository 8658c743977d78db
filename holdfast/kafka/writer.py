"""Writes single records for users: idempotent, durable when `write` returns, in no transaction."""

from collections.abc import Callable
from threading import Lock
from time import monotonic

from confluent_kafka import KafkaError as Reported
from confluent_kafka import KafkaException, Message, Producer

from holdfast.config import Settings
from holdfast.errors import KafkaError
from holdfast.kafka.clients import kafka_client
from holdfast.kafka.problems import client_log, told
from holdfast.kafka.publisher import Outgoing
from holdfast.names import TopicName

SECONDS = 30.0
QUEUED = 100_000
"""So many records wait for Kafka at a time; more wait for those."""


class RecordWriter:
    """A producer for rows that users insert. From any thread."""

    def __init__(self, settings: Settings) -> None:
        options = {
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "linger.ms": 0,
            "queue.buffering.max.messages": QUEUED,
        }
        self._producer = Producer({**kafka_client(settings), **options}, logger=client_log)
        self._lock = Lock()

    def write(self, outgoing: Outgoing) -> None:
        """Write rows (`key`, `value`, `timestamp`) to their topic."""
        failed: list[Reported] = []

        def delivered(error: Reported | None, _message: Message) -> None:
            if error is not None:
                failed.append(error)

        columns = (outgoing.rows.column(name).to_pylist() for name in ("value", "key", "timestamp"))
        deadline = monotonic() + SECONDS
        with self._lock:
            try:
                for value, key, timestamp in zip(*columns, strict=True):
                    while not self._queued(outgoing.topic, value, key, timestamp or 0, delivered):
                        if monotonic() > deadline:
                            raise self._not_in_time(outgoing.topic)
                left = self._producer.flush(SECONDS)
            except KafkaException as cause:
                raise told(f'topic "{outgoing.topic}" cannot be written', cause) from cause
        if failed:
            raise told(f'topic "{outgoing.topic}" cannot be written', failed[0])
        if left:
            raise self._not_in_time(outgoing.topic)

    def _queued(
        self,
        topic: TopicName,
        value: bytes | None,
        key: bytes | None,
        timestamp: int,
        delivered: Callable[[Reported | None, Message], None],
    ) -> bool:
        """Queue a record; False when the queue is full, after a moment in which it may have become shorter."""
        try:
            self._producer.produce(topic, value, key, timestamp=timestamp, on_delivery=delivered)
        except BufferError:
            self._producer.poll(0.1)
            return False
        return True

    def _not_in_time(self, topic: TopicName) -> KafkaError:
        return KafkaError(f'topic "{topic}" cannot be written', detail="Kafka did not answer in time.")

    def close(self) -> None:
        self._producer.flush(5.0)
