"""Writes rows that users insert: idempotent, durable when `write` returns, outside of transactions."""

from collections.abc import Callable
from threading import Lock
from time import monotonic

from confluent_kafka import KafkaError as Reported
from confluent_kafka import KafkaException, Message, Producer

from holdfast.config import Settings
from holdfast.errors import KafkaError
from holdfast.kafka.client_properties import kafka_client
from holdfast.kafka.librdkafka.errors import client_log, translate
from holdfast.kafka.records import Outgoing
from holdfast.names import TopicName

SECONDS = 30.0
"""The delivery timeout of a record. Afterwards it is not sent again: its user gets an error."""
LATE_SECONDS = 5.0
"""How much later librdkafka may report the timeout."""
QUEUED = 100_000
"""The length of the queue to Kafka; `write` blocks while it is full."""
UNACKNOWLEDGED = frozenset(
    {Reported._MSG_TIMED_OUT, Reported._TIMED_OUT, Reported._TRANSPORT, Reported.REQUEST_TIMED_OUT}
)
"""A record that fails with these may have been written without an acknowledgement."""


class RecordWriter:
    """Implements `port.Writer`. From any thread."""

    def __init__(self, settings: Settings) -> None:
        options = {
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "linger.ms": 0,
            "message.timeout.ms": round(SECONDS * 1000),
            "queue.buffering.max.messages": QUEUED,
        }
        self._producer = Producer({**kafka_client(settings), **options}, logger=client_log)
        self._lock = Lock()

    def write(self, outgoing: Outgoing) -> None:
        """Write rows (`key`, `value`, `timestamp`) to their topic.

        After an error nothing more is written, except for records that were sent and not acknowledged.
        """
        failed: list[Reported] = []

        def delivered(error: Reported | None, _message: Message) -> None:
            if error is not None:
                failed.append(error)

        with self._lock:
            try:
                in_time = self._queue(outgoing, delivered)
            except KafkaException as cause:
                raise translate(f'topic "{outgoing.topic}" cannot be written', cause) from cause
            finally:
                left = self._producer.flush(SECONDS + LATE_SECONDS)
        refused = [error for error in failed if error.code() not in UNACKNOWLEDGED]
        if refused:
            raise translate(f'topic "{outgoing.topic}" cannot be written', refused[0])
        if failed or left or not in_time:
            raise self._unacknowledged(outgoing.topic)

    def _queue(self, outgoing: Outgoing, delivered: Callable[[Reported | None, Message], None]) -> bool:
        """Queue the rows; False when the queue was full for too long."""
        columns = (outgoing.rows.column(name).to_pylist() for name in ("value", "key", "timestamp"))
        deadline = monotonic() + SECONDS
        for value, key, timestamp in zip(*columns, strict=True):
            while not self._queued(outgoing.topic, value, key, timestamp or 0, delivered):
                if monotonic() > deadline:
                    return False
        return True

    def _queued(
        self,
        topic: TopicName,
        value: bytes | None,
        key: bytes | None,
        timestamp: int,
        delivered: Callable[[Reported | None, Message], None],
    ) -> bool:
        """Queue a record; False when the queue is full, after a short wait."""
        try:
            self._producer.produce(topic, value, key, timestamp=timestamp, on_delivery=delivered)
        except BufferError:
            self._producer.poll(0.1)
            return False
        return True

    def _unacknowledged(self, topic: TopicName) -> KafkaError:
        return KafkaError(
            f'topic "{topic}" cannot be written',
            detail="Kafka did not acknowledge the rows in time. Rows that were already sent may have been written.",
            hint="Check whether the rows exist before writing them again.",
        )

    def close(self) -> None:
        self._producer.flush(5.0)
