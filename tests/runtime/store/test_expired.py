"""A merge deletes expired rows from a state and from the collection that shows it."""

import pyarrow as pa
import pytest

from holdfast.names import CollectionId, StateId
from holdfast.runtime.store.duckdb import open_store
from holdfast.runtime.store.duckdb.memtable.small import SMALL
from holdfast.runtime.store.memory import MemoryStore
from holdfast.runtime.store.port import Layout, Merge, StateMerge, StateProjection, StateView, Time
from holdfast.types import Scalar

from .rows import QUERY, evaluate, partials, plain

COUNTS, SHOWN = StateId("counts"), CollectionId("shown")
LAYOUT = Layout((Scalar.STRING, Scalar.BIGINT), (Scalar.BIGINT, Scalar.STRING))
SHOWN_LAYOUT = Layout(LAYOUT.key, (Scalar.BIGINT,))
ADDED = Merge(initial=("0", "NULL"), merged=("s0 + p0", "p1"))
ABOVE_ONE = StateView(SHOWN, StateProjection(("s0",), "s0 > 1"))


@pytest.fixture(params=["duckdb", "model"])
def store(request, tmp_path):
    opened = open_store(tmp_path) if request.param == "duckdb" else MemoryStore(evaluate)
    opened.create_state(COUNTS, LAYOUT)
    opened.create_collection(SHOWN, SHOWN_LAYOUT, window_ms=1_000)
    opened.set_upper([SHOWN], Time(1))
    yield opened
    opened.close()


def expired(*rows: tuple[str, int, int]) -> pa.Table:
    return pa.table(dict(zip(("k0", "k1", "ts"), map(list, zip(*rows, strict=True)), strict=True)))


def merge(store, time, rows, gone=None, view=ABOVE_ONE):
    stage = store.stage()
    assert stage.merge([StateMerge(QUERY, COUNTS, partials(LAYOUT, *rows), ADDED, view, gone)]) == {}
    deltas = [plain(stage.state_delta(COUNTS)), [] if view is None else plain(stage.delta(SHOWN))]
    stage.commit(Time(time))
    return [sorted(row for row in delta if row[1] < 100) for delta in deltas]


@pytest.mark.parametrize("more", [0, SMALL + 1], ids=["small", "large"])
def test_expired_rows_leave_the_state_and_its_collection(store, more):
    merge(store, 1, [(("a", 0), (5, "p"), 3), (("b", 0), (1, "p"), 4), (("a", 10), (2, "q"), 13)])
    others = [(("x", key), (2, "p"), 3) for key in range(100, 100 + more)]
    gone = expired(("a", 0, 9), ("b", 0, 4), ("c", 0, 4))
    state, shown = merge(store, 2, [(("a", 20), (7, "q"), 23), *others], gone)
    assert state == [
        ("a", 0, True, 5, "p", 3, False, None, None, 9),
        ("a", 20, False, None, None, None, True, 7, "q", 23),
        ("b", 0, True, 1, "p", 4, False, None, None, 4),
        ("c", 0, False, None, None, None, False, None, None, 4),
    ]
    assert shown == [
        ("a", 0, True, 5, 3, False, None, 9),
        ("a", 20, False, None, None, True, 7, 23),
        ("b", 0, False, None, None, False, None, 4),
        ("c", 0, False, None, None, False, None, 4),
    ]
    rows = [row for page in store.snapshot(SHOWN, Time(2)) for row in plain(page) if row[1] < 100]
    assert sorted(rows) == [("a", 10, 2, 13), ("a", 20, 7, 23)]


def test_a_state_without_a_collection_expires_as_well(store):
    merge(store, 1, [(("a", 0), (5, "p"), 3)], view=None)
    gone = [("a", 0, True, 5, "p", 3, False, None, None, 3)]
    assert merge(store, 2, [], expired(("a", 0, 3)), view=None)[0] == gone


def test_many_expired_rows_leave_at_once(store):
    keys = range(100, 100 + SMALL + 1)
    merge(store, 1, [(("x", key), (2, "p"), 3) for key in keys])
    merge(store, 2, [(("a", 0), (5, "p"), 3)], expired(*(("x", key, 3) for key in keys)))
    assert [row for page in store.snapshot(SHOWN, Time(2)) for row in plain(page)] == [("a", 0, 5, 3)]


def test_spans_can_be_over_columns_of_the_value(store):
    merge(store, 1, [(("a", 0), (5, "p"), 3), (("b", 0), (1, "q"), 4), (("c", 0), (1, "q"), 9)])
    asked = pa.table({"c1": ["q"], "after": pa.nulls(1, pa.int64()), "upto": [8]})
    stage = store.stage()
    assert plain(stage.lookup_spans(COUNTS, asked)) == [("b", 0, 1, "q", 4)]
    stage.abandon()
