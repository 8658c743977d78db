"""How far queries are behind the topics that they read."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock

from holdfast.catalog.objects import CatalogObject, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.kafka.admin import Admin
from holdfast.names import ObjectName, QueryId, TopicName
from holdfast.runtime.progress import Place, place_of, read_ends
from holdfast.runtime.store.port import Store

FRESH_SECONDS = 1.0
"""So long the ends of topics are not asked for again."""


@dataclass(frozen=True, slots=True)
class Lag:
    """The next offset that a query takes of a partition, and where the partition ends."""

    topic: TopicName
    partition: int
    current: int
    end: int


class Lags:
    """Asks Kafka where topics end. From any thread."""

    def __init__(self, store: Store, admin: Admin, catalog: Callable[[], Catalog]) -> None:
        self._store, self._admin, self._catalog = store, admin, catalog
        self._lock = Lock()
        self._found: Mapping[QueryId, tuple[Lag, ...]] = {}
        self._found_at = float("-inf")

    def lags(self) -> Mapping[QueryId, tuple[Lag, ...]]:
        """By query; tables over topics are kept by queries, too."""
        with self._lock:
            if time.monotonic() - self._found_at > FRESH_SECONDS:
                self._found, self._found_at = self._ask(), time.monotonic()
            return self._found

    def _ask(self) -> Mapping[QueryId, tuple[Lag, ...]]:
        catalog = self._catalog()
        read = {
            query.id: {t for name in query.sources for t in topics_of(name, catalog)}
            for query in catalog.queries.values()
        }
        read |= {keeper(t): {t.topic} for t in catalog.tables if not t.derived and t.topic is not None}
        known = self._admin.describe({topic for topics in read.values() for topic in topics})
        ends = self._admin.ends([(t.name, p) for t in known.values() for p in range(t.partitions)])
        remap = {(m.topic, m.partition): m.end_offset for m in self._store.remap_ends()}
        found: dict[QueryId, tuple[Lag, ...]] = {}
        for query, topics in read.items():
            positions = self._store.positions(query)
            at = remap if place_of(positions) is Place.RIDING else read_ends(positions)
            found[query] = tuple(
                Lag(topic, partition, at.get((topic, partition), 0), end)
                for (topic, partition), end in sorted(ends.items())
                if topic in topics
            )
        return found


def keeper(table: Table) -> QueryId:
    return QueryId(f"TABLE_{table.name}")


def topics_of(name: ObjectName, catalog: Catalog) -> set[TopicName]:
    """The topics of others that an object comes from."""
    found: CatalogObject | None = catalog.find(name)
    if found is None:
        return set()
    query = catalog.queries.get(found.query) if found.query is not None else None
    if query is None:
        return {found.topic} if found.topic is not None else set()
    return {topic for source in query.sources for topic in topics_of(source, catalog)}
