"""What the embedded store promises beyond the laws: types, keys, queries apart, reads beside ticks."""

import datetime
import decimal
import threading

import pyarrow as pa
import pytest

from holdfast.errors import ReadError, StoreError
from holdfast.names import CollectionId, QueryId, StateId, TopicName
from holdfast.runtime.store import schemas
from holdfast.runtime.store.duckdb import open_store
from holdfast.runtime.store.duckdb.disk import flush
from holdfast.runtime.store.duckdb.disk.large import LOOKED_UP
from holdfast.runtime.store.port import (
    NEW_QUERY,
    EndOffset,
    Frontier,
    KeyRead,
    Layout,
    Merge,
    PendingRows,
    StateMerge,
    StateProjection,
    StateView,
    Time,
)
from holdfast.types import Array, Decimal, Map, Scalar, Struct, StructField
from tests.runtime.store.rows import (
    LAYOUT,
    QUERY,
    SHOWN_LAYOUT,
    SUM_AND_LAST,
    TABLE,
    TOTALS,
    TOTALS_LAYOUT,
    changes,
    merge,
    partials,
    parts_of_changes,
    plain,
    snapshot,
    upserts,
)

OTHER = QueryId("OTHER")
VALUES = {
    Scalar.BOOLEAN: (True, False),
    Scalar.INTEGER: (-(2**31), 2**31 - 1),
    Scalar.BIGINT: (-(2**63), 2**63 - 1),
    Scalar.DOUBLE: (-1.5, float("inf")),
    Scalar.STRING: ("", 'it\'s "ü" \x00 日本'),
    Scalar.BYTES: (b"", b"\x00\xff'"),
    Scalar.TIME: (0, 86_399_999),
    Scalar.DATE: (datetime.date(1, 1, 1), datetime.date(9999, 12, 31)),
    Scalar.TIMESTAMP: (datetime.datetime(1969, 12, 31, 23, 59, 59, 999000), datetime.datetime(2400, 1, 1)),
    Decimal(38, 10): (decimal.Decimal("-1.0000000001"), decimal.Decimal("9999999999999999999999999999.9999999999")),
    Decimal(4, 2): (decimal.Decimal("0.00"), decimal.Decimal("-99.99")),
    Array(Scalar.INTEGER): ([], [1, None, 3]),
    Map(Scalar.STRING, Scalar.DOUBLE): ([], [("a", 1.0), ("b", None)]),
    Struct((StructField("A", Scalar.STRING), StructField("a", Array(Scalar.BIGINT)))): (
        {"f0": None, "f1": None},
        {"f0": "x", "f1": [2]},
    ),
}


def make(store, layout=LAYOUT, id_=TABLE, window_ms=1000):
    store.create_collection(id_, layout, window_ms=window_ms)
    store.set_upper([id_], Time(1))


def tick(store, time, *rows, layout=LAYOUT, id_=TABLE):
    stage = store.stage()
    stage.upsert(QUERY, id_, upserts(layout, *rows))
    stage.commit(Time(time))


@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_values_of_every_type_come_back_after_updates_and_a_restart(tmp_path, type_):
    layout = Layout((Scalar.BIGINT,), (type_,))
    store = open_store(tmp_path)
    make(store, layout)
    low, high = VALUES[type_]
    tick(store, 2, ((1,), (low,), 5), ((2,), (high,), 6), ((3,), (None,), 7), layout=layout)
    tick(store, 3, ((1,), (high,), 8), ((3,), None, 9), layout=layout)
    tick(store, 4, ((1,), (None,), 8), layout=layout)
    store.close()
    store = open_store(tmp_path)
    assert snapshot(store, TABLE, 2) == sorted([(1, low, 5), (2, high, 6), (3, None, 7)], key=repr)
    assert snapshot(store, TABLE, 3) == sorted([(1, high, 8), (2, high, 6)], key=repr)
    [page] = store.snapshot(TABLE, Time(4))
    assert page.schema == schemas.rows_schema(layout)
    assert store.changes(TABLE, Time(1), Time(4)).schema == schemas.changes_schema(layout)
    assert changes(store, TABLE, 3, 4) == [(4, 1, True, high, 8, True, None, 8)]
    store.close()


