"""A transactional producer whose failures are told apart: it did not happen, another took over, Kafka is away."""

from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from confluent_kafka import KafkaError as Reported
from confluent_kafka import KafkaException, Message, Producer

from holdfast.config import Settings
from holdfast.errors import KafkaError
from holdfast.kafka.clients import kafka_client
from holdfast.kafka.problems import FENCED, TransactionAborted, client_log, reported, told
from holdfast.kafka.records import Partition
from holdfast.names import TopicName

TRANSACTION_MS = 300_000
"""Far above the longest transaction; a server that does not come back blocks its readers for no longer."""
COMMIT_SECONDS = 240.0
ATTEMPT_SECONDS = 30.0
PURGED = (Reported._PURGE_QUEUE, Reported._PURGE_INFLIGHT)
"""What is said of records that a failed transaction takes with it: never the reason."""


class TransactionalProducer:
    """One producer with a transactional id. For one thread; a new one with the same id fences this one."""

    def __init__(self, settings: Settings, transactional_id: str, *, linger_ms: int = 5) -> None:
        self.id = transactional_id
        self._undelivered: Reported | None = None
        self._ends: dict[Partition, int] = {}
        self._properties: dict[str, Any] = {
            **kafka_client(settings),
            "transactional.id": transactional_id,
            "transaction.timeout.ms": TRANSACTION_MS,
            "partitioner": "murmur2_random",
            "compression.type": "lz4",
            "linger.ms": linger_ms,
            "message.max.bytes": 16_777_216,
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": 262_144,
            "topic.metadata.propagation.max.ms": 10_000,
            "on_delivery": self._delivered,
        }
        self._producer = Producer(self._properties, logger=client_log)

    def start(self) -> None:
        """Fence older producers of this id, and have their unfinished transaction aborted or its commit finished."""
        self._retried("transactions cannot be started", self._producer.init_transactions)

    def begin(self) -> None:
        self._undelivered = None
        self._ends = {}
        try:
            self._producer.begin_transaction()
        except KafkaException as cause:
            raise self._failed("a transaction cannot be begun", cause) from cause

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        *,
        timestamp: int = 0,
        partition: int = -1,
        headers: list[tuple[str, str | bytes | None]] | None = None,
    ) -> None:
        """Queue a record; waits while the queue is full. Partition -1 is by key, timestamp 0 is now."""
        while True:
            try:
                self._producer.produce(topic, value, key, partition, timestamp=timestamp, headers=headers or [])
                return
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as cause:
                raise self._failed(f'topic "{topic}" cannot be written', cause) from cause

    def flush(self) -> None:
        """Wait until every record is with the brokers; their fate is the transaction's."""
        self._producer.flush(ATTEMPT_SECONDS)

    def commit(self) -> Mapping[Partition, int]:
        """Commit, and say where the transaction's records end in each partition.

        It has then happened for good, and is seen by readers as soon as its markers are written: some milliseconds
        later. `TransactionAborted`: nothing of it has happened, or will.
        """
        self._retried("a transaction cannot be committed", self._producer.commit_transaction)
        return self._ends

    def resolve(self) -> None:
        """Bring a commit to its end that was not known: it has happened then, or never will."""
        try:
            self._producer.commit_transaction(ATTEMPT_SECONDS)
        except KafkaException as cause:
            if reported(cause).code() == Reported._STATE:  # There is none that was begun and not ended.
                return
            problem = self._failed("a transaction cannot be committed", cause)
            if not isinstance(problem, TransactionAborted):
                raise problem from cause

    def abort(self) -> None:
        """Give the transaction up; none of it will be read."""
        self._retried("a transaction cannot be aborted", self._producer.abort_transaction)

    def close(self) -> None:
        """Give up what is queued. An unfinished transaction is aborted by the next producer of this id."""
        self._producer.purge()

    def _retried(self, doing: str, call: Callable[[float], None]) -> None:
        deadline = monotonic() + COMMIT_SECONDS
        while True:
            try:
                call(ATTEMPT_SECONDS)
                return
            except KafkaException as cause:
                if not reported(cause).retriable() or monotonic() > deadline:
                    raise self._failed(doing, cause) from cause

    def _failed(self, doing: str, cause: KafkaException) -> KafkaError:
        error = reported(cause)
        if error.txn_requires_abort() and error.code() not in FENCED:
            reason = told(doing, self._undelivered or error)
            self._abort_and_renew()
            return TransactionAborted(doing, detail=reason.detail, hint=reason.hint)
        return told(doing, cause)

    def _abort_and_renew(self) -> None:
        """Abort and go on with a new producer: after a refused record librdkafka's own counts sequences wrongly.

        The abort succeeds only while no other producer has this id: a server that lost it does not take it back.
        """
        self.abort()
        self._producer = Producer(self._properties, logger=client_log)
        self.start()

    def _delivered(self, error: Reported | None, message: Message) -> None:
        if error is None:
            self._ends[TopicName(message.topic() or ""), message.partition() or 0] = (message.offset() or 0) + 1
        elif self._undelivered is None and error.code() not in PURGED:
            # The first failure is the reason; those that follow say only that the batch was given up.
            self._undelivered = error
