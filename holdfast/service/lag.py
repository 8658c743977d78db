"""Lag: how far queries are behind the topics that they read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock

from holdfast.catalog.objects import CatalogObject
from holdfast.catalog.snapshot import Catalog
from holdfast.kafka.port import TopicAdmin
from holdfast.names import ObjectName, QueryId, TopicName, table_query_id
from holdfast.runtime.store.port import Placement, Store
from holdfast.wall_clock import WallClock

FRESH_SECONDS = 1.0
"""Cache lifetime of topic end offsets."""


@dataclass(frozen=True, slots=True)
class Lag:
    """The next offset that a query reads from a partition, and the partition's end offset."""

    topic: TopicName
    partition: int
    current: int
    end: int


class Lags:
    """Compares the positions of queries with the end offsets of topics. Thread-safe."""

    def __init__(self, store: Store, admin: TopicAdmin, catalog: Callable[[], Catalog], clock: WallClock) -> None:
        self._store, self._admin, self._catalog, self._clock = store, admin, catalog, clock
        self._lock = Lock()
        """Protects the cached lags; held during the request to Kafka, so that concurrent callers share it."""
        self._cached: Mapping[QueryId, tuple[Lag, ...]] = {}
        self._cached_at = float("-inf")

    def lags(self) -> Mapping[QueryId, tuple[Lag, ...]]:
        """The lag of each query, including those that maintain tables over topics."""
        with self._lock:
            if self._clock.monotonic() - self._cached_at > FRESH_SECONDS:
                self._cached, self._cached_at = self._read(), self._clock.monotonic()
            return self._cached

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
