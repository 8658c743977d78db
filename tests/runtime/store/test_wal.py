"""Small ticks are in the write-ahead log and in memory until they are flushed: nothing is lost, doubled or retained."""

import shutil

import pytest

from holdfast.errors import ReadError
from holdfast.names import CollectionId, QueryId, StateId, TopicName
from holdfast.runtime.store.duckdb import compaction, open_store
from holdfast.runtime.store.duckdb.disk import flush
from holdfast.runtime.store.port import EndOffset, Layout, Merge, PendingRows, StateProjection, StateView, Time
from holdfast.types import Scalar
from tests.runtime.store.rows import (
    LAYOUT,
    QUERY,
    SUM_AND_LAST,
    TABLE,
    TOTALS,
    TOTALS_LAYOUT,
    changes,
    merge,
    partials,
    plain,
    snapshot,
    upserts,
)


@pytest.fixture
def crashed(tmp_path):
    """The store that a crash now would leave."""
    opened = []

    def crash(store):
        folder = tmp_path / f"crashed {len(opened)}"
        shutil.copytree(store._core.folder, folder, ignore=shutil.ignore_patterns("spill"))
        opened.append(open_store(folder))
        return opened[-1]

    yield crash
    for store in opened:
        store.close()


def make(store, window_ms=1000):
    store.create_collection(TABLE, LAYOUT, window_ms=window_ms)
    store.create_outbox(QUERY, LAYOUT)
    store.set_upper([TABLE], Time(1))


def tick(store, time, *rows):
    stage = store.stage()
    stage.upsert(QUERY, TABLE, upserts(LAYOUT, *rows))
    stage.enqueue_changes(QUERY, TABLE)
    stage.commit(Time(time))


def rows_of(store, table):
    with store._core.database.cursor() as cursor:
        return cursor.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0]


def test_a_small_tick_writes_one_row_and_is_there_after_a_crash(store, crashed):
    make(store)
    before = rows_of(store, "ledger")
    tick(store, 2, (("a",), (1, "x"), 5), (("b",), (2, "y"), 6))
    tick(store, 3, (("a",), None, 7))
    assert rows_of(store, "ledger") == before + 2
    assert rows_of(store, store._core.objects.collection(TABLE).current) == 0
    again = crashed(store)
    for opened in (store, again):
        assert snapshot(opened, TABLE, 2) == [("a", 1, "x", 5), ("b", 2, "y", 6)]
        assert snapshot(opened, TABLE, 3) == [("b", 2, "y", 6)]
        assert opened.count(TABLE) == 1
        assert opened.pending() == [PendingRows(Time(2), QUERY, 2), PendingRows(Time(3), QUERY, 1)]
        assert plain(opened.pending_rows(QUERY, Time(3))) == [(False, "a", None, None, 7)]
    tick(again, 4, (("a",), (9, "z"), 8))
    assert changes(again, TABLE, 2, 4) == [
        (3, "a", True, 1, "x", 5, False, None, None, None),
        (4, "a", False, None, None, None, True, 9, "z", 8),
    ]


def test_what_was_published_does_not_come_back(store, crashed):
    make(store)
    for time in (2, 3, 4):
        tick(store, time, (("a",), (time, "x"), 0))
    store.mark_published({QUERY: Time(3)}, [EndOffset(TopicName("sink"), 0, 2)])
    assert crashed(store).pending() == [PendingRows(Time(4), QUERY, 1)]
    flush.flush_all(store._core)
    store.mark_published({QUERY: Time(4)})
    assert crashed(store).pending() == []


def test_pending_rows_of_a_dropped_table_stay_pending(store, crashed):
    make(store)
    tick(store, 2, (("a",), (1, "x"), 5))
    store.drop_collection(TABLE)
    again = crashed(store)
    assert plain(again.pending_rows(QUERY, Time(2))) == [(True, "a", 1, "x", 5)]


def test_an_object_never_gets_the_changes_of_one_that_had_its_number(store, crashed):
    store.create_state(TOTALS, TOTALS_LAYOUT)
    stage = store.stage()
    merge(stage, QUERY, TOTALS, partials(TOTALS_LAYOUT, ((1,), (5, "x"), 0)), SUM_AND_LAST)
    stage.commit(Time(2))
    number = store._core.objects.state(TOTALS).number
    store.drop_state(TOTALS)
    again = crashed(store)
    other = StateId("other")
    layout = Layout((Scalar.STRING,), (Scalar.DOUBLE,))
    again.create_state(other, layout)
    assert again._core.objects.state(other).number == number
    last = crashed(again)
    stage = last.stage()
    assert stage.state_delta(other).num_rows == 0
    merge(stage, QUERY, other, partials(layout, (("a",), (1.5,), 0)), Merge(("0",), ("s0 + p0",)))
    assert plain(stage.state_delta(other)) == [("a", False, None, None, True, 1.5, 0)]
    stage.abandon()


