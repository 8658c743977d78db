"""Writing to the in-memory Kafka: in transactions, and single rows."""

from collections.abc import Callable, Mapping

from holdfast.kafka.memory.broker import MemoryBroker, Transaction
from holdfast.kafka.port import Fenced, HeaderList, RecordRefused
from holdfast.kafka.records import Outgoing, Partition
from holdfast.names import TopicName


class MemoryProducer:
    """Implements `port.Producer`."""

    def __init__(self, broker: MemoryBroker, transactional_id: str, confirm: Callable[[], None]) -> None:
        self.id = transactional_id
        self._broker, self._confirm = broker, confirm
        self._epoch = 0
        self._transaction: Transaction | None = None
        self._refusal: RecordRefused | None = None
        self._ends: dict[Partition, int] = {}

    def start(self) -> None:
        broker = self._broker
        with broker.request():
            self._epoch = broker.epochs[self.id] = broker.epochs.get(self.id, 0) + 1
            unfinished = broker.open_transactions.get(self.id)
            if unfinished is not None:
                broker.end_transaction(self.id, unfinished, commit=False)

    def begin(self) -> None:
        with self._broker.request():
            self._check_epoch("a transaction cannot be started")
            self._transaction = self._broker.open_transactions[self.id] = Transaction()
            self._refusal, self._ends = None, {}

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
        try:
            with self._broker.request():
                entry = self._broker.append(
                    topic,
                    value,
                    key,
                    timestamp=timestamp,
                    partition=partition,
                    headers=headers,
                    transaction=self._transaction,
                )
        except RecordRefused as refusal:
            self._refusal = self._refusal or refusal
        else:
            self._ends[entry.topic, entry.partition] = entry.offset + 1

    def commit(self) -> Mapping[Partition, int]:
        doing = "a transaction cannot be committed"
        with self._broker.request():
            self._check_epoch(doing)
            if self._refusal is not None:
                self._abort()
                raise self._refusal
            assert self._transaction is not None, "no transaction was begun"
            self._broker.end_transaction(self.id, self._transaction, commit=True)
            self._transaction = None
            return self._ends

    def recover(self) -> None:
        with self._broker.request():
            self._check_epoch("a transaction cannot be aborted")
            self._abort()
            self._confirm()
            self.start()

    def _abort(self) -> None:
        if self._transaction is not None:
            self._broker.end_transaction(self.id, self._transaction, commit=False)
            self._transaction = None

    def close(self) -> None:
        pass

    def _check_epoch(self, doing: str) -> None:
        if self._broker.epochs.get(self.id) != self._epoch:
            raise Fenced(doing, hint="Another server runs with the same service_id; stop one of the two.")


class MemoryWriter:
    """Implements `port.Writer`."""

    problem: str | None = None

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker

    def write(self, outgoing: Outgoing) -> None:
        columns = (outgoing.rows.column(name).to_pylist() for name in ("value", "key", "timestamp"))
        with self._broker.request():
            for value, key, timestamp in zip(*columns, strict=True):
                self._broker.append(outgoing.topic, value, key, timestamp=timestamp or 0)

    def close(self) -> None:
        pass
