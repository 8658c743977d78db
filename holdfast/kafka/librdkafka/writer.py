"""Writes rows that users insert: idempotent, durable when `write` returns, outside of transactions.

Calls share one producer and do not wait for each other: each waits for the reports of its own rows. A topic that takes
none can fill only its share of the producer's queue.
"""

from threading import Condition
from time import monotonic, sleep

import pyarrow as pa
from confluent_kafka import KafkaError as Reported
from confluent_kafka import KafkaException, Message, Producer

from holdfast.config import Settings
from holdfast.errors import KafkaError
from holdfast.kafka.client_properties import kafka_client
from holdfast.kafka.librdkafka.errors import client_log, translate
from holdfast.kafka.records import Outgoing
from holdfast.names import TopicName
from holdfast.worker import Worker

SECONDS = 30.0
"""The delivery timeout of a record. Afterwards it is not sent again: its user gets an error."""
LATE_SECONDS = 5.0
"""How much later librdkafka may report the timeout."""
QUEUED, QUEUED_BYTES = 100_000, 1 << 30
"""The limits of the queue to Kafka; `write` blocks while it is full."""
TOPICS_TO_FILL = 10
"""How many topics it takes to fill the queue: each may have this part of it."""
MOST_CALLS = 16
"""How many calls may write to one topic at a time: those of a topic that takes nothing must not occupy all threads."""
CALL_SECONDS = 1.0
"""How long a call waits for its turn while others of its topic return."""
BATCH_ROWS = 1_000
"""Rows that are queued together."""
POLL_SECONDS = 0.2
UNACKNOWLEDGED = frozenset(
    {Reported._MSG_TIMED_OUT, Reported._TIMED_OUT, Reported._TRANSPORT, Reported.REQUEST_TIMED_OUT}
)
"""A record that fails with these may have been written without an acknowledgement."""


def most_rows() -> int:
    """How many rows of one topic the producer may have."""
    return QUEUED // TOPICS_TO_FILL


def most_bytes() -> int:
    return QUEUED_BYTES // TOPICS_TO_FILL


class _TopicQueue:
    """How much of one topic the producer has: rows without a report of whether they were written, and their calls."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._rows = self._bytes = self._calls = 0
        self._moved_at = 0.0
        """When a call last returned, or was the first."""

    def enter(self) -> bool:
        """Count a call; False when there are too many and none of them returns."""
        with self._changed:
            moves = monotonic() - self._moved_at < CALL_SECONDS
            has_entered = self._changed.wait_for(lambda: self._calls < MOST_CALLS, CALL_SECONDS if moves else 0.0)
            if has_entered:
                self._moved_at = self._moved_at if self._calls else monotonic()
                self._calls += 1
            return has_entered

    def leave(self) -> None:
        with self._changed:
            self._calls, self._moved_at = self._calls - 1, monotonic()
            self._changed.notify_all()

    def add(self, rows: int, size: int, timeout: float) -> bool:
        """Count rows, once there is room for them; False when there is none within `timeout` seconds."""
        with self._changed:
            has_room = self._changed.wait_for(lambda: self._has_room(rows, size), timeout)
            if has_room:
                self._rows, self._bytes = self._rows + rows, self._bytes + size
            return has_room

    def remove(self, rows: int, size: int) -> None:
        with self._changed:
            self._rows, self._bytes = self._rows - rows, self._bytes - size
            self._changed.notify_all()

    def _has_room(self, rows: int, size: int) -> bool:
        return self._rows == 0 or (self._rows + rows <= most_rows() and self._bytes + size <= most_bytes())


class _Batch:
    """Rows of one call of `write` that are queued together: how many have no report yet, and why some have failed."""

    def __init__(self, queue: _TopicQueue, rows: pa.Table) -> None:
        self.rows = rows
        self.failed: list[Reported] = []
        self._queue, self._size = queue, rows.nbytes
        self._changed = Condition()
        self._left: int = rows.num_rows

    def start(self, timeout: float) -> bool:
        """Wait until its topic has room for it; False when there is none within `timeout` seconds."""
        return self._queue.add(self.rows.num_rows, self._size, timeout)

    def report(self, error: Reported | None, _message: Message) -> None:
        """A row has been written, or failed."""
        self._remove(1, error)

    def drop(self, rows: int) -> None:
        """Rows will not be queued."""
        if rows:
            self._remove(rows)

    def wait(self, timeout: float) -> bool:
        """Wait for the reports of all rows; False when some are missing after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._left == 0, timeout)

    def _remove(self, rows: int, error: Reported | None = None) -> None:
        with self._changed:
            self._left -= rows
            if error is not None:
                self.failed.append(error)
            if self._left > 0:
                return
            self._changed.notify_all()
        self._queue.remove(self.rows.num_rows, self._size)