def test_a_long_log_is_flushed_and_rewritten_once_and_not_at_each_compaction(store, crashed, monkeypatch):
    rewritten = []
    rewrite = compaction._rewrite_wal
    monkeypatch.setattr(compaction, "WAL_BYTES", 100_000)
    monkeypatch.setattr(compaction, "_rewrite_wal", lambda core: (rewritten.append(core.wal.next), rewrite(core)))
    make(store)
    for time in range(2, 300):
        tick(store, time, ((str(time % 7),), (time, "x" * 100), 0))
        store.mark_published({QUERY: Time(time)})
        store.compact(limit=1000)
        assert store._core.wal.bytes < 2 * 100_000
    assert 1 < len(rewritten) < 10
    again = crashed(store)
    assert snapshot(again, TABLE, 299) == snapshot(store, TABLE, 299)


def test_compaction_flushes_old_changes_and_shortens_the_log(store, crashed, monkeypatch):
    monkeypatch.setattr(compaction, "FLUSHED_TICKS", 10)
    monkeypatch.setattr(compaction, "WAL_BYTES", 20_000)
    make(store, window_ms=5)
    store.create_state(TOTALS, TOTALS_LAYOUT)
    shown = CollectionId("shown")
    store.create_collection(shown, Layout((Scalar.BIGINT,), (Scalar.BIGINT,)), window_ms=5)
    store.set_upper([shown], Time(1))
    show = StateView(shown, StateProjection(("s0",), None))
    for time in range(2, 200):
        stage = store.stage()
        stage.upsert(QUERY, TABLE, upserts(LAYOUT, (("a",), (time, "x"), 0), ((str(time % 7),), (time, "y"), 0)))
        stage.enqueue_changes(QUERY, TABLE)
        merge(
            stage, QueryId("totals"), TOTALS, partials(TOTALS_LAYOUT, ((time % 5,), (1, None), 0)), SUM_AND_LAST, show
        )
        stage.commit(Time(time))
        store.mark_published({QUERY: Time(time - 1)})
        store.compact(limit=1000)
        assert store._core.wal.next - flush.first_unflushed_number(store._core) <= compaction.MOST_TICKS
    assert rows_of(store, store._core.objects.collection(TABLE).current) == 8
    assert store._core.wal.bytes < 30_000
    assert rows_of(store, "ledger") < 100
    again = crashed(store)
    for opened in (store, again):
        assert snapshot(opened, TABLE, 199)[-1] == ("a", 199, "x", 0)
        assert [count for _, count, _ in snapshot(opened, shown, 199)] == [39, 39, 40, 40, 40]
        assert opened.pending() == [PendingRows(Time(199), QUERY, 2)]


def test_tables_that_are_too_large_for_memory_are_asked_by_key(store, monkeypatch):
    monkeypatch.setattr("holdfast.runtime.store.duckdb.core.MEMORY_ROWS", 1_000)
    make(store, window_ms=10**6)
    tick(store, 2, *(((str(i),), (i, "x"), 0) for i in range(5_000)))
    collection = store._core.objects.collection(TABLE)
    for time in range(3, 8):
        tick(store, time, *(((str(i),), (-time, "y"), 0) for i in range(time, 5_000, 7)))
        flush.flush_all(store._core)
        assert not collection.memtable.complete
    assert len(snapshot(store, TABLE, 7)) == 5_000
    expected = {(str(i), -(i % 7) if i % 7 >= 3 else i) for i in range(7, 5_000)}
    assert {row[:2] for row in snapshot(store, TABLE, 6) if int(row[0]) >= 7} == expected
    stage = store.stage()
    keys = upserts(LAYOUT, *(((key,), (0, ""), 0) for key in ("3", "10", "1", "none"))).select(["k0"])
    assert plain(stage.lookup(TABLE, keys)) == [("1", 1, "x", 0), ("10", -3, "y", 0), ("3", -3, "y", 0)]
    stage.abandon()


def test_history_that_compaction_forgot_is_not_readable_after_a_crash(store, crashed, monkeypatch):
    monkeypatch.setattr(compaction, "FLUSHED_TICKS", 1)
    make(store, window_ms=10)
    tick(store, 50, (("a",), (1, "x"), 0))
    tick(store, 60, (("a",), None, 0))
    answer = snapshot(store, TABLE, 50)
    store.set_upper([TABLE], Time(100))
    assert store.compact(limit=1000) > 0
    again = crashed(store)
    assert answer == [("a", 1, "x", 0)]
    with pytest.raises(ReadError):
        snapshot(again, TABLE, 50)
    assert snapshot(again, TABLE, again.frontier(TABLE).since) == []


def test_offsets_do_not_add_up_while_a_collection_is_frozen(store):
    """A paused query, or a failed one, is read at times before it stopped, for as long as that lasts."""
    make(store, window_ms=5)
    tick(store, 2, (("a",), (1, "x"), 0))
    frozen, live = TABLE, CollectionId("live")
    store.create_collection(live, LAYOUT, window_ms=5)
    for time in range(3, 300):
        stage = store.stage()
        stage.remap([EndOffset(TopicName("t"), 0, time)])
        stage.commit(Time(time))
        store.set_upper([live], Time(time + 1))
        store.compact(limit=1000)
    assert store.frontier(frozen).upper == 3
    assert len(store._core.wal.remap[TopicName("t"), 0]) < 20
    assert store.remap_at(Time(299)) == store.remap_ends() == [EndOffset(TopicName("t"), 0, 299)]
