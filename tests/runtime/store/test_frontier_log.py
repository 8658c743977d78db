"""What a tick writes of frontiers: those of the collections that it changes, unless a query freezes."""

import json
import shutil
from contextlib import closing

import pytest

from holdfast.names import CollectionId, QueryId
from holdfast.runtime.store.duckdb import open_store
from holdfast.runtime.store.port import Placement, Time
from tests.runtime.store.rows import LAYOUT, QUERY, TABLE, snapshot, upserts

OTHERS = [CollectionId(f"other{i}") for i in range(20)]
IDLE = QueryId("IDLE")


@pytest.fixture
def store(tmp_path):
    opened = open_store(tmp_path / "store")
    for id_ in (TABLE, *OTHERS):
        opened.create_collection(id_, LAYOUT, window_ms=1_000)
    opened.set_upper([TABLE, *OTHERS], Time(1))
    tick(opened, 2, {QUERY: Placement.LIVE, IDLE: Placement.LIVE})
    yield opened
    opened.close()


def tick(store, time, placements=None):
    """A tick that changes one collection; all follow it."""
    stage = store.stage()
    stage.upsert(QUERY, TABLE, upserts(LAYOUT, (("a",), (time, "x"), time)))
    for query, placement in (placements or {}).items():
        stage.move(query, placement=placement)
    stage.commit(Time(time))
    store.set_upper([TABLE, *OTHERS], Time(time + 1))


def logged(store):
    """The collections of which the last row of the log has an entry."""
    [entries] = store._core.database.execute("SELECT entries FROM ledger ORDER BY n DESC LIMIT 1").fetchone()
    return sorted(name for kind, name, *_ in json.loads(entries) if kind == "collection")


def crashed(tmp_path):
    """The files as they are now, opened elsewhere."""
    ignored = shutil.ignore_patterns("spill")
    return open_store(shutil.copytree(tmp_path / "store", tmp_path / "copy", ignore=ignored))


def test_a_tick_writes_only_the_collections_that_it_changes(store):
    tick(store, 3)
    tick(store, 4)
    assert logged(store) == [TABLE]


def test_a_compacted_since_is_not_written_with_each_tick(store):
    tick(store, 5_000)
    store.compact(limit=100)
    assert store.frontier(OTHERS[0]).since > 1
    tick(store, 5_001)
    assert logged(store) == [TABLE]


def test_the_upper_of_a_query_that_freezes_is_durable_with_the_tick(store, tmp_path):
    tick(store, 5)
    tick(store, 6)
    tick(store, 7, {IDLE: Placement.BEHIND})
    with closing(crashed(tmp_path)) as copy:
        assert copy.frontier(OTHERS[0]).upper == 7


def test_an_upper_that_a_reader_raised_while_its_query_froze_is_durable_with_the_next_tick(store, tmp_path):
    tick(store, 7, {IDLE: Placement.BEHIND})
    tick(store, 8)
    with closing(crashed(tmp_path)) as copy:
        assert copy.frontier(OTHERS[0]).upper == 8


def test_a_query_that_was_not_live_freezes_nothing(store):
    tick(store, 5, {IDLE: Placement.BEHIND})
    tick(store, 6)
    tick(store, 7, {IDLE: Placement.BEHIND})
    assert logged(store) == [TABLE]


def test_after_a_crash_all_answers_from_since_on_are_the_same(store, tmp_path):
    times = (3, 4, 2_000, 4_000)
    for time in times:
        tick(store, time)
    answers = {at: snapshot(store, TABLE, at) for at in times}
    store.compact(limit=100)
    with closing(crashed(tmp_path)) as copy:
        assert copy.frontier(TABLE).since <= store.frontier(TABLE).since
        readable = [at for at in times if at >= copy.frontier(TABLE).since]
        assert 4_000 in readable
        assert {at: snapshot(copy, TABLE, at) for at in readable} == {at: answers[at] for at in readable}