@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_keys_of_every_type_are_found_again(store, type_):
    layout = Layout((type_,), (Scalar.INTEGER,))
    make(store, layout)
    low, high = VALUES[type_]
    tick(store, 2, ((low,), (1,), 0), ((high,), (1,), 0), layout=layout)
    tick(store, 3, ((low,), (2,), 0), ((high,), None, 0), layout=layout)
    assert snapshot(store, TABLE, 3) == [(low, 2, 0)]
    stage = store.stage()
    keys = upserts(layout, ((low,), (0,), 0), ((high,), (0,), 0)).select(["k0"])
    assert plain(stage.lookup(TABLE, keys)) == [(low, 2, 0)]
    stage.abandon()


@pytest.mark.parametrize("flushed", [False, True])
def test_rows_are_found_as_they_were(store, flushed):
    make(store, window_ms=10**6)
    tick(store, 2, (("a",), (1, "x"), 0), (("b",), (1, "x"), 0))
    tick(store, 4, (("a",), (2, "y"), 1), (("c",), (5, "z"), 1))
    tick(store, 6, (("b",), None, 2))
    if flushed:
        flush.flush_all(store._core)
    stage = store.stage()
    keys = upserts(LAYOUT, *(((key,), (0, ""), 0) for key in ("a", "b", "c", "none"))).select(["k0"])
    for at in range(7):
        wanted = snapshot(store, TABLE, at) if at >= 2 else []
        assert plain(stage.lookup(TABLE, keys, Time(at))) == wanted
    assert plain(stage.lookup(TABLE, keys)) == snapshot(store, TABLE, 6)
    stage.abandon()


def test_a_collection_that_is_built_can_be_given_a_past(store):
    make(store)
    tick(store, 50, (("a",), (1, "x"), 0))
    built = CollectionId("BUILT")
    store.create_collection(built, LAYOUT, window_ms=10**6)
    store.advance_since(built, Time(10))
    for at, n in ((10, 1), (20, 2), (45, 3)):
        stage = store.stage()
        stage.upsert(QUERY, built, upserts(LAYOUT, (("a",), (n, "x"), 0)))
        stage.commit(Time(at))
    assert store.last_time() >= 50
    store.set_upper([built], Time(60))
    assert store.frontier(built) == Frontier(Time(10), Time(60))
    assert [snapshot(store, built, at)[0][1] for at in (10, 19, 20, 44, 45, 59)] == [1, 1, 2, 2, 3, 3]


AWKWARD = [None, "", " ", "'", '"', "\\", "a", "A", "ä", "日本", "🦆", "null", "NULL", "1", "-1", "[1]", "\x00", "\n"]


def test_multi_column_keys_are_never_mixed_up(store):
    layout = Layout((Scalar.STRING, Scalar.STRING), (Scalar.BIGINT,))
    make(store, layout)
    pairs = [(a, b) for a in AWKWARD for b in AWKWARD]
    tick(store, 2, *((pair, (i,), 0) for i, pair in enumerate(pairs)), layout=layout)
    tick(store, 3, *((pair, (-i,), 0) for i, pair in enumerate(pairs)), layout=layout)
    expected = sorted(((*pair, -i, 0) for i, pair in enumerate(pairs)), key=repr)
    assert snapshot(store, TABLE, 3) == expected
    for i, pair in enumerate(pairs):
        asked = pa.table({f"k{n}": pa.array([part], pa.string()) for n, part in enumerate(pair)})
        found = store.evaluate("SELECT k0, k1, c0 FROM t", {"t": KeyRead(TABLE, Time(3), asked)})
        assert plain(found) == ([] if None in pair else [(*pair, -i)])


