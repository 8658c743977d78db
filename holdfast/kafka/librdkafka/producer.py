"""A transactional producer that distinguishes its failures: a refused record, an aborted transaction, fenced, in doubt.

librdkafka's transaction is a state machine of its own, and some of its states are dead ends: a commit that timed out
cannot be aborted, a refused record leaves wrong sequence numbers, a topic deleted meanwhile keeps an abort from ending.
So there is one way on from every failure, `recover`: a new producer of the same id. Its start makes the brokers
complete or abort what the old one left.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from time import monotonic, sleep
from typing import Any

from confluent_kafka import KafkaError as Reported
from confluent_kafka import KafkaException, Message, Producer

from holdfast.config import Settings
from holdfast.errors import KafkaError
from holdfast.kafka.client_properties import kafka_client
from holdfast.kafka.librdkafka.errors import FENCED, client_log, reported, translate
from holdfast.kafka.port import HeaderList, RecordRefused, TransactionAborted
from holdfast.kafka.records import Partition
from holdfast.names import TopicName
from holdfast.wall_clock import seconds_since_boot

log = logging.getLogger(__name__)

TRANSACTION_MS = 300_000
"""Far above the longest transaction. A server that crashed for good blocks readers of its topics this long."""
COMMIT_SECONDS = 240.0
ATTEMPT_SECONDS = 30.0
ABORT_SECONDS = 10.0
STALL_SECONDS = 15.0
"""How long the brokers may take for the records of one topic, once they have taken those of others."""
PAUSE_SECONDS = 0.1
"""Between two attempts of a call that fails at once; doubles up to `LONGEST_PAUSE_SECONDS`."""
LONGEST_PAUSE_SECONDS = 5.0
REPORT_SECONDS = 5.0
"""How long the report of a refused record may take, once the transaction has failed."""
PROPAGATION_MS = 10_000
"""How long a topic may be missing that was just created, until a record for it is refused."""
PURGED = (Reported._PURGE_QUEUE, Reported._PURGE_INFLIGHT)
"""Reported for records that a failed transaction drops: never its cause."""
OF_RECORD = frozenset(
    {
        Reported.MSG_SIZE_TOO_LARGE,
        Reported.INVALID_MSG_SIZE,
        Reported.RECORD_LIST_TOO_LARGE,
        Reported.INVALID_MSG,
        Reported.INVALID_RECORD,
        Reported.INVALID_TIMESTAMP,
    }
)
"""Refusals of a record, or of the records that were sent with it. The topic may take others."""
LASTING = OF_RECORD | frozenset(
    {
        Reported.TOPIC_AUTHORIZATION_FAILED,
        Reported.TOPIC_EXCEPTION,
        Reported.POLICY_VIOLATION,
        Reported.UNKNOWN_TOPIC_OR_PART,
        Reported._UNKNOWN_TOPIC,
        Reported._UNKNOWN_PARTITION,
        Reported._NOENT,
    }
)
"""Refusals that the same record meets again, until somebody changes the topic or its access rights."""


class TransactionalProducer:
    """Implements `port.Producer`. For one thread; a new one with the same id fences this one."""

    def __init__(
        self,
        settings: Settings,
        transactional_id: str,
        *,
        linger_ms: int = 5,
        confirm: Callable[[], None] = lambda: None,
    ) -> None:
        """`confirm` raises unless this server still holds its lease: only then may it take its id again."""
        self.id = transactional_id
        self._confirm = confirm
        self._refusal: tuple[TopicName, Reported] | None = None
        self._outstanding: Counter[TopicName] = Counter()
        self._ends: dict[Partition, int] = {}
        self._is_broken = False
        self._is_committing = False
        self._begun_at: float | None = None
        """When the open transaction began."""
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
            "topic.metadata.propagation.max.ms": PROPAGATION_MS,
            "on_delivery": self._delivered,
        }
        self._producer = Producer(self._properties, logger=client_log)

    def start(self) -> None:
        """Fence older producers of this id and complete or abort their unfinished transaction."""
        try:
            _retried(self._producer.init_transactions)
        except KafkaException as cause:
            self._is_broken = True
            raise translate("transactions cannot be started", cause) from cause

    def begin(self) -> None:
        """Begin a transaction; after a failure, `recover` first."""
        if self._is_broken:
            self.recover()
        self._refusal = None
        self._outstanding = Counter()
        self._ends = {}
        self._is_committing = False
        self._begun_at = seconds_since_boot()
        try:
            self._producer.begin_transaction()
        except KafkaException as cause:
            raise self._failed("a transaction cannot be started", cause) from cause

    def produce(
        self,
        topic: TopicName,
        value: bytes | None,
        key: bytes | None,
        *,
        timestamp: int = 0,
        partition: int = -1,
        headers: HeaderList | None = None,
    ) -> None:
        """Queue a record; waits while the queue is full. Partition -1 is chosen by key, timestamp 0 is now."""
        while True:
            try:
                self._producer.produce(
                    topic,
                    value,
                    key,
                    partition,
                    timestamp=timestamp,
                    headers=headers or [],
                )
                self._outstanding[topic] += 1
                return
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as cause:
                if reported(cause).code() in LASTING:
                    self._refusal = (topic, reported(cause))
                elif reported(cause).code() == Reported._STATE:
                    self._await_refusal()
                raise self._failed(f'topic "{topic}" cannot be written', cause) from cause

    def flush(self) -> None:
        """Wait until the brokers have every record of the transaction."""
        self._producer.flush(ATTEMPT_SECONDS)

    def commit(self) -> Mapping[Partition, int]:
        """Commit; returns where the transaction's records end in each partition.

        The commit is then final, and readers see it as soon as the brokers have written its markers, some milliseconds
        later. `TransactionAborted`: nothing of it was or will be committed; `RecordRefused` also names the topic.
        Any other error leaves the outcome open until `recover`.
        """
        self._check_stalled()
        self._is_committing = True
        try:
            _retried(self._producer.commit_transaction)
        except KafkaException as cause:
            raise self._failed("a transaction cannot be committed", cause) from cause
        self._is_committing, self._begun_at = False, None
        return self._ends

    def recover(self) -> None:
        """Continue after a failure: no transaction is open then, and one in doubt is committed or never will be.

        A transaction that was open for too long, as that of a process that was suspended, fences its own producer: then
        the lease decides whether another server has taken over.

        Raises while Kafka cannot be reached, and `Fenced` when another server has taken over.
        """
        if self._is_committing and self._complete():
            return
        self._is_broken = True
        try:
            # Aborts where librdkafka can, and learns whether it is fenced; the new producer does the rest.
            self._producer.abort_transaction(ABORT_SECONDS)
        except KafkaException as cause:
            if self._is_fenced(reported(cause)):
                raise translate("a transaction cannot be aborted", cause) from cause
        self._confirm()
        self.close()
        self._producer = Producer(self._properties, logger=client_log)
        self.start()
        self._is_broken = self._is_committing = False
        self._begun_at = None

    def _complete(self) -> bool:
        """Try once more to commit what is in doubt; False when that cannot be."""
        try:
            self._producer.commit_transaction(ATTEMPT_SECONDS)
        except KafkaException as cause:
            if self._is_fenced(reported(cause)):
                raise translate("a transaction cannot be committed", cause) from cause
            return False
        self._is_broken = self._is_committing = False
        self._begun_at = None
        return True

    def close(self) -> None:
        """Drop queued records. The next producer of this id aborts an unfinished transaction."""
        self._producer.purge()

    def _check_stalled(self) -> None:
        """Refuse the topics whose records the brokers do not take while they take others: one must not hold up all."""
        try:
            self._producer.flush(STALL_SECONDS)
        except (KafkaException, SystemError):
            return  # The binding raises fatal errors between delivery reports; the commit returns them.
        stalled = sorted(topic for topic, count in self._outstanding.items() if count > 0)
        if self._refusal is None and stalled and len(stalled) < len(self._outstanding):
            self._is_broken = True
            raise RecordRefused(
                f'topic "{stalled[0]}" does not take records',
                topic=stalled[0],
                lasting=False,
                detail=f"The brokers took those of other topics, and none of its in {STALL_SECONDS:.0f} s.",
                hint="Check that its partitions have a leader and enough replicas in sync.",
            )

    def _await_refusal(self) -> None:
        """Wait for the delivery report of the record that failed the transaction while others were being queued."""
        deadline = monotonic() + REPORT_SECONDS
        while self._refusal is None and monotonic() < deadline:
            try:
                self._producer.poll(PAUSE_SECONDS)
            except (KafkaException, SystemError):
                return

    def _failed(self, problem: str, cause: KafkaException) -> KafkaError:
        """The error of a call that failed. The producer must not be used any more."""
        self._is_broken = True
        error = reported(cause)
        if error.code() in FENCED and not self._is_fenced(error):
            return KafkaError(
                problem,
                detail=f"It was open for longer than {TRANSACTION_MS / 1000:.0f} s, after which Kafka aborts it.",
                hint="It is tried again. The usual cause is a server or a broker that was suspended.",
            )
        if error.code() in FENCED or error.fatal():
            return translate(problem, cause)
        if self._refusal is not None:
            topic, refused = self._refusal
            reason = translate(f'topic "{topic}" refused a record', refused)
            return RecordRefused(
                reason.message,
                topic=topic,
                lasting=refused.code() in LASTING,
                of_record=refused.code() in OF_RECORD,
                detail=reason.detail,
                hint=reason.hint,
            )
        translated = translate(problem, cause)
        if error.txn_requires_abort():
            lasting = error.code() in LASTING
            return TransactionAborted(problem, lasting=lasting, detail=translated.detail, hint=translated.hint)
        return translated

    def _is_fenced(self, error: Reported) -> bool:
        """Whether another producer has fenced this one, and not Kafka, which does that when it aborts a transaction."""
        is_expired = self._begun_at is not None and seconds_since_boot() - self._begun_at > TRANSACTION_MS / 1000
        return error.code() in FENCED and not is_expired

    def _delivered(self, error: Reported | None, message: Message) -> None:
        topic = TopicName(message.topic() or "")
        if error is None:
            self._outstanding[topic] -= 1
            self._ends[topic, message.partition() or 0] = (message.offset() or 0) + 1
        elif self._refusal is None and error.code() not in PURGED:
            # The first failure is the cause; later ones only report that the batch was dropped.
            self._refusal = (topic, error)


def _retried(call: Callable[[float], None]) -> None:
    """Call again while librdkafka says that it may succeed later, with pauses where it says so at once."""
    deadline, pause = monotonic() + COMMIT_SECONDS, PAUSE_SECONDS
    while True:
        started = monotonic()
        try:
            call(ATTEMPT_SECONDS)
            return
        except KafkaException as cause:
            error = reported(cause)
            # A conflict is with a call that will never be repeated: waiting does not end it.
            if not error.retriable() or error.code() == Reported._CONFLICT or monotonic() > deadline:
                raise
        if monotonic() - started < 1.0:
            sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
