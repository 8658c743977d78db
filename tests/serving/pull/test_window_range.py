"""Windows of a key are read by range: the path, what it reads, and that the answer is that of a scan."""

import struct
from typing import Any

import pytest
from runtime.driver import Driver, Record

from holdfast.runtime.store.duckdb.disk import flush
from holdfast.runtime.store.port import GroupRead
from holdfast.serving.pull.explain import explain_paths
from holdfast.serving.pull.query import read_paths
from holdfast.serving.pull.table import select_paths
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.parse import parse

TABLES = """
CREATE TABLE w (id STRING PRIMARY KEY, n INT)
  WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON', WINDOW_TYPE='TUMBLING', WINDOW_SIZE='10 MILLISECONDS',
        RETAIN_HISTORY='1 HOUR');
CREATE TABLE s (id STRING PRIMARY KEY, n INT)
  WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', WINDOW_TYPE='SESSION', RETAIN_HISTORY='1 HOUR');
CREATE TABLE names (id STRING PRIMARY KEY, name STRING) WITH (KAFKA_TOPIC='names', VALUE_FORMAT='JSON');
"""


def window(key: str, start: int, value: int | None) -> Record:
    text = None if value is None else f'{{"N": {value}}}'.encode()
    return Record("w", key.encode() + struct.pack(">q", start), text, start)


def session(key: str, start: int, end: int, value: int) -> Record:
    return Record("s", key.encode() + struct.pack(">qq", end, start), f'{{"N": {value}}}'.encode(), end)


class Reads:
    def __init__(self, engine: Any) -> None:
        self.driver = driver = Driver(engine, TABLES)
        driver.tick(
            [
                *(window(key, start, start) for key in ("a", "ab", "b") for start in range(0, 1_000, 10)),
                *(session(key, start, start + 50, start) for key in ("a", "b") for start in range(0, 1_000, 100)),
                Record("names", b"a", b'{"NAME": "Ann"}', 1),
            ]
        )
        with driver.store._core.write_lock:
            flush.flush_all(driver.store._core)
        self.before = driver.time - 1
        driver.tick([window("a", 100, -1), window("a", 110, None), window("a", 105, -2), session("a", 110, 140, -3)])

    def bound(self, text: str) -> BoundSelect | BoundRead:
        bound = bind(parse(f"{text};")[0].statement, self.driver.catalog)
        assert isinstance(bound, BoundSelect | BoundRead)
        return bound

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in self.driver.service.pull(self.bound(text)).rows.to_pylist()]

    def path(self, text: str) -> str:
        explained = explain_paths(self.bound(text), self.driver.store, self.driver.service._times)
        return explained.splitlines()[2].removeprefix("  Path: ")

    def rows_read(self, text: str) -> int:
        bound, store = self.bound(text), self.driver.store
        paths = (
            select_paths(bound, store)
            if isinstance(bound, BoundSelect)
            else next(iter(read_paths(bound, store).values()))
        )
        relation = paths.at([paths.table.name]).relation(self.driver.time)
        assert isinstance(relation, GroupRead)
        return int(store.read_groups(relation).num_rows)


@pytest.fixture(scope="module")
def reads(engine):
    made = Reads(engine)
    yield made
    made.driver.close()


CASES = [
    ("w WHERE id = 'a' AND WINDOWSTART >= 90 AND WINDOWSTART <= 120", 'by the key and windows 90..120 of table "W"'),
    ("w WHERE id = 'a' AND WINDOWSTART BETWEEN 90 AND 120", 'by the key and windows 90..120 of table "W"'),
    ("w WHERE 90 < WINDOWSTART AND id = 'a' AND 120 > WINDOWSTART", 'by the key and windows 90..120 of table "W"'),
    ("w WHERE id = 'a' AND WINDOWSTART > 950", 'by the key and windows 950.. of table "W"'),
    ("w WHERE id = 'a' AND WINDOWEND <= 120", 'by the key and windows ..120 of table "W"'),
    ("w WHERE id = 'a' AND WINDOWSTART IN (90, 100) AND n < 95", 'by the key of table "W"'),
    ("w WHERE id IN ('a', 'b') AND WINDOWSTART IN (90, 100)", 'by the key and windows 90..100 of table "W"'),
    ("w WHERE id = 'a' AND WINDOWSTART >= '1970-01-01T00:00:00.950'", 'by the key and windows 950.. of table "W"'),
    ("w WHERE id = 'a'", 'by the key and all windows of table "W"'),
    ("w WHERE id = 'a' AND (WINDOWSTART < 20 OR n < 0)", 'by the key and all windows of table "W"'),
    ("w WHERE id = 'a' AND WINDOWSTART >= n", 'by the key and all windows of table "W"'),
    ("w WHERE id = 'a' AND WINDOWSTART > 99999999999999", 'by the key and windows 99999999999999.. of table "W"'),
    ("w WHERE id >= 'a' AND WINDOWSTART >= 990", 'all rows of table "W"'),
    ("s WHERE id = 'a' AND WINDOWEND >= 350", 'by the key and windows 350.. of table "S"'),
    ("s WHERE id = 'a' AND WINDOWEND >= 350 AND WINDOWSTART <= 500", 'by the key and windows 350.. of table "S"'),
    ("s WHERE id = 'a' AND WINDOWSTART >= 300 AND WINDOWEND <= 350", 'by the key and windows 300..350 of table "S"'),
    ("s WHERE id = 'a' AND WINDOWSTART = 110 AND WINDOWEND = 140", 'by the key and windows 140..140 of table "S"'),
]  # fmt: skip
ORDERS = ["", " ORDER BY WINDOWSTART, id", " ORDER BY WINDOWSTART DESC, id LIMIT 3"]


@pytest.mark.parametrize(("rest", "path"), CASES)
def test_the_windows_of_a_key_are_read_by_range(
    reads: Reads, monkeypatch: pytest.MonkeyPatch, rest: str, path: str
) -> None:
    select = f"SELECT id, WINDOWSTART, WINDOWEND, n FROM {rest}"
    assert reads.path(select) == path
    texts = [f"{select}{order}{at}" for order in ORDERS for at in ("", f" AS OF {reads.before}")]
    found = [reads.ask(text) for text in texts]
    monkeypatch.setattr("holdfast.serving.pull.paths.window_range", lambda *_: None)
    assert reads.path(f"{select} ORDER BY n").startswith("all rows of table")
    for text, rows in zip(texts, found, strict=True):
        scanned = reads.ask(text)
        assert rows == scanned if "ORDER BY" in text else sorted(rows) == sorted(scanned)


def test_only_the_windows_in_range_are_read(reads: Reads) -> None:
    text = "SELECT n FROM w WHERE id = 'a' AND WINDOWSTART >= 90 AND WINDOWSTART <= 120"
    assert reads.rows_read(text) == reads.rows_read(f"{text} ORDER BY WINDOWSTART") == 4
    assert reads.rows_read("SELECT n FROM s WHERE id = 'a' AND WINDOWEND >= 950 ORDER BY WINDOWEND") == 1


def test_a_join_reads_a_range_of_windows(reads: Reads) -> None:
    text = (
        "SELECT x.WINDOWSTART, names.name, x.n FROM w x JOIN names ON x.id = names.id "
        "WHERE x.id = 'a' AND x.WINDOWSTART >= 980 ORDER BY x.n"
    )
    assert reads.path(text) == 'by the key and windows 980.. of table "W"'
    assert reads.ask(text) == [(980, "Ann", 980), (990, "Ann", 990)]