def test_keys_that_are_null_or_not_unique_are_refused_when_staged(store):
    make(store)
    for rows in ([((None,), (1, "a"), 0)], [(("a",), (1, "a"), 0), (("a",), (2, "b"), 0)]):
        stage = store.stage()
        with pytest.raises(StoreError, match="null or not unique"):
            stage.upsert(QUERY, TABLE, upserts(LAYOUT, *rows))
        stage.abandon()


def test_columns_that_are_missing_or_of_another_type_are_refused_when_staged(store):
    make(store)
    stage = store.stage()
    rows = upserts(LAYOUT, (("a",), (1, "x"), 0))
    with pytest.raises(StoreError, match="lack the columns c1"):
        stage.upsert(QUERY, TABLE, rows.drop_columns(["c1"]))
    with pytest.raises(StoreError, match="types of their columns"):
        stage.upsert(QUERY, TABLE, rows.set_column(1, "c0", pa.array(["no number"])))
    stage.abandon()


def test_a_discarded_query_leaves_the_others(store):
    make(store)
    make(store, id_=CollectionId("other"))
    for query in (QUERY, OTHER):
        store.create_outbox(query, LAYOUT)
    store.create_state(TOTALS, TOTALS_LAYOUT)
    stage = store.stage()
    stage.upsert(QUERY, TABLE, upserts(LAYOUT, (("a",), (1, "x"), 0)))
    stage.enqueue_changes(QUERY, TABLE)
    stage.move(QUERY, [EndOffset(TopicName("t"), 0, 7)])
    stage.upsert(OTHER, CollectionId("other"), upserts(LAYOUT, (("b",), (1, "x"), 0)))
    stage.enqueue(OTHER, upserts(LAYOUT, (("b",), (1, "x"), 0)))
    merge(stage, OTHER, TOTALS, partials(TOTALS_LAYOUT, ((1,), (5, "x"), 0)), SUM_AND_LAST)
    stage.move(OTHER, [EndOffset(TopicName("t"), 0, 9)])
    stage.discard(OTHER)
    stage.commit(Time(2))
    assert snapshot(store, TABLE, 2) == [("a", 1, "x", 0)]
    assert store.count(CollectionId("other")) == 0
    assert store.pending() == [PendingRows(Time(2), QUERY, 1)]
    assert store.position(OTHER) == NEW_QUERY
    stage = store.stage()
    merge(stage, OTHER, TOTALS, partials(TOTALS_LAYOUT, ((1,), (5, "x"), 0)), SUM_AND_LAST)
    assert plain(stage.state_delta(TOTALS)) == [(1, False, None, None, None, True, 5, "x", 0)]
    stage.abandon()


def test_a_merge_that_fails_does_so_when_staged_and_can_be_discarded(store):
    make(store)
    store.create_state(TOTALS, TOTALS_LAYOUT)
    stage = store.stage()
    stage.upsert(QUERY, TABLE, upserts(LAYOUT, (("a",), (1, "x"), 0)))
    with pytest.raises(StoreError):
        merge(
            stage,
            OTHER,
            TOTALS,
            partials(TOTALS_LAYOUT, ((1,), (2**63 - 1, "x"), 0)),
            Merge(initial=("1", "NULL"), merged=("s0 + p0", "NULL")),
        )
    stage.discard(OTHER)
    stage.commit(Time(2))
    assert snapshot(store, TABLE, 2) == [("a", 1, "x", 0)]


def several(store, n):
    """States of queries that one statement can merge, each shown in a collection."""
    ids = [(QueryId(f"Q{i}"), StateId(f"S{i}"), CollectionId(f"T{i}")) for i in range(n)]
    for _, state, shown in ids:
        store.create_state(state, TOTALS_LAYOUT)
        make(store, SHOWN_LAYOUT, id_=shown)
    return ids


