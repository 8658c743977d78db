"""Ordered groups: ranges of a key's windows, at any readable time, without looking at other windows."""

from pathlib import Path

import pyarrow as pa
import pytest

from holdfast.names import CollectionId, QueryId
from holdfast.runtime.store.duckdb import DuckDbStore, open_store
from holdfast.runtime.store.duckdb import stage as stage_
from holdfast.runtime.store.duckdb.disk import flush
from holdfast.runtime.store.memory import MemoryStore
from holdfast.runtime.store.port import GroupRead, Layout, Store, Time
from holdfast.types import Scalar
from tests.runtime.store.rows import plain, upserts

QUERY, WINDOWS = QueryId("Q"), CollectionId("windows")
LAYOUT = Layout((Scalar.STRING, Scalar.BIGINT, Scalar.BIGINT), (Scalar.BIGINT,), 1, 1)
"""By a text and a start; the end is the third column of the key."""
LAST = 2**63 - 1


@pytest.fixture(params=["duckdb", "duckdb, large ticks", "memory"])
def store(request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if request.param == "duckdb, large ticks":
        monkeypatch.setattr(stage_, "SMALL", 0)
    opened = MemoryStore() if request.param == "memory" else open_store(tmp_path)
    opened.create_collection(WINDOWS, LAYOUT, window_ms=1_000)
    yield opened
    opened.close()


def tick(store: Store, time: int, *windows: tuple[str, int, int | None]) -> None:
    """Write windows of size 10 (key, start, value); None deletes."""
    rows = [((key, start, start + 10), None if value is None else (value,), start) for key, start, value in windows]
    stage = store.stage()
    stage.upsert(QUERY, WINDOWS, upserts(LAYOUT, *rows))
    stage.commit(Time(time))
    store.set_upper([WINDOWS], Time(time + 1))


def found(store: Store, at: int, keys: list[str], first: int | None, last: int | None) -> list[tuple[str, int, int]]:
    part = GroupRead(WINDOWS, Time(at), pa.table({"k0": keys}), with_group=True, first=first, last=last)
    return sorted((key, start, value) for key, start, _, value, _ in plain(store.read_groups(part)))


def test_bounds_are_inclusive_and_may_be_open(store: Store) -> None:
    tick(store, 10, *(("a", start, start) for start in (0, 10, 20, 30)), ("b", 10, 1))
    assert found(store, 10, ["a"], 10, 20) == [("a", 10, 10), ("a", 20, 20)]
    assert found(store, 10, ["a"], None, 10) == [("a", 0, 0), ("a", 10, 10)]
    assert found(store, 10, ["a"], 25, None) == [("a", 30, 30)]
    assert len(found(store, 10, ["a"], None, None)) == 4
    assert found(store, 10, ["a"], 20, 10) == found(store, 10, ["c"], None, None) == []


def test_numbers_are_ordered_as_numbers(store: Store) -> None:
    starts = [-(2**63), -(2**62), -100, -20, -3, 0, 9, 10, 100, 2**62, LAST - 10]
    tick(store, 10, *(("a", start, 1) for start in starts))
    for i, first in enumerate(starts):
        for j, last in enumerate(starts):
            assert [start for _, start, _ in found(store, 10, ["a"], first, last)] == starts[i : j + 1]


def test_keys_that_begin_with_each_other_are_apart(store: Store) -> None:
    keys = ["", "a", "a ", "a 0000000000000000005", "aa", "2", "1 a", "a~", "ä", "\0", "a\0"]
    tick(store, 10, *((key, start, i) for i, key in enumerate(keys) for start in (5, 6)))
    for i, key in enumerate(keys):
        assert found(store, 10, [key], 5, 5) == [(key, 5, i)]
        assert found(store, 10, [key], None, None) == [(key, 5, i), (key, 6, i)]
    assert len(found(store, 10, keys, 5, 5)) == len(keys)


def test_ranges_are_as_they_were(store: Store) -> None:
    tick(store, 10, ("a", 0, 1), ("a", 10, 1), ("a", 20, 1))
    tick(store, 20, ("a", 10, 2), ("a", 20, None), ("a", 30, 2))
    assert found(store, 15, ["a"], 10, 30) == [("a", 10, 1), ("a", 20, 1)]
    assert found(store, 20, ["a"], 10, 30) == [("a", 10, 2), ("a", 30, 2)]


@pytest.fixture
def large(tmp_path: Path):
    """A store with 20,000 windows in its tables and some in memory."""
    opened = open_store(tmp_path)
    opened.create_collection(WINDOWS, LAYOUT, window_ms=1_000)
    tick(opened, 10, *((f"k{i % 20}", i // 20 * 10, i) for i in range(20_000)))
    with opened._core.write_lock:
        flush.flush_all(opened._core)
    tick(opened, 20, ("k7", 100, -1), ("k7", 110, None), ("k7", 115, -2))
    yield opened
    opened.close()


def test_a_range_is_found_by_an_index(large: DuckDbStore, plans: list[str]) -> None:
    for at, rows in ((10, [(100, 207), (110, 227), (120, 247)]), (20, [(100, -1), (115, -2), (120, 247)])):
        part = GroupRead(WINDOWS, Time(at), pa.table({"k0": ["k7"]}), with_group=True, first=95, last=120)
        sql = "SELECT k1, c0 FROM t WHERE k1 >= 95 AND c0 < 1000 ORDER BY k1"
        assert plain(large.evaluate(sql, {"t": part})) == rows
    assert len(plans) == 2
    assert all("Index Scan" in plan and "Sequential Scan" not in plan.split("history")[0] for plan in plans)


def test_many_keys_are_found_by_a_scan(large: DuckDbStore) -> None:
    keys = [f"k{i}" for i in range(100)]
    assert [key for key, _, _ in found(large, 20, keys, 5_000, 5_009)] == sorted(f"k{i}" for i in range(20))


def test_ranges_are_found_after_reopening(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.create_collection(WINDOWS, LAYOUT, window_ms=1_000)
    tick(store, 10, *(("a", i, i) for i in range(5_000)))
    tick(store, 20, *(("a", i, None) for i in range(10, 4_000)))
    store.close()
    store = open_store(tmp_path)
    tick(store, 30, ("a", 15, 15))
    assert [start for _, start, _ in found(store, 30, ["a"], 5, 4_001)] == [5, 6, 7, 8, 9, 15, 4_000, 4_001]
    assert store.collections()[WINDOWS] == LAYOUT
    store.close()


def test_windows_of_an_earlier_release_are_found(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.create_collection(WINDOWS, Layout(LAYOUT.key, LAYOUT.value), window_ms=1_000)
    tick(store, 10, ("a", 0, 1), ("a", 10, 1))
    tick(store, 20, ("a", 10, 2))
    store.create_collection(WINDOWS, LAYOUT, window_ms=1_000)
    assert found(store, 15, ["a"], 10, 10) == [("a", 10, 1)]
    assert found(store, 20, ["a"], 10, 10) == [("a", 10, 2)]
    store.close()
