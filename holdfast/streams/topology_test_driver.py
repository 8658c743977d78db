"""Tests of topologies, with the real engine and without Kafka."""

import atexit
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Self, TypeVar

from holdfast.client.stores.moment import Moment, millis
from holdfast.client.stores.store_type import StoreType, open_store
from holdfast.config import load
from holdfast.errors import TopologyError
from holdfast.names import TopicName
from holdfast.sql.syntax.parse import statements
from holdfast.streams.builder import StreamsBuilder
from holdfast.streams.deployment import deploy
from holdfast.streams.embedded import EmbeddedDeployment
from holdfast.streams.topic_records import TopicCodec, TopicRecord
from holdfast.streams.topology import Topology

if TYPE_CHECKING:
    from holdfast.runtime.spark.engine import Engine
    from holdfast.testing.database import Database
    from holdfast.testing.wire import WireRecord

S = TypeVar("S")


class TopologyTestDriver:
    """Runs a topology over topics in memory: each record is processed, with all that follows from it, at once.

    The wall clock moves only by `advance_wall_clock`. Drivers of one process share a Spark.
    """

    def __init__(self, topology: StreamsBuilder | Topology, engine: "Engine | None" = None) -> None:
        self.topology = topology.build() if isinstance(topology, StreamsBuilder) else topology
        # Importing Spark takes a second, which a client of a server does not need.
        from holdfast.testing.database import Database

        self._database = Database(engine or shared_engine(), {})
        self._deployment = _TestDeployment(self._database)
        self._fetched: dict[str, int] = defaultdict(int)
        """How many of a topic's records were fetched from the database."""
        self._unread: dict[str, deque[WireRecord]] = defaultdict(deque)
        try:
            deploy(self.topology, self._deployment)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    # -- records

    def pipe_input(self, topic: str, key: Any, value: Any, timestamp: Moment | None = None) -> None:
        """Write a record; a key with a window is `Windowed`, and no value deletes. Its time is now by default."""
        self.pipe_inputs(topic, [TopicRecord(key, value, self._millis(timestamp))])

    def pipe_inputs(self, topic: str, records: Iterable[TopicRecord]) -> None:
        """Write records, which are processed together."""
        codec = self._codec(topic)
        self._database.feed(TopicName(topic), [codec.encode(record, self._database.store) for record in records])

    def read_output(self, topic: str) -> TopicRecord | None:
        """The next record that the topology has written to a topic; None if there is no other."""
        return next(iter(self._take(topic, 1)), None)

    def read_outputs(self, topic: str) -> list[TopicRecord]:
        """All records that the topology has written to a topic and that were not read yet."""
        return self._take(topic)

    # -- time and stores

    def advance_wall_clock(self, by: timedelta) -> None:
        """Advance the wall clock. Windows do not close by it: their time is that of the records."""
        self._database.advance(by.total_seconds())

    def store(self, name: str, type_: StoreType[S], *, as_of: Moment | None = None) -> S:
        """A named table as a read-only store."""
        return open_store(self._deployment.reader, name, type_, as_of)

    def _take(self, topic: str, most: int | None = None) -> list[TopicRecord]:
        """Read the next records: all, or at most `most`."""
        codec, unread = self._codec(topic), self._unread[topic]
        if most is None or len(unread) < most:
            written = self._database.produced(TopicName(topic))
            unread.extend(written[self._fetched[topic] :])
            self._fetched[topic] = len(written)
        count = len(unread) if most is None else min(most, len(unread))
        return [codec.decode(unread.popleft()) for _ in range(count)]

    def _codec(self, topic: str) -> TopicCodec:
        for found in self._database.catalog.objects.values():
            if found.topic == topic:
                return TopicCodec(found)
        known = sorted({str(found.topic) for found in self._database.catalog.objects.values() if found.topic})
        raise TopologyError(
            f'the topology neither reads nor writes topic "{topic}"', hint=f"Its topics are: {', '.join(known)}."
        )

    def _millis(self, timestamp: Moment | None) -> int:
        return self._database.now_ms() if timestamp is None else millis(timestamp)


class _TestDeployment(EmbeddedDeployment):
    """A database that runs statements until nothing is left to do."""

    def __init__(self, database: "Database") -> None:
        super().__init__(database.service)
        self._database = database

    def execute(self, text: str, properties: Mapping[str, str]) -> None:
        for parsed in statements(text, lambda: self._database.catalog.types):
            self._database.execute(parsed, properties)


@cache
def shared_engine() -> "Engine":
    """The engine of this process's drivers, which ends with the process."""
    from holdfast.testing.suite import spark_engine

    opened = ExitStack()
    engine = opened.enter_context(spark_engine(load()))
    atexit.register(opened.close)
    return engine