def test_queries_that_merge_alike_are_staged_together_and_fail_apart(store):
    ids = several(store, 4)
    risky = Merge(initial=("0", "NULL"), merged=("s0 + p0", "NULL"))
    plus_one = StateProjection(("s0 + 1",), None)
    amounts = [1, 2**63 - 1, 3, -5]
    for time, expected in ((2, {}), (3, {QueryId("Q1")})):
        stage = store.stage()
        failures = stage.merge(
            [
                StateMerge(
                    query, state, partials(TOTALS_LAYOUT, ((7,), (amount, None), 0)), risky, StateView(shown, plus_one)
                )
                for (query, state, shown), amount in zip(ids, [1, 2, 3, -5] if time == 2 else amounts, strict=True)
            ]
        )
        assert failures.keys() == set(expected)
        stage.commit(Time(time))
    last = [snapshot(store, shown, store.frontier(shown).upper - 1) for _, _, shown in ids]
    assert last == [[(7, 3, 0)], [(7, 3, 0)], [(7, 7, 0)], [(7, -9, 0)]]


def test_an_object_is_merged_once_in_a_tick(store):
    [(query, state, shown), (other, other_state, _)] = several(store, 2)
    rows, show = partials(TOTALS_LAYOUT, ((1,), (5, None), 0)), StateView(shown, StateProjection(("s0",), None))
    stage = store.stage()
    failures = stage.merge(
        [
            StateMerge(query, state, rows, SUM_AND_LAST, show),
            StateMerge(other, other_state, rows, SUM_AND_LAST, show),
            StateMerge(OTHER, state, rows, SUM_AND_LAST),
        ]
    )
    assert failures.keys() == {other, OTHER}
    assert stage.merge([StateMerge(OTHER, state, rows, SUM_AND_LAST)]).keys() == {OTHER}
    with pytest.raises(StoreError, match="already written"):
        stage.upsert(OTHER, shown, upserts(SHOWN_LAYOUT, ((1,), (5,), 0)))
    stage.discard(query)
    assert stage.merge([StateMerge(OTHER, state, rows, SUM_AND_LAST, show)]) == {}
    stage.commit(Time(2))
    assert snapshot(store, shown, 2) == [(1, 5, 0)]


def test_a_having_that_is_not_true_makes_the_row_absent(store):
    shown = Layout((Scalar.BIGINT,), (Scalar.STRING,))
    make(store, shown)
    store.create_state(TOTALS, TOTALS_LAYOUT)
    for time, amount in ((2, 5), (3, -9), (4, 10)):
        stage = store.stage()
        show = StateView(TABLE, StateProjection(("k0 || ' has ' || s0",), "s0 > 0"))
        merge(stage, QUERY, TOTALS, partials(TOTALS_LAYOUT, ((1,), (amount, None), time)), SUM_AND_LAST, show)
        stage.commit(Time(time))
    assert [snapshot(store, TABLE, at) for at in (2, 3, 4)] == [[(1, "1 has 5", 2)], [], [(1, "1 has 6", 4)]]


def test_an_outbox_keeps_the_order_and_the_deletes_until_it_is_settled(tmp_path):
    store = open_store(tmp_path)
    make(store)
    store.create_outbox(QUERY, LAYOUT)
    tick(store, 2, (("a",), (1, "x"), 0))
    stage = store.stage()
    stage.enqueue(QUERY, upserts(LAYOUT, *(((str(i),), (i, "s"), i) for i in range(1000))))
    stage.upsert(QUERY, TABLE, upserts(LAYOUT, (("a",), None, 77), (("never there",), None, 78)))
    stage.enqueue_changes(QUERY, TABLE)
    stage.commit(Time(3))
    store.close()
    store = open_store(tmp_path)
    assert store.pending() == [PendingRows(Time(3), QUERY, 1001)]
    rows = store.pending_rows(QUERY, Time(3)).to_pylist()
    assert [row["c0"] for row in rows[:1000]] == list(range(1000))
    assert rows[1000] == {"present": False, "k0": "a", "c0": None, "c1": None, "ts": 77}
    ends = [EndOffset(TopicName("sink"), partition, 1001 + partition) for partition in range(2)]
    store.mark_published({QUERY: Time(3)}, ends)
    assert store.pending() == []
    assert store.published_ends() == ends
    # A partition that is gone is forgotten.
    store.mark_published({}, [EndOffset(TopicName("sink"), 1, 0)])
    store.close()
    store = open_store(tmp_path)
    assert store.published_ends() == ends[:1]
    store.close()


