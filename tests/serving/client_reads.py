"""Tables that a test fills, and client reads over them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from runtime.driver import Driver, Record

from holdfast.names import CollectionId, ObjectName
from holdfast.runtime.progress import Progress
from holdfast.runtime.serdes.encoder import Encoder
from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.store import schemas
from holdfast.runtime.store.port import Time
from holdfast.serving.push.emit import TablePush
from holdfast.serving.push.query import PushQuery
from holdfast.serving.push.read_objects import ReadObjects
from holdfast.serving.push.row_reader import RowReader
from holdfast.serving.results import PullResult
from holdfast.serving.time.read_times import Times
from holdfast.serving.wakeup import Wakeup
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.read.subscribe import BoundSubscribe
from holdfast.sql.syntax.parse import parse

SQL = """
CREATE TABLE t (id STRING PRIMARY KEY, n INT, s STRING) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
CREATE TABLE i (id INT PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='i', VALUE_FORMAT='JSON');
CREATE TABLE l (id BIGINT PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='l', VALUE_FORMAT='JSON');
CREATE TABLE d (id DOUBLE PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='d', VALUE_FORMAT='JSON');
CREATE TABLE w (id STRING PRIMARY KEY, n INT)
  WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON', WINDOW_TYPE='TUMBLING', WINDOW_SIZE='10 MILLISECONDS');
CREATE TABLE ses (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='ses', VALUE_FORMAT='JSON', WINDOW_TYPE='SESSION');
CREATE TABLE two (a INT PRIMARY KEY, b STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='two', FORMAT='JSON');
"""
ROWTIME = 5
"""The timestamp of all records."""
Rows = Mapping[Any, tuple[Any, ...] | None]
"""Rows by key (a tuple if it has several columns); None deletes."""


class Reading:
    """A database with the tables of `SQL`. `now` is its latest final time: ticks advance it, and tests may, too."""

    def __init__(self, engine: Engine, *, folder: Path | None = None) -> None:
        self.driver = Driver(engine, SQL, folder=folder)
        self.engine, self.store, self.service = engine, self.driver.store, self.driver.service

    def close(self) -> None:
        self.driver.close()

    # -- time and rows -------------------------------------------------------------------------------

    @property
    def now(self) -> Time:
        return self.driver.time

    @now.setter
    def now(self, to: int) -> None:
        clock = self.driver.clock
        clock.advance((to - clock.now_ms()) / 1_000)

    def let_pass(self, millis: int) -> None:
        """Advance the clock, and raise the uppers of the tables by reading them."""
        self.now = Time(self.now + millis)
        for name in ("t", "i"):
            self.pull(f"SELECT id FROM {name} LIMIT 0;")

    def put(self, name: str, rows: Rows) -> Time:
        """Run one tick, a millisecond later; without rows, only advance the time."""
        return self.put_all({name: rows})

    def put_all(self, tables: Mapping[str, Rows]) -> Time:
        """Run one tick with rows of several tables."""
        before = self.now
        records = [record for name, rows in tables.items() for record in self._records(name, rows)]
        if not records:
            self.now = Time(before + 1)
        assert not self.driver.tick(records).failed
        return self.now

    def _records(self, name: str, rows: Rows) -> list[Record]:
        found = self.driver.catalog.objects[ObjectName(name)]
        assert found.topic is not None
        layout = self.store.collections()[CollectionId(name)]
        upserts = []
        for key, values in rows.items():
            keys = key if isinstance(key, tuple) else (key,)
            cells = values if values is not None else (None,) * len(layout.value)
            row = {f"k{i}": k for i, k in enumerate(keys)} | {f"c{i}": v for i, v in enumerate(cells)}
            upserts.append({**row, "ts": ROWTIME, "present": values is not None})
        table = pa.Table.from_pylist(upserts, schema=schemas.upsert_schema(layout))
        encoded = Encoder(found.schema, found.formats, found.window).encode(table, self.store).to_pylist()
        return [Record(found.topic, row["key"], row["value"], row["timestamp"]) for row in encoded]

    @property
    def progress(self) -> Progress:
        """The progress of the queries that maintain the tables."""
        return next(iter(self.service.query_registry.progress.values()))

    @progress.setter
    def progress(self, to: Progress) -> None:
        registry = self.service.query_registry
        for query in list(registry.progress):
            registry.set(query, to.status, done=to.done, reason=to.reason)

    # -- reads ---------------------------------------------------------------------------------------

    @property
    def times(self) -> Times:
        return self.service._times

    @property
    def wakeup(self) -> Wakeup:
        return self.service.wakeup

    def bound(self, text: str) -> BoundSelect:
        bound = bind(parse(text)[0].statement, self.driver.catalog)
        assert isinstance(bound, BoundSelect)
        return bound

    def pull(self, text: str) -> PullResult:
        bound = bind(parse(text)[0].statement, self.driver.catalog)
        assert isinstance(bound, BoundSelect | BoundRead)
        return self.service.pull(bound)

    def push(
        self,
        text: str,
        *,
        snapshot: bool = False,
        marked: bool = False,
        store: Any = None,
        reader: RowReader | None = None,
    ) -> TablePush:
        """A push query; one with a `reader`, or that reads from another `store`, is not registered with the service."""
        bound = self.bound(text)
        if store is not None or reader is not None:
            reader, clock = reader or RowReader(store, self.engine), self.driver.clock
            objects = ReadObjects([bound.relation], lambda: self.service.catalog)
            return TablePush(bound, objects, reader, self.times, self.wakeup, clock, snapshot=snapshot, marked=marked)
        push = self.service.push(bound, {"auto.offset.reset": "earliest" if snapshot else "latest"})
        assert isinstance(push, TablePush)
        return push

    def subscribe(self, text: str) -> PushQuery:
        bound = bind(parse(text)[0].statement, self.driver.catalog)
        assert isinstance(bound, BoundSubscribe)
        push = self.service.push(bound, {})
        assert isinstance(push, PushQuery)
        return push


def plain(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]
