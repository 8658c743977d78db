"""Lag: how far queries are behind the topics that they read."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Event, Lock, Thread

from holdfast.catalog.objects import CatalogObject
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import HoldfastError
from holdfast.kafka.port import TopicAdmin
from holdfast.names import ObjectName, QueryId, TopicName, table_query_id
from holdfast.runtime.store.port import Placement, Store
from holdfast.wall_clock import WallClock

log = logging.getLogger(__name__)

FRESH_SECONDS = 1.0
"""Cache lifetime of topic end offsets."""
FAILED_SECONDS = 10.0
"""How long Kafka is not asked again after it did not answer."""
WAIT_SECONDS = 2.0
"""How long a caller waits for Kafka before it gets the last lags."""


@dataclass(frozen=True, slots=True)
class Lag:
    """The next offset that a query reads from a partition, and the partition's end offset."""

    topic: TopicName
    partition: int
    current: int
    end: int


class Lags:
    """Compares the positions of queries with the end offsets of topics. Thread-safe.

    A thread of its own asks Kafka, so that no caller waits long while Kafka is away: it then gets the last lags.
    """

    def __init__(self, store: Store, admin: TopicAdmin, catalog: Callable[[], Catalog], clock: WallClock) -> None:
        self._store, self._admin, self._catalog, self._clock = store, admin, catalog, clock
        self._lock = Lock()
        """Protects the fields that follow; never held while Kafka is asked."""
        self._cached: Mapping[QueryId, tuple[Lag, ...]] = {}
        self._read_at, self._has_failed = float("-inf"), False
        self._reading: Event | None = None

    def lags(self) -> Mapping[QueryId, tuple[Lag, ...]]:
        """The lag of each query, including those that maintain tables over topics."""
        with self._lock:
            if self._reading is None and self._clock.monotonic() - self._read_at > self._pause():
                self._reading = Event()
                Thread(target=self._refresh, args=[self._reading], name="lags", daemon=True).start()
            reading = self._reading
        if reading is not None:
            reading.wait(WAIT_SECONDS)
        with self._lock:
            return self._cached

    def _refresh(self, reading: Event) -> None:
        found = None
        try:
            found = self._read()
        except HoldfastError as error:
            log.info("lags not read: error=%s", error)
        except Exception:
            log.exception("lags not read")
        with self._lock:
            self._cached, self._has_failed = (self._cached, True) if found is None else (found, False)
            self._read_at, self._reading = self._clock.monotonic(), None
        reading.set()

    def _pause(self) -> float:
        return FAILED_SECONDS if self._has_failed else FRESH_SECONDS

    def _read(self) -> Mapping[QueryId, tuple[Lag, ...]]:
        catalog = self._catalog()
        read = {
            query.id: {t for name in query.sources for t in topics_of(name, catalog)}
            for query in catalog.queries.values()
        }
        read |= {table_query_id(t.name): {t.topic} for t in catalog.tables if not t.derived and t.topic is not None}
        known = self._admin.describe_each({topic for topics in read.values() for topic in topics}).found
        ends = self._admin.ends_each([(t.name, p) for t in known.values() for p in range(t.partitions)]).found
        remap = {(m.topic, m.partition): m.offset for m in self._store.remap_ends()}
        found: dict[QueryId, tuple[Lag, ...]] = {}
        for query, topics in read.items():
            position = self._store.position(query)
            at = remap if position.placement is Placement.LIVE else position.offsets
            found[query] = tuple(
                Lag(topic, partition, at.get((topic, partition), 0), end)
                for (topic, partition), end in sorted(ends.items())
                if topic in topics
            )
        return found


def topics_of(name: ObjectName, catalog: Catalog) -> set[TopicName]:
    """The topics that an object is derived from."""
    found: CatalogObject | None = catalog.find(name)
    if found is None:
        return set()
    query = catalog.queries.get(found.query) if found.query is not None else None
    if query is None:
        return {found.topic} if found.topic is not None else set()
    return {topic for source in query.sources for topic in topics_of(source, catalog)}