def test_small_things_survive_a_restart(tmp_path):
    store = open_store(tmp_path)
    store.put("Q/status", "running")
    store.put("topic t", "id 7")
    store.put("gone", "x")
    store.put("gone", None)
    store.reserve(Time(500))
    store.reserve(Time(400))
    stage = store.stage()
    stage.move(QUERY, [EndOffset(TopicName("t"), p, 10 + p) for p in range(3)])
    stage.remap([EndOffset(TopicName("it's"), 0, 4)])
    stage.commit(Time(100))
    store.close()
    store = open_store(tmp_path)
    assert (store.get("Q/status"), store.get("topic t"), store.get("gone")) == ("running", "id 7", None)
    assert store.last_time() == 500
    assert [(p, offset) for (_, p), offset in store.position(QUERY).offsets.items()] == [(0, 10), (1, 11), (2, 12)]
    assert store.remap_at(Time(99)) == []
    assert store.remap_at(Time(100)) == store.remap_ends() == [EndOffset(TopicName("it's"), 0, 4)]
    store.forget_query(QUERY)
    store.close()
    store = open_store(tmp_path)
    assert (store.get("Q/status"), store.get("topic t"), store.position(QUERY)) == (None, "id 7", NEW_QUERY)
    store.close()


def test_a_long_log_is_rewritten_without_loss(tmp_path, monkeypatch):
    monkeypatch.setattr("holdfast.runtime.store.duckdb.compaction.WAL_ENTRIES", 20)
    store = open_store(tmp_path)
    make(store, window_ms=5)
    for time in range(2, 40):
        stage = store.stage()
        stage.upsert(QUERY, TABLE, upserts(LAYOUT, (("a",), (time, "x"), 0)))
        stage.remap([EndOffset(TopicName("t"), 0, time)])
        stage.move(QUERY, [EndOffset(TopicName("t"), 0, time)])
        stage.commit(Time(time))
        store.compact(limit=100)
    frontier = store.frontier(TABLE)
    assert store._core.wal.size < 60
    store.close()
    store = open_store(tmp_path)
    assert store.frontier(TABLE) == frontier
    times = range(frontier.since, 40)
    assert [store.remap_at(Time(at))[0].offset for at in times] == list(times)
    assert store.position(QUERY).offsets[TopicName("t"), 0] == 39
    store.close()


def test_dropped_objects_are_gone_and_can_be_made_again(tmp_path):
    store = open_store(tmp_path)
    make(store)
    store.create_state(TOTALS, TOTALS_LAYOUT)
    store.create_outbox(QUERY, LAYOUT)
    tick(store, 2, (("a",), (1, "x"), 0))
    store.drop_collection(TABLE)
    store.drop_state(TOTALS)
    store.drop_outbox(QUERY)
    assert (store.collections(), store.states(), store.pending()) == ({}, {}, [])
    with pytest.raises(StoreError, match='"table" does not exist in the store'):
        store.frontier(TABLE)
    make(store)
    store.close()
    store = open_store(tmp_path)
    assert store.collections() == {TABLE: LAYOUT}
    assert snapshot(store, TABLE, 0) == []
    store.close()


