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
"""How long Kafka may take for a record. Then it is not sent any more, as its user is told that it was not written."""
LATE_SECONDS = 5.0
"""How much later than that librdkafka may notice."""
QUEUED = 100_000
"""So many records wait for Kafka at a time; more wait for those."""
UNANSWERED = frozenset({Reported._MSG_TIMED_OUT, Reported._TIMED_OUT, Reported._TRANSPORT, Reported.REQUEST_TIMED_OUT})
"""A record that ends so may have been sent and never answered."""


class RecordWriter:
    """A producer for rows that users insert. From any thread."""

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

        None is written after this has raised, but for one that was sent and not answered: the error then says so.
        """
        failed: list[Reported] = []

        def delivered(error: Reported | None, _message: Message) -> None:
            if error is not None:
                failed.append(error)

        with self._lock:
            try:
                in_time = self._queue(outgoing, delivered)
            except KafkaException as cause:
                raise told(f'topic "{outgoing.topic}" cannot be written', cause) from cause
            finally:
                left = self._producer.flush(SECONDS + LATE_SECONDS)
        refused = [error for error in failed if error.code() not in UNANSWERED]
        if refused:
            raise told(f'topic "{outgoing.topic}" cannot be written', refused[0])
        if failed or left or not in_time:
            raise self._unanswered(outgoing.topic)

    def _queue(self, outgoing: Outgoing, delivered: Callable[[Reported | None, Message], None]) -> bool:
        """Queue the rows; False when not all found room in time."""
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
        """Queue a record; False when the queue is full, after a moment in which it may have become shorter."""
        try:
            self._producer.produce(topic, value, key, timestamp=timestamp, on_delivery=delivered)
        except BufferError:
            self._producer.poll(0.1)
            return False
        return True

    def _unanswered(self, topic: TopicName) -> KafkaError:
        return KafkaError(
            f'topic "{topic}" cannot be written',
            detail="Kafka did not answer in time. Nothing is sent any more, but what had been sent may be written.",
            hint="Look whether the rows are there before you write them again.",
        )

    def close(self) -> None:
        self._producer.flush(5.0)