class RecordWriter:
    """Implements `port.Writer`. From any thread."""

    def __init__(self, settings: Settings) -> None:
        options = {
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "linger.ms": 0,
            "message.timeout.ms": round(SECONDS * 1000),
            "queue.buffering.max.messages": QUEUED,
            "queue.buffering.max.kbytes": QUEUED_BYTES >> 10,
        }
        self._producer = Producer({**kafka_client(settings), **options}, logger=client_log)
        self._queues: dict[TopicName, _TopicQueue] = {}
        self._reports = Worker("insert-reports", self._poll, interval=0.0)
        self._reports.start()

    @property
    def problem(self) -> str | None:
        """Why Kafka's reports are not taken, while that is so: INSERTs then wait for them in vain."""
        return self._reports.problem

    def write(self, outgoing: Outgoing) -> None:
        """Write rows (`key`, `value`, `timestamp`) to their topic.

        After an error nothing more is written, except for records that were sent and not acknowledged.
        """
        queue = self._queues.setdefault(outgoing.topic, _TopicQueue())
        if not queue.enter():
            raise KafkaError(
                f'topic "{outgoing.topic}" cannot be written now',
                detail=f"{MOST_CALLS} others wait until Kafka has written their rows. None of these rows was written.",
                hint="Write them again once Kafka takes the records of this topic.",
            )
        try:
            self._write(outgoing, queue)
        finally:
            queue.leave()

    def _write(self, outgoing: Outgoing, queue: _TopicQueue) -> None:
        batches: list[_Batch] = []
        try:
            in_time = self._queue(outgoing, queue, batches)
        except KafkaException as cause:
            raise translate(f'topic "{outgoing.topic}" cannot be written', cause) from cause
        finally:
            deadline = monotonic() + SECONDS + LATE_SECONDS
            reported = all(batch.wait(deadline - monotonic()) for batch in batches)
        failed = [error for batch in batches for error in batch.failed]
        refused = [error for error in failed if error.code() not in UNACKNOWLEDGED]
        if refused:
            raise translate(f'topic "{outgoing.topic}" cannot be written', refused[0])
        if failed or not reported or not in_time:
            raise self._unacknowledged(outgoing.topic)

    def _queue(self, outgoing: Outgoing, queue: _TopicQueue, batches: list[_Batch]) -> bool:
        """Queue the rows; False when there was no room for too long, or a row has failed meanwhile."""
        rows = outgoing.rows
        width = max(1, min(BATCH_ROWS, most_rows(), most_bytes() * rows.num_rows // max(rows.nbytes, 1)))
        deadline = monotonic() + SECONDS
        for start in range(0, rows.num_rows, width):
            batch = _Batch(queue, rows.slice(start, width))
            if not batch.start(deadline - monotonic()):
                return False
            batches.append(batch)
            if not self._queue_batch(outgoing.topic, batch, deadline) or any(each.failed for each in batches):
                return False
        return True

    def _queue_batch(self, topic: TopicName, batch: _Batch, deadline: float) -> bool:
        columns = (batch.rows.column(name).to_pylist() for name in ("value", "key", "timestamp"))
        queued = 0
        try:
            for value, key, timestamp in zip(*columns, strict=True):
                while not self._queued(topic, value, key, timestamp or 0, batch):
                    if monotonic() > deadline:
                        return False
                queued += 1
        finally:
            batch.drop(batch.rows.num_rows - queued)
        return True

    def _queued(self, topic: TopicName, value: bytes | None, key: bytes | None, timestamp: int, batch: _Batch) -> bool:
        """Queue a record; False when the queue is full, after a short wait."""
        try:
            self._producer.produce(topic, value, key, timestamp=timestamp, on_delivery=batch.report)
        except BufferError:
            sleep(0.05)
            return False
        return True

    def _poll(self) -> None:
        """Take the producer's reports, which end the calls that wait for them."""
        try:
            self._producer.poll(POLL_SECONDS)
        except KafkaException as cause:
            raise translate("reports of inserted rows cannot be read", cause) from cause

    def _unacknowledged(self, topic: TopicName) -> KafkaError:
        return KafkaError(
            f'topic "{topic}" cannot be written',
            detail="Kafka did not acknowledge the rows in time. Rows that were already sent may have been written.",
            hint="Check whether the rows exist before writing them again.",
        )

    def close(self) -> None:
        self._producer.flush(5.0)
        self._reports.stop()