def test_a_build_keeps_no_history_unless_its_start_is_set(store):
    for id_ in (TABLE, CollectionId("kept")):
        store.create_collection(id_, LAYOUT, window_ms=1000)
    store.advance_since(CollectionId("kept"), Time(10))
    for time in (10, 20, 30):
        for id_ in (TABLE, CollectionId("kept")):
            tick(store, time, (("a",), (time, "x"), 0), id_=id_)
            assert store.frontier(id_).upper == 0
            with pytest.raises(ReadError, match="no readable time yet"):
                store.snapshot(id_, Time(time))
    store.set_upper([TABLE, CollectionId("kept")], Time(40))
    assert store.frontier(TABLE).since == 39
    assert store.frontier(CollectionId("kept")).since == 10
    assert [snapshot(store, CollectionId("kept"), at)[0][1] for at in (10, 15, 20, 39)] == [10, 10, 20, 30]


def test_evaluate_joins_collections_as_of_their_times(store):
    make(store)
    make(store, id_=CollectionId("other"))
    tick(store, 2, (("a",), (1, "x"), 0), (("b",), (2, "y"), 0))
    tick(store, 3, (("a",), (10, "x"), 0), id_=CollectionId("other"))
    tick(store, 4, (("a",), (100, "z"), 0), (("b",), None, 0))
    relations = {"t": (TABLE, Time(3)), "Other One": (CollectionId("other"), Time(3))}
    joined = 'SELECT t.k0, t.c0 + o.c0 AS sum FROM t JOIN "Other One" o USING (k0) ORDER BY 1'
    assert plain(store.evaluate(joined, relations)) == [("a", 11)]
    ctes = "WITH x AS (SELECT k0 FROM t WHERE c0 > ?) SELECT * FROM x ORDER BY k0 DESC"
    assert store.evaluate(ctes, {"t": (TABLE, Time(3))}, [0]).to_pylist() == [{"k0": "b"}, {"k0": "a"}]
    over = store.evaluate_over("SELECT sum(a) AS s FROM v", {"v": pa.table({"a": [1, 2]})})
    assert over.to_pylist() == [{"s": 3}]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM ledger",
        "SELECT 1; DROP TABLE ledger",
        "SELECT * FROM read_csv('/etc/passwd')",
        "ATTACH '/tmp/x.db'",
        "SET threads = 1",
        "SELECT nonsense",
    ],
)
def test_evaluate_reads_only_what_it_was_given(store, sql):
    make(store)
    with pytest.raises(ReadError):
        store.evaluate(sql, {})
    with pytest.raises(ReadError):
        store.evaluate(sql, {"t": (TABLE, Time(0))})


def test_evaluate_is_stopped_after_its_time(tmp_path):
    store = open_store(tmp_path, read_timeout=0.3)
    with pytest.raises(ReadError, match=r"longer than 0\.3 seconds"):
        store.evaluate("SELECT count(*) FROM range(1000000000) a, range(1000000000) b", {})
    assert store.evaluate("SELECT 1 AS one", {}).num_rows == 1
    store.close()


def test_readers_beside_ticks_never_see_half_of_one(store):
    make(store, window_ms=10**9)
    tick(store, 2, *(((str(i),), (2, "x"), 0) for i in range(50)))
    stop, problems = threading.Event(), []

    def read():
        while not stop.is_set():
            at = store.frontier(TABLE).upper - 1
            found = store.evaluate("SELECT min(c0) AS a, max(c0) AS b, count(*) AS n FROM t", {"t": (TABLE, Time(at))})
            if found.to_pylist() != [{"a": at, "b": at, "n": 50}]:
                problems.append((at, found.to_pylist()))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for time in range(3, 60):
        tick(store, time, *(((str(i),), (time, "x"), 0) for i in range(50)))
        if time % 20 == 0:
            store._core.checkpoint(beyond=-1)
    stop.set()
    for thread in threads:
        thread.join()
    assert problems == []


