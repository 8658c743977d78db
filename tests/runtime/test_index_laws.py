"""An index has the rows of its table, each in the place that its expressions give it, at every time and however the
records are cut into ticks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import slow_law
from runtime.driver import Driver, Record

from holdfast.names import CollectionId
from holdfast.runtime.store.port import GroupRead, Time

pytestmark = pytest.mark.law

TABLES = """
CREATE TABLE t (id STRING PRIMARY KEY, k STRING, n INT, d DOUBLE) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
CREATE TABLE counts AS SELECT k, COUNT(*) AS c FROM t GROUP BY k HAVING COUNT(*) > 0;
CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE TABLE wins AS SELECT id, COUNT(*) AS c FROM s WINDOW TUMBLING (SIZE 10 MILLISECONDS) GROUP BY id;
"""
INDEXES = """
CREATE INDEX by_k ON t (k);
CREATE INDEX by_two ON t (UCASE(k), n + 1);
CREATE INDEX by_d ON t (d);
CREATE DEFAULT INDEX by_key ON t;
CREATE INDEX by_c ON counts (c);
CREATE INDEX by_id ON wins (id);
CREATE INDEX by_start ON wins (WINDOWSTART, c);
"""
# What each index is on, and by: a function of a row.
PLACES: dict[str, tuple[str, Any]] = {
    "BY_K": ("T", lambda row: (row[1],)),
    "BY_TWO": ("T", lambda row: (None if row[1] is None else row[1].upper(), None if row[2] is None else row[2] + 1)),
    "BY_D": ("T", lambda row: (None if row[3] is None else row[3] + 0.0,)),
    "BY_KEY": ("T", lambda _row: ()),
    "BY_C": ("COUNTS", lambda row: (row[1],)),
    "BY_ID": ("WINS", lambda row: (row[0],)),
    "BY_START": ("WINS", lambda row: (row[1], row[3])),
}

values = st.sampled_from(["null", '"a"', '"A"', '"b"'])
table_texts = st.none() | st.builds(
    lambda k, n, d: f'{{"K": {k}, "N": {n}, "D": {d}}}',
    values,
    st.sampled_from(["null", "1", "2"]),
    st.sampled_from(["null", "0.0", "-0.0", "1.5"]),
)

records = st.lists(
    st.one_of(
        st.builds(
            lambda key, text: Record("t", key, None if text is None else text.encode()),
            st.sampled_from([b"x", b"y", b"z"]),
            table_texts,
        ),
        st.builds(
            lambda key, at: Record("s", key, b'{"N": 1}', at), st.sampled_from([b"x", b"y"]), st.sampled_from([1, 12])
        ),
    ),
    min_size=2,
    max_size=9,
)


def cut(found: Sequence[Record], sizes: Sequence[int]) -> list[list[Record]]:
    ticks, at = [], 0
    for size in sizes:
        ticks.append(list(found[at : at + size]))
        at += size
    return [tick for tick in [*ticks, list(found[at:])] if tick]


def contents(driver: Driver, name: str, at: Time) -> list[tuple[Any, ...]]:
    """-0.0 is as it is in a row, and 0.0 in a place."""
    return [tuple(map(repr, row)) for row in driver.rows(name, at)]


def check(driver: Driver, at: Time) -> None:
    for index, (table, place) in PLACES.items():
        rows = driver.rows(table, at)
        expected = [tuple(map(repr, (*place(row), *row))) for row in rows]
        assert sorted(contents(driver, index, at)) == sorted(expected), index


@given(found=records, sizes=st.lists(st.integers(1, 4), max_size=4))
@slow_law(3)
def test_an_index_agrees_with_its_table(engine, found, sizes):
    whole, single = Driver(engine, TABLES + INDEXES), Driver(engine, TABLES + INDEXES)
    since = {driver: driver.time for driver in (whole, single)}
    for tick in cut(found, sizes):
        assert not whole.tick(tick).failed
    single.ticks(found)
    for driver in (whole, single):
        for at in range(since[driver], driver.time + 1):
            check(driver, Time(at))
    for index in PLACES:
        assert contents(whole, index, whole.time) == contents(single, index, single.time)
    whole.close()
    single.close()


def test_rows_are_found_by_what_an_index_is_by_also_after_a_restart(engine, tmp_path: Path):
    driver = Driver(engine, TABLES + INDEXES, folder=tmp_path)
    driver.tick([Record("t", b"x", b'{"K": "a", "N": 1}', 1), Record("t", b"y", b'{"K": "b", "N": 1}', 2)])
    first = driver.time
    driver.tick([Record("t", b"x", b'{"K": "b", "N": 2}', 3)])
    driver = driver.restart()

    def found(index: str, at: Time, **groups: Any) -> list[tuple[Any, ...]]:
        asked = pa.table({name: pa.array(values) for name, values in groups.items()})
        rows = driver.store.read_groups(GroupRead(CollectionId(index), at, asked)).to_pylist()
        return sorted(tuple(row.values()) for row in rows)

    assert found("BY_K", first, k0=["a"]) == [("x", "a", 1, None, 1)]
    assert found("BY_K", driver.time, k0=["a"]) == []
    assert found("BY_K", driver.time, k0=["a", "b"]) == [("x", "b", 2, None, 3), ("y", "b", 1, None, 2)]
    assert found("BY_TWO", driver.time, k0=["B"], k1=pa.array([3], pa.int32())) == [("x", "b", 2, None, 3)]
    driver.close()
