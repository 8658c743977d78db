"""Rows from outboxes to the topics of a real broker: records a second to one sink, and to ten.

Queries are not run: their rows are committed to the outboxes of a store on disk, in ticks, and then published by the
publisher that a server has. So the time is that of publishing: reading the rows, encoding them as JSON, the Kafka
transactions with their markers, and marking the rows as published.

python -m bench.publishing 200000
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa

from holdfast.config import Settings
from holdfast.config import load as load_settings
from holdfast.coordinator.publishing import Publishing
from holdfast.kafka.broker import EmbeddedBroker
from holdfast.kafka.lane import Lane
from holdfast.kafka.librdkafka.cluster import KafkaCluster
from holdfast.kafka.markers import LANES, MarkerTopic
from holdfast.kafka.port import TopicSpec
from holdfast.names import QueryId, TopicName
from holdfast.runtime.expressions.parse import parse_schema
from holdfast.runtime.plan.formats import FormatInfo, FormatProperties, Formats
from holdfast.runtime.program import Sink
from holdfast.runtime.serdes.encoder import Encoder
from holdfast.runtime.store.duckdb import DuckDbStore, open_store
from holdfast.runtime.store.port import Layout, Time
from holdfast.types import Scalar
from holdfast.wall_clock import WallClock

ROWS, TICK_ROWS, ROUNDS = 1_000_000, 10_000, 3
SINKS = (1, 10)
PARTITIONS = 2
LAYOUT = Layout((Scalar.STRING,), (Scalar.BIGINT, Scalar.DOUBLE, Scalar.STRING))
ENCODER = Encoder(
    parse_schema("`USER` STRING KEY, `ID` BIGINT, `AMOUNT` DOUBLE, `CITY` STRING"),
    Formats(
        key_format=FormatInfo(format="KAFKA", properties=FormatProperties()),
        value_format=FormatInfo(format="JSON", properties=FormatProperties()),
    ),
)


def tick(first: int, count: int) -> pa.Table:
    """Rows whose records have values of about 50 bytes."""
    numbers = range(first, first + count)
    return pa.table(
        {
            "k0": [f"u{n * 7919 % 100_000}" for n in numbers],
            "c0": pa.array(numbers, pa.int64()),
            "c1": [n % 1000 + 0.25 for n in numbers],
            "c2": [f"c{n % 50}" for n in numbers],
            "ts": pa.array([WallClock().now_ms()] * count, pa.int64()),
        }
    )


class Bench:
    """The publishing of a server with some sinks."""

    def __init__(self, settings: Settings, kafka: KafkaCluster, store: DuckDbStore, sinks: int) -> None:
        self.store, self.at, self.writers = store, 0, [QueryId(f"Q{n}") for n in range(sinks)]
        topics = {query: TopicName(f"bench_{sinks}_{query}") for query in self.writers}
        kafka.topics.create(*(TopicSpec(name=topic, partitions=PARTITIONS) for topic in topics.values()))
        for query in self.writers:
            store.create_outbox(query, LAYOUT)
        found = {query: Sink(topic, ENCODER) for query, topic in topics.items()}
        markers = MarkerTopic(settings, kafka)
        main, retry = (Lane(settings, kafka, markers, number, lambda: None) for number in range(LANES))
        self.publishing = Publishing(
            store, (main, retry), markers, kafka.topics, lambda: found, dict, lambda _query: False, frozenset,
            WallClock(), transaction_rows=settings.transaction_rows, ended=lambda _error: None, published=lambda: None,
        )  # fmt: skip
        self.publishing.fence()

    def close(self) -> None:
        self.publishing.stop()

    def publish(self, rows: int) -> float:
        """Seconds to publish a number of rows, which are spread over all sinks in every tick."""
        count = TICK_ROWS // len(self.writers)
        for first in range(0, rows, TICK_ROWS):
            self.at += 1
            stage = self.store.stage()
            for number, query in enumerate(self.writers):
                stage.enqueue(query, tick(first + number * count, count))
            stage.commit(Time(self.at))
        began = time.perf_counter()
        assert self.publishing.publish_pending()
        took = time.perf_counter() - began
        assert not self.store.pending()
        return took


@contextmanager
def opened(settings: Settings, kafka: KafkaCluster, folder: Path, sinks: int) -> Iterator[Bench]:
    """The markers of another store say nothing: each number of sinks has a store and a service id of its own."""
    own = load_settings({"data_dir": folder, "service_id": f"bench{sinks}"}, environment={}).at_kafka(
        settings.kafka or ""
    )
    with closing(open_store(folder / "store")) as store, closing(Bench(own, kafka, store, sinks)) as bench:
        yield bench


def measure(rows: int = ROWS) -> list[str]:
    """The numbers of sinks take turns, and the best of some rounds counts; a first round warms up."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as name:
        folder = Path(name)
        settings = load_settings({"data_dir": folder / "broker"}, environment={})
        broker = EmbeddedBroker(settings)
        broker.start()
        settings = settings.at_kafka(broker.bootstrap)
        try:
            with (
                closing(KafkaCluster(settings)) as kafka,
                opened(settings, kafka, folder / "one", SINKS[0]) as one,
                opened(settings, kafka, folder / "ten", SINKS[1]) as ten,
            ):
                one.publish(TICK_ROWS)
                ten.publish(TICK_ROWS)
                times = [(one.publish(rows), ten.publish(rows)) for _ in range(ROUNDS)]
        finally:
            broker.stop()
    best = [min(series) for series in zip(*times, strict=True)]
    lines = [f"| {rows:,} rows published to | best of {ROUNDS} | compared with one |", "|---|--:|--:|"]
    for count, seconds in zip(SINKS, best, strict=True):
        sinks = "1 sink topic" if count == 1 else f"{count} sink topics"
        lines.append(f"| {sinks} | {seconds:.2f} s ({rows / seconds:,.0f}/s) | {best[0] / seconds:.2f} of its rate |")
    return lines


if __name__ == "__main__":
    print("\n".join(measure(*map(int, sys.argv[1:]))))
