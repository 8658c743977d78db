"""Outboxes and an in-memory Kafka, without queries: what publishing does with them."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from holdfast.config import Settings
from holdfast.coordinator.publishing import Publishing
from holdfast.kafka.lane import Lane
from holdfast.kafka.markers import LANES, MarkerTopic
from holdfast.kafka.memory.broker import MemoryBroker
from holdfast.kafka.memory.kafka import MemoryKafka
from holdfast.kafka.port import TopicSpec
from holdfast.names import QueryId, ServiceId, TopicName
from holdfast.runtime.store.memory.store import MemoryStore
from holdfast.runtime.store.port import Layout, Time
from holdfast.types import Scalar
from holdfast.wall_clock import MovableClock

A, B = TopicName("a"), TopicName("b")
QUERIES = {QueryId("Q1"): A, QueryId("Q2"): B}
LAYOUT = Layout((), (Scalar.STRING,))


def encode(rows: pa.Table, _store: Any) -> pa.Table:
    nothing = pa.nulls(rows.num_rows, pa.binary())
    return pa.table({"key": nothing, "value": rows.column("c0").cast(pa.binary()), "timestamp": rows.column("ts")})


class Outboxes:
    """A store with outboxes and an in-memory Kafka; `publishing` opens the publishing of a server."""

    def __init__(self, settings: Settings, rows: int = 50_000, queries: Mapping[QueryId, TopicName] = QUERIES) -> None:
        self.settings, self.rows, self.queries = settings, rows, queries
        self.broker = MemoryBroker()
        self.kafka = MemoryKafka(self.broker, ServiceId("s"))
        self.kafka.topics.create(*(TopicSpec(name=topic) for topic in (A, B)))
        self.store = MemoryStore()
        self.markers = MarkerTopic(settings, self.kafka)
        self.fenced: list[Exception] = []
        self.barriers: dict[TopicName, Time] = {}
        self.skips: set[QueryId] = set()
        self.clock = MovableClock()
        self.encode: Callable[[pa.Table, Any], pa.Table] = encode
        for query in queries:
            self.store.create_outbox(query, LAYOUT)

    def commit(self, at: int, **values: list[str]) -> None:
        stage = self.store.stage()
        for query, texts in values.items():
            ts = pa.array([1] * len(texts), pa.int64())
            stage.enqueue(QueryId(query), pa.table({"c0": texts, "ts": ts}))
        stage.commit(Time(at))

    def replace_sinks(self) -> None:
        """New sinks, as after CREATE OR REPLACE."""
        encoder = SimpleNamespace(encode=lambda rows, store: self.encode(rows, store), window=None)
        self.sinks = {query: SimpleNamespace(topic=topic, encoder=encoder) for query, topic in self.queries.items()}

    def publishing(self, lane: type[Lane] = Lane) -> Publishing:
        self.replace_sinks()
        main, retry = (lane(self.settings, self.kafka, self.markers, n, lambda: None) for n in range(LANES))
        return Publishing(
            self.store,
            (main, retry),
            self.markers,
            self.kafka.topics,
            lambda: self.sinks,
            lambda: self.barriers,
            self.skips.__contains__,
            frozenset,
            self.clock,
            transaction_rows=self.rows,
            ended=self.fenced.append,
            published=lambda: None,
        )

    def values(self, topic: TopicName) -> list[bytes | None]:
        return [record.value for record in self.broker.records(topic)]
