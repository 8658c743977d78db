"""A transactional producer whose failures are told apart: it did not happen, another took over, Kafka is away."""

from collections.abc import Callable
from time import monotonic

from confluent_kafka import KafkaError as Reported
from confluent_kafka import KafkaException, Message, Producer

from holdfast.config import Settings
from holdfast.errors import KafkaError
from holdfast.kafka.clients import kafka_client
from holdfast.kafka.problems import FENCED, TransactionAborted, client_log, reported, told

TRANSACTION_MS = 300_000
"""Far above the longest transaction; a server that does not come back blocks its readers for no longer."""
COMMIT_SECONDS = 240.0
ATTEMPT_SECONDS = 30.0

Delivered = Callable[[Reported | None, Message], None]


class TransactionalProducer:
    """One producer with a transactional id. For one thread; a new one with the same id fences this one."""

    def __init__(self, settings: Settings, transactional_id: str, *, linger_ms: int = 5) -> None:
        self.id = transactional_id
        self._undelivered: Reported | None = None
        self._producer = Producer(
            {
                **kafka_client(settings),
                "transactional.id": transactional_id,
                "transaction.timeout.ms": TRANSACTION_MS,
                "partitioner": "murmur2_random",
                "compression.type": "lz4",
                "linger.ms": linger_ms,
                "message.max.bytes": 16_777_216,
                "queue.buffering.max.messages": 500_000,
                "queue.buffering.max.kbytes": 262_144,
                "delivery.report.only.error": True,
                "on_delivery": self._delivered,
            },
            logger=client_log,
        )

    def start(self) -> None:
        """Fence older producers of this id, and have their unfinished transaction aborted or its commit finished."""
        self._retried("transactions cannot be started", self._producer.init_transactions)

    def begin(self) -> None:
        self._undelivered = None
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
        headers: list[tuple[str, bytes | None]] | None = None,
        on_delivery: Delivered | None = None,
    ) -> None:
        """Queue a record; waits while the queue is full. Partition -1 is by key, timestamp 0 is now."""
        more = {"on_delivery": on_delivery} if on_delivery else {}
        while True:
            try:
                self._producer.produce(topic, value, key, partition, timestamp=timestamp, headers=headers or [], **more)
                return
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as cause:
                raise self._failed(f'topic "{topic}" cannot be written', cause) from cause

    def flush(self) -> None:
        """Wait until every record is with the brokers; their fate is the transaction's."""
        self._producer.flush(ATTEMPT_SECONDS)

    def commit(self) -> None:
        """Commit; when this returns, readers see all of it. `TransactionAborted`: none of it, for ever."""
        self._retried("a transaction cannot be committed", self._producer.commit_transaction)

    def abort(self) -> None:
        """Give the transaction up; none of it will be read."""
        self._retried("a transaction cannot be aborted", self._producer.abort_transaction)

    def close(self) -> None:
        """Give up what is queued. An unfinished transaction is aborted by the next producer of this id."""
        self._producer.purge()
        self._producer.close()

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
            self.abort()
            return TransactionAborted(doing, detail=reason.detail, hint=reason.hint)
        return told(doing, cause)

    def _delivered(self, error: Reported | None, _message: Message) -> None:
        # The first failure is the reason; those that follow say only that the batch was given up.
        if error is not None and self._undelivered is None:
            self._undelivered = error
