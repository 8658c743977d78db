"""Kafka in memory: what one server uses of a `MemoryBroker`."""

from collections.abc import Callable, Mapping

from holdfast.errors import ServiceTaken
from holdfast.kafka.memory.broker import MemoryBroker
from holdfast.kafka.memory.consumer import MemoryConsumer, MemoryRanges
from holdfast.kafka.memory.producer import MemoryProducer, MemoryWriter
from holdfast.kafka.memory.topics import MemoryTopics
from holdfast.kafka.port import Fenced
from holdfast.names import ServiceId


class MemoryLease:
    """Implements `port.Lease`: held until it is released."""

    problem: str | None = None

    def __init__(self, broker: MemoryBroker, service_id: ServiceId) -> None:
        self._broker, self._service_id = broker, service_id
        self._owner: str | None = None

    def acquire(self, owner: str) -> None:
        with self._broker.request():
            if self._broker.leases.get(self._service_id, owner) != owner:
                raise ServiceTaken(
                    f'another server runs with service id "{self._service_id}"',
                    hint="Stop it, or give this server another --service-id.",
                )
            self._broker.leases[self._service_id] = self._owner = owner

    def confirm(self) -> None:
        with self._broker.request():
            if self._broker.leases.get(self._service_id) != self._owner:
                raise Fenced("another server has taken this service id", hint="Stop one of the two.")

    def release(self) -> None:
        with self._broker.changed:
            if self._owner is not None and self._broker.leases.get(self._service_id) == self._owner:
                del self._broker.leases[self._service_id]
            self._owner = None


class MemoryKafka:
    """Implements `port.Kafka`. With a `poll_limit`, a poll brings at most that many records, so ticks are small."""

    def __init__(self, broker: MemoryBroker, service_id: ServiceId, *, poll_limit: int | None = None) -> None:
        self._broker, self._service_id = broker, service_id
        self.poll_limit = poll_limit
        self.topics = MemoryTopics(broker)
        self.ranges = self.push_ranges = self.internal_ranges = MemoryRanges(broker)

    @property
    def spark_options(self) -> Mapping[str, str]:
        """Spark cannot read what is in this process: `small_tick_records` has to be large enough for all."""
        return {}

    def consumer(self) -> MemoryConsumer:
        return MemoryConsumer(self._broker, lambda: self.poll_limit)

    def producer(
        self,
        transactional_id: str,
        *,
        confirm: Callable[[], None] = lambda: None,
        linger_ms: int = 5,  # noqa: ARG002
    ) -> MemoryProducer:
        return MemoryProducer(self._broker, transactional_id, confirm)

    def writer(self) -> MemoryWriter:
        return MemoryWriter(self._broker)

    def lease(self, *, on_lost: Callable[[], None]) -> MemoryLease:  # noqa: ARG002
        return MemoryLease(self._broker, self._service_id)

    def close(self) -> None:
        pass
