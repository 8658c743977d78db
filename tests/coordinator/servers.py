"""Servers of a test, one after the other: stepped, over one in-memory Kafka, one store and one clock."""

from holdfast.app import Service
from holdfast.config import Settings
from holdfast.kafka.memory.broker import MemoryBroker
from holdfast.kafka.memory.kafka import MemoryKafka
from holdfast.kafka.memory.topics import MemoryTopics
from holdfast.names import TopicName
from holdfast.runtime.spark.engine_pair import EnginePair
from holdfast.runtime.store.duckdb.store import open_store
from holdfast.wall_clock import ManualClock

NOW_MS = 1_800_000_000_000
LONG = 2.5
"""Seconds after which every interval has passed, and history that no window or hold retains is compacted."""


class Servers:
    """Starts servers. Each runs until it is idle; the clock advances only in `let_pass`."""

    def __init__(self, settings: Settings, engines: EnginePair) -> None:
        self.settings, self._engines = settings, engines
        self.clock = ManualClock(NOW_MS)
        self.broker = MemoryBroker(self.clock)
        self.topics = MemoryTopics(self.broker)
        self._running: Service | None = None

    def start(self) -> Service:
        """Start a server after stopping the previous one."""
        self.stop()
        self._running = Service(
            self.settings,
            self._engines.ticks.sessions,
            open_store(self.settings.data_dir / "store"),
            MemoryKafka(self.broker, self.settings.service_id),
            self.clock,
            engines=self._engines,
            stepped=True,
        )
        self._running.run_until_idle()
        return self._running

    def stop(self) -> None:
        if self._running is not None:
            self._running.stop()
            self._running = None

    def let_pass(self, seconds: float = LONG) -> None:
        """Advance the clock, and let the server do what is due."""
        assert self._running is not None
        self.clock.advance(seconds)
        self._running.run_until_idle()

    def write(
        self, topic: str, *values: bytes | None, key: bytes | None = b"k", partition: int = 0, timestamp: int = 0
    ) -> None:
        """Write records as another application does; the running server reads them."""
        for value in values:
            self.broker.append(TopicName(topic), value, key, partition=partition, timestamp=timestamp)
        if self._running is not None:
            self._running.run_until_idle()
