"""Grouped collections: their rows by group, at any readable time, and without looking at the others."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from holdfast.errors import ReadError
from holdfast.names import CollectionId, QueryId
from holdfast.runtime.store.duckdb import DuckDbStore, open_store
from holdfast.runtime.store.duckdb import stage as stage_
from holdfast.runtime.store.duckdb.disk import flush
from holdfast.runtime.store.memory import MemoryStore
from holdfast.runtime.store.port import GroupRead, Layout, Store, Time
from holdfast.types import Scalar
from tests.runtime.store.rows import plain, upserts

QUERY, ARRANGED = QueryId("Q"), CollectionId("arranged")
LAYOUT = Layout((Scalar.STRING, Scalar.BIGINT, Scalar.STRING), (Scalar.STRING,), 2)
"""By a text and a number; what is arranged has a text for its key."""


@pytest.fixture(params=["duckdb", "duckdb, large ticks", "memory"])
def store(request, tmp_path: Path, monkeypatch):
    if request.param == "duckdb, large ticks":
        monkeypatch.setattr(stage_, "SMALL", 0)
    opened = MemoryStore() if request.param == "memory" else open_store(tmp_path)
    opened.create_collection(ARRANGED, LAYOUT, window_ms=1_000)
    yield opened
    opened.close()


def tick(store: Store, time: int, *rows: tuple) -> None:
    stage = store.stage()
    stage.upsert(QUERY, ARRANGED, upserts(LAYOUT, *rows))
    stage.commit(Time(time))
    store.set_upper([ARRANGED], Time(time + 1))


def groups(*wanted: tuple) -> pa.Table:
    texts, numbers = zip(*wanted, strict=True) if wanted else ((), ())
    return pa.table({"k0": pa.array(texts, pa.string()), "k1": pa.array(numbers, pa.int64())})


def found(store: Store, at: int, *wanted: tuple) -> list[tuple]:
    return plain(store.read_groups(GroupRead(ARRANGED, Time(at), groups(*wanted))))


def test_the_rows_of_groups_are_found_without_the_columns_of_the_group(store: Store):
    tick(store, 10, (("a", 1, "x"), ("one",), 1), (("a", 2, "y"), ("two",), 2), (('["a"', 1, "z"), ("three",), 3))
    assert found(store, 10, ("a", 1)) == [("x", "one", 1)]
    assert found(store, 10, ("a", 2), ("a", 1), ("a", 2)) == [("x", "one", 1), ("y", "two", 2)]
    assert found(store, 10, ('["a"', 1)) == [("z", "three", 3)]
    assert found(store, 10) == found(store, 10, ("b", 1)) == []


def test_rows_are_found_with_the_columns_of_their_group(store: Store):
    tick(store, 10, (("a", 1, "x"), ("one",), 1), (("a", 2, "y"), ("two",), 2))
    tick(store, 20, (("a", 1, "x"), None, 3), (("a", 1, "z"), ("three",), 3))
    for at, rows in ((10, [("a", 1, "x", "one", 1)]), (20, [("a", 1, "z", "three", 3)])):
        part = GroupRead(ARRANGED, Time(at), groups(("a", 1)), with_group=True)
        assert plain(store.read_groups(part)) == rows
    assert len(plain(store.read_groups(GroupRead(ARRANGED, Time(20), with_group=True)))) == 2


def test_a_null_is_equal_to_nothing(store: Store):
    tick(store, 10, ((None, 1, "x"), ("one",), 1), (("a", None, "y"), ("two",), 2))
    assert found(store, 10, (None, 1), ("a", None)) == []
    assert plain(store.read_groups(GroupRead(ARRANGED, Time(10)))) == [("x", "one", 1), ("y", "two", 2)]


def test_groups_are_as_they_were(store: Store):
    tick(store, 10, (("a", 1, "x"), ("one",), 1))
    tick(store, 20, (("a", 1, "x"), None, 2), (("b", 1, "x"), ("one",), 2))
    assert found(store, 15, ("a", 1)) == [("x", "one", 1)]
    assert found(store, 20, ("b", 1)) == [("x", "one", 2)]
    assert found(store, 15, ("b", 1)) == found(store, 20, ("a", 1)) == []


def test_a_time_that_is_not_readable_is_refused(store: Store):
    tick(store, 10, (("a", 1, "x"), ("one",), 1))
    with pytest.raises(ReadError):
        found(store, 11, ("a", 1))


def test_groups_are_found_after_flushing_reopening_and_getting_more_columns(tmp_path: Path):
    store = open_store(tmp_path)
    store.create_collection(ARRANGED, LAYOUT, window_ms=1_000)
    tick(store, 10, (("a", 1, "x"), ("one",), 1))
    with store._core.write_lock:
        flush.flush_all(store._core)
    tick(store, 20, (("a", 1, "y"), ("two",), 2))
    store.create_collection(ARRANGED, Layout(LAYOUT.key, (*LAYOUT.value, Scalar.BIGINT), 2), window_ms=1_000)
    store.close()
    store = open_store(tmp_path)
    assert found(store, 20, ("a", 1)) == [("x", "one", None, 1), ("y", "two", None, 2)]
    store.close()


def test_a_collection_without_groups_gets_them(store: Store):
    plain_, grouped = CollectionId("plain"), Layout(LAYOUT.key, LAYOUT.value, 1)
    store.create_collection(plain_, replace(LAYOUT, group=0), window_ms=1_000)
    for time, rows in ((10, (("a", 1, "x"), ("one",), 1)), (20, (("a", 2, "y"), ("two",), 2))):
        stage = store.stage()
        stage.upsert(QUERY, plain_, upserts(LAYOUT, rows))
        stage.commit(Time(time))
        store.set_upper([plain_], Time(time + 1))
    store.create_collection(plain_, grouped, window_ms=1_000)
    asked = pa.table({"k0": ["a"]})
    assert store.collections()[plain_] == grouped
    for at, rows in ((15, [(1, "x", "one", 1)]), (20, [(1, "x", "one", 1), (2, "y", "two", 2)])):
        assert plain(store.read_groups(GroupRead(plain_, Time(at), asked))) == rows


def test_a_group_is_found_by_an_index(tmp_path: Path):
    store: DuckDbStore = open_store(tmp_path)
    store.create_collection(ARRANGED, LAYOUT, window_ms=1_000)
    tick(store, 10, *((("a" if i == 7 else "b", i, str(i)), ("v",), i) for i in range(5_000)))
    with store._core.write_lock:
        flush.flush_all(store._core)
    collection = store._core.objects.collection(ARRANGED)
    plan = store._core.database.cursor().execute(
        f"EXPLAIN ANALYZE SELECT * FROM {collection.current} WHERE g = ?", ['["a","7"]']
    )
    assert "Index Scan" in plan.fetchall()[0][1]
    store.close()


def test_a_group_is_looked_up_whatever_else_is_asked(tmp_path: Path, plans: list[str]):
    store: DuckDbStore = open_store(tmp_path)
    store.create_collection(ARRANGED, LAYOUT, window_ms=1_000)
    tick(store, 10, *((("b", i, str(i)), ("v",), i) for i in range(5_000)))
    with store._core.write_lock:
        flush.flush_all(store._core)
    tick(store, 20, (("b", 7, "7"), ("w",), 1))
    for at, value in ((10, "v"), (20, "w")):
        relation = GroupRead(ARRANGED, Time(at), groups(("b", 7)))
        assert plain(store.evaluate("SELECT c0 FROM t WHERE c0 > '' AND ts >= 0", {"t": relation})) == [(value,)]
    assert len(plans) == 2
    assert all("Index Scan" in plan for plan in plans)
    store.close()