def test_an_open_page_does_not_keep_a_checkpoint_away(store):
    make(store, window_ms=10**9)
    tick(store, 2, *(((str(i),), (i, "x"), 0) for i in range(50)))
    pages = store.snapshot(TABLE, Time(2), page=10)
    first = next(pages)
    tick(store, 3, *(((str(i),), None, 0) for i in range(50)))
    assert store._core.checkpoint(beyond=-1)
    assert first.num_rows + sum(page.num_rows for page in pages) == 50


def test_a_checkpoint_that_fails_after_a_commit_does_not_fail_the_commit(store, monkeypatch):
    make(store)

    def full(**_: object) -> bool:
        raise StoreError("the disk of the data folder is full")

    with monkeypatch.context() as patched:
        patched.setattr(store._core, "checkpoint", full)
        tick(store, 2, (("a",), (1, "x"), 0))
    assert store.committed_time() == 2
    assert snapshot(store, TABLE, 2) != []


def test_changes_keep_every_change_of_a_key_in_order(store):
    make(store)
    tick(store, 2, (("a",), (1, "x"), 10))
    tick(store, 3, (("a",), None, 11))
    tick(store, 5, (("a",), (2, "y"), 12))
    tick(store, 6, (("a",), (2, "y"), 12))
    assert changes(store, TABLE, 1, 6) == [
        (2, "a", False, None, None, None, True, 1, "x", 10),
        (3, "a", True, 1, "x", 10, False, None, None, None),
        (5, "a", False, None, None, None, True, 2, "y", 12),
        (6, "a", True, 2, "y", 12, True, 2, "y", 12),
    ]
    assert changes(store, TABLE, 2, 4) == [(3, "a", True, 1, "x", 10, False, None, None, None)]
    assert changes(store, TABLE, 3, 4) == []


@pytest.mark.parametrize("page", [1, 2, 7, 1000])
def test_changes_can_be_read_in_parts_of_any_size(store, page):
    make(store)
    tick(store, 2, *(((str(i),), (i, "x"), 2) for i in range(5)))
    tick(store, 3, (("1",), None, 3))
    tick(store, 4, *(((str(i),), (i * 2, "y") if i % 3 else None, 4) for i in range(2, 12)))
    tick(store, 5, (("2",), (0, "z"), 5), (("new",), (1, "z"), 5))
    pages = parts_of_changes(store, TABLE, 1, 5, page)
    assert max(len(p) for p in pages) <= page
    read_back = [row for p in pages for row in plain(p)]
    assert [row[0] for row in read_back] == sorted(row[0] for row in read_back)
    assert sorted(read_back, key=repr) == sorted(changes(store, TABLE, 1, 5), key=repr)
    assert store.changed_at(TABLE) == 5


@pytest.mark.parametrize("keys", [LOOKED_UP, LOOKED_UP + 500])
def test_rows_are_replaced_rightly_also_when_a_checkpoint_comes_between(store, keys):
    make(store)
    store.create_state(TOTALS, TOTALS_LAYOUT)
    totals = partials(TOTALS_LAYOUT, *(((i,), (i, "x"), 0) for i in range(keys)))
    for time in range(2, 8):
        stage = store.stage()
        # Deletes of the first rows make a checkpoint move the others.
        rows = [((str(i),), (time, "x") if i % 5 > time % 5 else None, time) for i in range(keys)]
        stage.upsert(QUERY, TABLE, upserts(LAYOUT, *rows))
        merge(stage, QUERY, TOTALS, totals, SUM_AND_LAST)
        store._core.checkpoint(beyond=-1)
        stage.commit(Time(time))
        expected = sorted(((str(i), time, "x", time) for i in range(keys) if i % 5 > time % 5), key=repr)
        assert snapshot(store, TABLE, time) == expected
        stage = store.stage()
        merge(stage, QUERY, TOTALS, totals, SUM_AND_LAST)
        assert {(row[0], row[2]) for row in plain(stage.state_delta(TOTALS))} == {
            (i, i * (time - 1)) for i in range(keys)
        }
        stage.abandon()
