"""Push queries on tables."""

from threading import Thread

import pytest

from holdfast.names import CollectionId
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.store.port import Time
from holdfast.serving.projection import Projection
from holdfast.serving.push import batch_size
from holdfast.serving.push.emit import TablePush
from holdfast.serving.push.row_reader import RowReader
from tests.serving.client_reads import Reading, plain

TABLE = CollectionId("T")


def rows(push: TablePush) -> list[tuple] | None:
    batch = push.next(0)
    return plain(batch.rows) if batch is not None else None


def least_hold(reading: Reading) -> int:
    """How far history can be forgotten: the time of the least hold, or the present."""
    reading.let_pass(10)
    reading.store.advance_since(TABLE, Time(reading.now))
    reading.store.compact(limit=1_000)
    return reading.store.frontier(TABLE).since


def test_every_change_from_now_on(reading):
    reading.put("T", {"old": (0, "x")})
    push = reading.push("SELECT id, n * 10 AS m FROM t EMIT CHANGES;")
    assert rows(push) is None
    reading.put("T", {"a": (1, "x")})
    reading.put("T", {"a": (2, "x")})
    reading.put("T", {"a": None, "b": (None, None)})
    found = rows(push)
    assert found[:2] == [("a", 10, False), ("a", 20, False)]
    assert sorted(found[2:]) == [("a", None, True), ("b", None, False)]
    assert rows(push) is None
    push.close()


def test_a_filter_that_stops_holding_is_a_tombstone(reading):
    push = reading.push("SELECT id, s, n FROM t WHERE n > 5 EMIT CHANGES;")
    for value in (1, 6, 7, 5, 4, None, 9):
        reading.put("T", {"a": (value, "x")})
    reading.put("T", {"a": None})
    reading.put("T", {"b": (1, "x")})
    reading.put("T", {"b": None})
    assert rows(push) == [
        ("a", "x", 6, False),
        ("a", "x", 7, False),
        ("a", None, None, True),
        ("a", "x", 9, False),
        ("a", None, None, True),
    ]
    push.close()


def test_in_a_tombstone_what_is_made_of_the_key_has_its_value(reading):
    reading.put("T", {"a": (6, "x")})
    push = reading.push("SELECT LEN(id) AS l, id + s AS both, 5 AS five, ROWTIME AS r FROM t EMIT CHANGES;")
    reading.put("T", {"a": None})
    assert rows(push) == [(1, None, 5, None, True)]
    push.close()


def test_both_dialects_emit_the_same_changes(engine):
    reading = Reading(engine)
    here = reading.push("SELECT id, n + 1 AS m FROM t WHERE n > 1 EMIT CHANGES;")
    spark = reading.push("SELECT id, n + 1 AS m FROM t WHERE n > 1 AND UCASE(id) <> '' EMIT CHANGES;")
    assert [Projection(reading.bound(f"SELECT {what} AS x FROM t;")).dialect for what in ("id", "UCASE(id)")] == [
        Dialect.DUCKDB,
        Dialect.SPARK,
    ]
    for value in (1, 2, 3, 1, None):
        reading.put("T", {"a": (value, "x")})
        reading.put("T", {f"b{value}": (value, "y")})
    found = rows(here)
    assert found == rows(spark)
    assert [row for row in found if row[0] == "a"] == [("a", 3, False), ("a", 4, False), ("a", None, True)]
    here.close()
    spark.close()
    reading.close()


def test_with_a_snapshot_the_rows_come_first_and_no_change_is_lost_or_repeated(reading):
    reading.put("T", {"a": (1, "x"), "b": (2, "x"), "c": (0, "x")})
    push = reading.push("SELECT id, n FROM t WHERE n > 0 EMIT CHANGES;", snapshot=True)
    reading.put("T", {"a": (3, "x"), "b": None})
    assert sorted(rows(push)) == [("a", 1, False), ("b", 2, False)]
    assert sorted(rows(push)) == [("a", 3, False), ("b", None, True)]
    assert rows(push) is None
    push.close()


def test_limit_ends_the_query_and_lets_go_of_history(reading):
    push = reading.push("SELECT id FROM t EMIT CHANGES LIMIT 3;")
    for i in range(5):
        reading.put("T", {f"k{i}": (i, "x")})
    assert rows(push) == [("k0", False), ("k1", False), ("k2", False)]
    with pytest.raises(StopIteration):
        push.next(0)
    assert least_hold(reading) == reading.now


def test_an_open_query_keeps_the_history_that_it_has_not_read(reading):
    push = reading.push("SELECT id, n FROM t EMIT CHANGES;")
    place = reading.now
    for value in range(3):
        reading.put("T", {"a": (value, "x")})
    assert least_hold(reading) == place
    assert rows(push) == [("a", 0, False), ("a", 1, False), ("a", 2, False)]
    assert least_hold(reading) == reading.store.changed_at(TABLE)
    push.close()
    push.close()
    assert least_hold(reading) == reading.now


def test_close_from_another_thread_ends_a_waiting_reader_at_once(reading):
    push = reading.push("SELECT id FROM t EMIT CHANGES;")
    ended = []

    def follow() -> None:
        try:
            push.next(60)
        except StopIteration:
            ended.append(True)

    reader = Thread(target=follow)
    reader.start()
    push.close()
    reader.join(5)
    assert ended == [True]
    assert least_hold(reading) == reading.now


