"""More value columns for what is there: rows keep what they had, at every time, also after a restart."""

from pathlib import Path

import pytest

from holdfast.errors import StoreError
from holdfast.runtime.store.duckdb import open_store
from holdfast.runtime.store.memory import MemoryStore
from holdfast.runtime.store.port import Layout, Store, Time
from holdfast.types import Scalar

from .rows import LAYOUT, QUERY, TABLE, snapshot, upserts

WIDER = Layout(LAYOUT.key, (*LAYOUT.value, Scalar.DOUBLE))


def written(store: Store, layout: Layout, time: int, *rows) -> None:
    stage = store.stage()
    stage.upsert(QUERY, TABLE, upserts(layout, *rows))
    stage.enqueue_changes(QUERY, TABLE)
    stage.commit(Time(time))
    store.set_upper([TABLE], Time(time + 1))


def prepared(store: Store) -> None:
    store.create_collection(TABLE, LAYOUT, window_ms=1_000)
    store.create_outbox(QUERY, LAYOUT)
    written(store, LAYOUT, 1, (("a",), (1, "x"), 10), (("b",), (2, "y"), 11))
    written(store, LAYOUT, 2, (("a",), (3, "z"), 12), (("b",), None, 13))


def extended(store: Store) -> None:
    for _ in range(2):
        store.create_collection(TABLE, WIDER, window_ms=1_000)
        store.create_outbox(QUERY, WIDER)


def check(store: Store) -> None:
    assert snapshot(store, TABLE, 1) == [("a", 1, "x", None, 10), ("b", 2, "y", None, 11)]
    assert snapshot(store, TABLE, 2) == [("a", 3, "z", None, 12)]
    assert snapshot(store, TABLE, 3) == [("a", 3, "z", 0.5, 14), ("c", 4, "w", 1.5, 15)]
    pending = [tuple(row.values()) for o in store.pending() for row in store.pending_rows(o.query, o.time).to_pylist()]
    assert sorted(pending, key=repr) == sorted([
        (True, "a", 1, "x", None, 10), (True, "b", 2, "y", None, 11),
        (True, "a", 3, "z", None, 12), (False, "b", None, None, None, 13),
        (True, "a", 3, "z", 0.5, 14), (True, "c", 4, "w", 1.5, 15),
    ], key=repr)  # fmt: skip


def test_rows_keep_what_they_had_and_new_ones_have_more(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    prepared(store)
    store.close()
    store = open_store(tmp_path)
    extended(store)
    store.close()
    store = open_store(tmp_path)
    written(store, WIDER, 3, (("a",), (3, "z", 0.5), 14), (("c",), (4, "w", 1.5), 15))
    check(store)
    store.close()
    store = open_store(tmp_path)
    check(store)
    store.close()


def test_the_model_does_the_same() -> None:
    store = MemoryStore()
    prepared(store)
    extended(store)
    written(store, WIDER, 3, (("a",), (3, "z", 0.5), 14), (("c",), (4, "w", 1.5), 15))
    check(store)


def test_other_columns_are_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    prepared(store)
    other = Layout(LAYOUT.key, (Scalar.STRING, Scalar.STRING, Scalar.STRING))
    for create in (
        lambda: store.create_collection(TABLE, other, window_ms=1),
        lambda: store.create_outbox(QUERY, other),
    ):
        with pytest.raises(StoreError, match="has other columns in the store") as refused:
            create()
        assert refused.value.hint
    store.close()
