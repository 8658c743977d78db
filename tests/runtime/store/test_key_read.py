"""Rows asked for by their keys: from memory, from the index, at any readable time."""

import tempfile
from contextlib import ExitStack, closing
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.runtime.store.duckdb import DuckDbStore, open_store, read
from holdfast.runtime.store.duckdb import stage as stage_
from holdfast.runtime.store.duckdb.disk import flush
from holdfast.runtime.store.port import KeyRead, Layout, Time
from holdfast.types import Scalar
from tests.runtime.store.rows import LAYOUT, QUERY, TABLE, plain, upserts

PAIRED = Layout((Scalar.BIGINT, Scalar.STRING), (Scalar.BIGINT, Scalar.STRING))
KEYS = {LAYOUT: [(c,) for c in "abcdef"], PAIRED: [(n, c) for n in (0, 1) for c in "abc"]}


def make(store: DuckDbStore, layout: Layout = LAYOUT) -> None:
    store.create_collection(TABLE, layout, window_ms=10**9)
    store.set_upper([TABLE], Time(1))


def tick(store: DuckDbStore, time: int, *rows: tuple, layout: Layout = LAYOUT) -> None:
    stage = store.stage()
    stage.upsert(QUERY, TABLE, upserts(layout, *rows))
    stage.commit(Time(time))


def flush_tables(store: DuckDbStore) -> None:
    with store._core.write_lock:
        flush.flush_all(store._core)


def named(store: DuckDbStore, at: int, *keys: tuple, sql: str = "SELECT * FROM t") -> list[tuple]:
    asked = pa.table({f"k{i}": pa.array(part) for i, part in enumerate(zip(*keys, strict=True))})
    return plain(store.evaluate(sql, {"t": KeyRead(TABLE, Time(at), asked)}))


@st.composite
def histories(draw):
    """Ticks, each a set of keys that get or lose their row, and whether the tables get them then."""
    layout = draw(st.sampled_from(list(KEYS)))
    touched = st.dictionaries(st.sampled_from(KEYS[layout]), st.booleans(), min_size=1)
    return layout, draw(st.lists(st.tuples(touched, st.sampled_from(["", "flush", "large"])), max_size=6))


@settings(max_examples=40, deadline=None)
@given(histories(), st.data())
def test_named_rows_are_those_of_a_snapshot(history, data):
    layout, ticks = history
    with ExitStack() as ending:
        folder = ending.enter_context(tempfile.TemporaryDirectory())
        patch = ending.enter_context(pytest.MonkeyPatch.context())
        store = ending.enter_context(closing(open_store(Path(folder))))
        make(store, layout)
        rows: dict[tuple, tuple] = {}
        snapshots = {0: {}}
        for time, (touched, how) in enumerate(ticks, 2):
            patch.setattr(stage_, "SMALL", 0 if how == "large" else 2_000)
            changed = [(key, (time, f"at {time}") if there else None, time) for key, there in touched.items()]
            tick(store, time, *changed, layout=layout)
            rows |= {key: value for key, value, _ in changed}
            snapshots[time] = {key: (*key, *value, value[0]) for key, value in rows.items() if value is not None}
            if how == "flush":
                flush_tables(store)
        wanted = data.draw(st.lists(st.sampled_from(KEYS[layout]), min_size=1))
        for time, found in snapshots.items():
            assert named(store, time, *wanted) == sorted({found[k] for k in wanted if k in found}, key=repr)


def test_a_tick_that_reaches_the_tables_meanwhile_is_not_seen(store: DuckDbStore, monkeypatch):
    make(store)
    tick(store, 2, (("a",), (2, "old"), 2))
    flush_tables(store)
    ran, left = read._run, [None]

    def run(*args):
        if left:
            left.pop()
            tick(store, 3, (("a",), (3, "new"), 3))
            flush_tables(store)
        return ran(*args)

    monkeypatch.setattr(read, "_run", run)
    assert named(store, 2, ("a",)) == [("a", 2, "old", 2)]
    assert not left


def test_the_index_is_used_and_what_memory_has_is_not_joined(store: DuckDbStore, plans: list[str]):
    make(store)
    tick(store, 2, *(((f"key {i}",), (i, "x"), 0) for i in range(5_000)))
    flush_tables(store)
    tick(store, 3, *(((f"key {i}",), (i, "y"), 0) for i in range(100)))
    sql = "SELECT c0, c1 FROM t WHERE c1 > ''"
    assert named(store, 3, ("key 777",), sql=sql) == [(777, "x")]
    assert named(store, 3, ("key 7",), sql=sql) == [(7, "y")]
    assert named(store, 3, ("key 7",), ("key 777",), ("none",), sql=sql) == [(7, "y"), (777, "x")]
    assert ["Index Scan" in plan for plan in plans] == [True, False, True]
    assert not any("Join" in plan for plan in plans)
    assert named(store, 2, ("key 7",), sql=sql) == [(7, "x")]
    assert "Index Scan" in plans[-1]


def test_a_key_with_a_null_finds_nothing(store: DuckDbStore):
    make(store, PAIRED)
    tick(store, 2, ((None, "a"), (1, "x"), 0), ((1, "a"), (2, "y"), 0), layout=PAIRED)
    assert named(store, 2, (None, "a"), (1, "a")) == [(1, "a", 2, "y", 0)]


def test_texts_that_are_read_one_by_one_are_not_compressed(store: DuckDbStore):
    make(store)
    tick(store, 2, *(((f"key {i}",), (i, f"text {i}"), 0) for i in range(20_000)))
    store._core.checkpoint(beyond=-1)
    table = store._core.objects.collection(TABLE).current
    read_back = store._core.database.execute(
        f"SELECT DISTINCT column_name, compression FROM pragma_storage_info('{table}') WHERE segment_type = 'VARCHAR'"
    )
    found = dict(read_back.fetchall())
    assert (found["k"], found["c1"]) == ("Uncompressed", "Uncompressed")
    assert found["k0"] != "Uncompressed"
