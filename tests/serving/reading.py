"""Tables filled by hand, and the reads of a client over them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from runtime.driver import Driver

from holdfast.names import CollectionId, QueryId
from holdfast.runtime.progress import Progress, Status
from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.store import schemas
from holdfast.runtime.store.port import Time
from holdfast.serving.evaluated import QuerySubscription
from holdfast.serving.pull import pull
from holdfast.serving.push import TablePush
from holdfast.serving.pushing import Pushing
from holdfast.serving.read import read
from holdfast.serving.results import PullResult
from holdfast.serving.rows import RowReader
from holdfast.serving.subscribe import TableSubscription
from holdfast.serving.times import Times
from holdfast.serving.wakeup import Wakeup
from holdfast.sql.bind import bind
from holdfast.sql.bound import BoundSelect, BoundSubscribe
from holdfast.sql.bound_read import BoundRead
from holdfast.sql.parse import parse

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


class Reading:
    """A store with the tables of `SQL`. `now` is the latest time; `put` makes the next."""

    def __init__(self, folder: Path, engine: Engine | None = None) -> None:
        self.driver = Driver(engine, folder, SQL)
        self.store, self.engine = self.driver.store, engine
        self.wakeup = Wakeup()
        self.rows = RowReader(self.store, engine)
        self.now = 0
        self.progress = Progress(Status.RUNNING)
        self.times = Times(self.store, lambda: Time(self.now), lambda _query: self.progress)
        for name in ("T", "I", "L", "D", "TWO"):
            self.put(name, {})

    def put(self, name: str, rows: Mapping[Any, tuple[Any, ...] | None]) -> Time:
        """One tick: the rows by key (a tuple when it has several columns); None deletes."""
        table = CollectionId(name)
        layout = self.store.collections()[table]
        schema = schemas.upsert_schema(layout)
        records = []
        for key, values in rows.items():
            keys = key if isinstance(key, tuple) else (key,)
            shown = values if values is not None else (None,) * len(layout.value)
            record = {f"k{i}": k for i, k in enumerate(keys)} | {f"c{i}": v for i, v in enumerate(shown)}
            records.append({**record, "ts": self.now, "present": values is not None})
        time = Time(self.now + 1)
        stage = self.store.stage()
        stage.upsert(QueryId(f"TABLE_{name}"), table, pa.Table.from_pylist(records, schema=schema))
        stage.commit(time)
        self.store.set_upper([table], Time(time + 1))
        self.now = time
        self.wakeup.ring()
        return time

    def bound(self, text: str) -> BoundSelect:
        bound = bind(parse(text)[0].statement, self.driver.catalog)
        assert isinstance(bound, BoundSelect)
        return bound

    def pull(self, text: str) -> PullResult:
        bound = bind(parse(text)[0].statement, self.driver.catalog)
        if isinstance(bound, BoundRead):
            return read(bound, self.store, self.engine, self.times)
        assert isinstance(bound, BoundSelect)
        return pull(bound, self.store, self.engine, self.times)

    def push(self, text: str, *, snapshot: bool = False, marked: bool = False, store: Any = None) -> TablePush:
        bound = self.bound(text)
        reader = RowReader(store, self.engine) if store is not None else self.rows
        return TablePush(bound, reader, self.times, self.wakeup, snapshot=snapshot, marked=marked)

    def subscribe(self, text: str, store: Any = None) -> Pushing:
        bound = bind(parse(text)[0].statement, self.driver.catalog)
        assert isinstance(bound, BoundSubscribe)
        return self.started(bound, store)

    def started(self, bound: BoundSelect | BoundSubscribe, store: Any = None) -> Pushing:
        """What a client follows; of a SELECT, with EMIT ALL."""
        reader = RowReader(store, self.engine) if store is not None else self.rows
        if isinstance(bound, BoundSelect):
            return TablePush(bound, reader, self.times, self.wakeup, snapshot=True, marked=True)
        subscription = TableSubscription if isinstance(bound.select, BoundSelect) else QuerySubscription
        return subscription(bound, reader, self.times, self.wakeup)

    def close(self) -> None:
        self.driver.close()


def plain(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]
