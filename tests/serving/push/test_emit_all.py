"""EMIT ALL: the rows of a table, then its changes, cut at one time."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from holdfast.names import CollectionId
from holdfast.runtime.store.port import Time
from holdfast.serving.push import batch_size
from holdfast.serving.push.emit import TablePush
from holdfast.serving.results import PushBatch
from holdfast.sql.read.select import SelectKind
from tests.serving.client_reads import Reading, plain

TABLE = CollectionId("T")


def emit_all(reading: Reading, text: str, store: Any = None) -> TablePush:
    assert reading.bound(text).kind is SelectKind.ALL
    return reading.push(text, snapshot=True, marked=True, store=store)


def taken(push: TablePush) -> Iterator[PushBatch]:
    while (batch := push.next(0)) is not None:
        yield batch


def parts(push: TablePush) -> tuple[list[tuple], int | None, list[tuple]]:
    """The rows of the snapshot, its time, and the changes."""
    before: list[tuple] = []
    after: list[tuple] = []
    marker = None
    for batch in taken(push):
        (before if marker is None else after).extend(plain(batch.rows))
        marker = batch.snapshot if batch.snapshot is not None else marker
    return before, marker, after


def test_the_rows_then_a_marker_then_changes_and_deletes(reading: Reading) -> None:
    reading.put("T", {"a": (1, "x"), "b": (7, "y"), "c": (9, "z")})
    push = emit_all(reading, "SELECT id, n * 10 AS m FROM t WHERE n > 5 EMIT ALL;")
    assert parts(push) == ([("b", 70, False), ("c", 90, False)], reading.now, [])
    reading.put("T", {"a": (8, "x"), "b": None})
    reading.put("T", {"c": (2, "z")})
    changes = [row for batch in taken(push) for row in plain(batch.rows)]
    assert sorted(changes[:2]) == [("a", 80, False), ("b", None, True)]
    assert changes[2:] == [("c", None, True)]
    push.close()


def test_of_an_empty_table_the_marker_comes_alone(reading: Reading) -> None:
    push = emit_all(reading, "SELECT * FROM t EMIT ALL;")
    batch = push.next(0)
    assert (batch.rows.num_rows, batch.snapshot, batch.time) == (0, reading.now, reading.now)
    assert batch.rows.column_names == ["r0", "r1", "r2", "tombstone"]
    assert push.next(0) is None
    push.close()


class Busy:
    """A store that others write to before each hold and each page."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._next = 0
        self.reads: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name == "hold" and not self.reads:
            self.write()
        return getattr(self._reading.store, name)

    def write(self) -> None:
        self._next += 1
        a, b, gone = (f"k{(self._next * step) % 40:02}" for step in (1, 7, 11))
        self._reading.put("T", {a: (self._next, a), b: (self._next, b), gone: None})

    def snapshot(self, collection: CollectionId, at: Time, *, page: Any) -> Iterator[pa.Table]:
        del page
        for rows in self._reading.store.snapshot(collection, at, page=5):
            self.write()
            self.reads.append("page")
            yield rows


def test_snapshot_and_changes_are_cut_at_one_time(reading: Reading) -> None:
    """Were the snapshot of a later time than the first change, changes would come again; of an earlier one, be lost."""
    reading.put("T", {f"k{i:02}": (0, "x") for i in range(40)})
    store = Busy(reading)
    cut = reading.now
    push = emit_all(reading, "SELECT id, n, s FROM t EMIT ALL;", store)
    store.write()
    before, marker, after = parts(push)
    assert marker == cut
    assert sorted(before) == [(f"k{i:02}", 0, "x", False) for i in range(40)], "the rows as of the cut, none newer"
    changes = reading.store.changes(TABLE, Time(cut), Time(reading.now)).to_pylist()
    expected = [(c["k0"], c["a0"], c["a1"], not c["a_present"]) for c in changes if c["a_present"] or c["b_present"]]
    assert len(expected) > 20
    assert sorted(after, key=str) == sorted(expected, key=str), "every change after the cut, once"
    folded = {row[0]: row for row in before}
    for row in after:
        folded.pop(row[0], None) if row[-1] else folded.update({row[0]: row})
    assert sorted(folded.values()) == sorted(plain(reading.pull("SELECT id, n, s, false AS x FROM t;").rows))
    push.close()


def test_the_first_row_comes_before_the_last_is_read(reading: Reading) -> None:
    reading.put("T", {f"k{i:02}": (0, "x") for i in range(40)})
    store = Busy(reading)
    push = emit_all(reading, "SELECT id FROM t EMIT ALL;", store)
    assert push.next(0).rows.num_rows == 5
    assert store.reads == ["page"]
    push.close()


def test_pages_grow_to_what_fits_a_batch(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_size, "FIRST_ROWS", 10)
    monkeypatch.setattr(batch_size, "BATCH_BYTES", 3_000)
    reading.put("T", {f"k{i:03}": (i, "x" * 10) for i in range(500)})
    push = emit_all(reading, "SELECT * FROM t EMIT ALL;")
    sizes = [(batch.rows.num_rows, batch.rows.nbytes) for batch in taken(push)]
    assert sum(rows for rows, _ in sizes) == 500
    assert sizes[0][0] == 10
    assert 10 < max(rows for rows, _ in sizes) < 200
    assert max(size for _, size in sizes) < 6_000
    push.close()


def test_wide_rows_come_few_at_a_time_also_as_changes(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_size, "FIRST_ROWS", 10)
    monkeypatch.setattr(batch_size, "BATCH_BYTES", 20_000)
    push = emit_all(reading, "SELECT * FROM t EMIT ALL;")
    for number in range(50):
        reading.put("T", {f"k{number}{i}": (i, "x" * 1000) for i in range(5)})
    sizes = [batch.rows.nbytes for batch in taken(push)]
    assert len(sizes) > 12
    assert max(sizes) < 40_000
    push.close()


def test_limit_counts_rows_and_changes_together(reading: Reading) -> None:
    reading.put("T", {"a": (1, "x"), "b": (2, "x")})
    push = emit_all(reading, "SELECT id FROM t EMIT ALL LIMIT 3;")
    reading.put("T", {"a": None})
    rows = [row for _ in range(3) for row in plain(push.next(0).rows)]
    assert rows == [("a", False), ("b", False), ("a", True)], "the marker has none"
    with pytest.raises(StopIteration):
        push.next(0)