def test_a_tick_wakes_a_waiting_reader(reading):
    push = reading.push("SELECT id FROM t EMIT CHANGES;")
    found = []
    reader = Thread(target=lambda: found.append(plain(push.next(60).rows)))
    reader.start()
    reading.put("T", {"a": (1, "x")})
    reader.join(5)
    assert found == [[("a", False)]]
    push.close()


class ClosesInBetween:
    """A store in which someone closes the query while it reads."""

    def __init__(self, store, method: str) -> None:
        self._store, self._method = store, method
        self.push: TablePush | None = None

    def __getattr__(self, name: str):
        if name == self._method and self.push is not None:
            self.push.close()
        return getattr(self._store, name)


@pytest.mark.parametrize("method", ["changes", "hold", "evaluate_over", "snapshot"])
def test_close_in_the_middle_of_a_read_leaves_no_hold(method, reading):
    store = ClosesInBetween(reading.store, method)
    push = reading.push("SELECT id FROM t EMIT CHANGES;", store=store, snapshot=method == "snapshot")
    store.push = push
    reading.put("T", {"a": (1, "x")})
    while True:
        try:
            push.next(0)
        except StopIteration:
            break
        push.close()
    assert least_hold(reading) == reading.now


def test_closing_between_the_pages_of_a_snapshot_leaves_no_hold(reading):
    reading.put("T", {f"k{i}": (i, "x") for i in range(10)})

    class SmallPages:
        def __getattr__(self, name: str):
            return getattr(reading.store, name)

        def snapshot(self, collection, at, *, page):
            del page
            return reading.store.snapshot(collection, at, page=2)

    push = reading.push("SELECT id FROM t EMIT CHANGES;", snapshot=True, store=SmallPages())
    assert len(rows(push)) == 2
    push.close()
    with pytest.raises(StopIteration):
        push.next(0)
    assert least_hold(reading) == reading.now


def test_a_reader_that_was_away_gets_its_changes_in_parts(reading, monkeypatch):
    monkeypatch.setattr(batch_size, "FIRST_ROWS", 3)
    monkeypatch.setattr(batch_size, "MOST_ROWS", 3)
    push = reading.push("SELECT id, n FROM t EMIT CHANGES;")
    reading.put("T", {"a": (0, "x")})
    reading.put("T", {"a": (1, "x"), "b": (1, "x")})
    large = reading.put("T", {f"k{i}": (i, "x") for i in range(7)})
    reading.put("T", {"a": None})
    found = []
    while (batch := push.next(0)) is not None:
        found.append((plain(batch.rows), batch.time))
    assert max(len(rows) for rows, _ in found) == 3
    rows_sent = [row for rows, _ in found for row in rows]
    assert [row for row in rows_sent if row[0] == "a"] == [("a", 0, False), ("a", 1, False), ("a", None, True)]
    assert ("b", 1, False) in rows_sent
    assert {row for row in rows_sent if row[0].startswith("k")} == {(f"k{i}", i, False) for i in range(7)}
    times = [time for _, time in found]
    assert times[:-1] == [None] * (len(times) - 1), "only with the last part is everything up to a time given"
    assert times[-1] == large + 1
    push.close()


def test_a_part_without_a_row_for_the_query_is_passed_over(reading, monkeypatch):
    monkeypatch.setattr(batch_size, "FIRST_ROWS", 1)
    monkeypatch.setattr(batch_size, "MOST_ROWS", 1)
    push = reading.push("SELECT id, n FROM t WHERE n > 5 EMIT CHANGES;")
    for value in (1, 2, 3, 6):
        reading.put("T", {f"k{value}": (value, "x")})
    assert rows(push) == [("k6", 6, False)]
    push.close()


def test_a_reader_is_ready_when_there_is_something_for_it(reading):
    push = reading.push("SELECT id FROM t EMIT CHANGES;")
    assert not push.ready()
    reading.put("I", {1: (1,)})
    assert not push.ready(), "another table has changed"
    reading.put("T", {"a": (1, "x")})
    assert push.ready()
    assert rows(push) == [("a", False)]
    assert not push.ready()
    push.close()
    assert push.ready(), "there is an end to report"


def test_time_moves_on_for_a_reader_of_a_table_that_does_not(reading):
    push = reading.push("SELECT id FROM t EMIT CHANGES;")
    assert push.next(0) is None
    assert push.time == reading.now
    reading.now += 5_000
    assert push.next(0) is None
    assert push.time == reading.now
    assert least_hold(reading) == reading.now - 10, "and so does what it holds"
    push.close()


def test_readers_at_the_same_place_share_what_is_read(reading):
    reads = []

    class Counting:
        def __getattr__(self, name: str):
            if name in ("changes", "evaluate_over"):
                reads.append(name)
            return getattr(reading.store, name)

    reader = RowReader(Counting(), None)
    made = [
        reading.push(text, reader=reader)
        for text in ["SELECT id, n FROM t EMIT CHANGES;"] * 5 + ["SELECT id FROM t WHERE n > 1 EMIT CHANGES;"]
    ]
    reading.put("T", {"a": (1, "x"), "b": (2, "x")})
    batches = [push.next(0) for push in made]
    assert sorted(reads) == ["changes", "changes", "evaluate_over", "evaluate_over"]
    assert [sorted(plain(b.rows)) for b in batches] == [[("a", 1, False), ("b", 2, False)]] * 5 + [[("b", False)]]
    assert batches[0].encoded is batches[4].encoded is not batches[5].encoded
    for push in made:
        push.close()
