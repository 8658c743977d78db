"""Joins of streams: how records are cut into ticks changes no result, and the results are those of a plain model."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from laws import slow_law
from runtime.driver import Driver, Record, Sent

from holdfast.runtime.store.duckdb.stage import DuckDbStage

pytestmark = pytest.mark.law

BACK, AHEAD, GRACE = 4, 6, 3
"""Milliseconds: a left row meets right ones from 4 before to 6 after it."""
DAY = 86_400_000
WITHIN = f"WITHIN ({BACK} MILLISECONDS, {AHEAD} MILLISECONDS)"
JOINS = {
    # The kind of join, the sides that also give results alone, and whether these wait for the grace period.
    "BOTH": ("l.id", "INNER JOIN", "", True),
    "EAGER": ("l.id", "LEFT JOIN", "l", False),
    "EAGER_RIGHTS": ("r.id", "RIGHT JOIN", "r", False),
    "EAGER_ALL": ("ROWKEY", "FULL OUTER JOIN", "lr", False),
    "LEFTS": ("l.id", "LEFT JOIN", "l", True),
    "RIGHTS": ("r.id", "RIGHT JOIN", "r", True),
    "ALL_OF_THEM": ("ROWKEY", "FULL OUTER JOIN", "lr", True),
}
SQL = "".join(
    f"CREATE STREAM {side} (id STRING KEY, v INT) WITH (KAFKA_TOPIC='{side}', VALUE_FORMAT='JSON');" for side in "lr"
) + "".join(
    f"CREATE STREAM {name} AS SELECT {key}, l.v AS a, r.v AS b FROM l {kind} r "
    f"{WITHIN} {f'GRACE PERIOD {GRACE} MILLISECONDS' if deferred else ''} ON l.id = r.id;"
    for name, (key, kind, _, deferred) in JOINS.items()
)

PARTITIONS = {b"a": 0, b"b": 1, b"c": 1, None: 0}


# -- the model ---------------------------------------------------------------------------------------


@dataclass
class Row:
    side: str
    key: bytes
    value: int
    ts: int


@dataclass
class Model:
    """One partition of a join, a record at a time."""

    outer: str
    deferred: bool
    rows: list[Row] = field(default_factory=list)
    waiting: list[Row] = field(default_factory=list)
    own: dict[str, int] = field(default_factory=dict)
    out: list[Sent] = field(default_factory=list)

    @property
    def grace(self) -> int:
        return GRACE if self.deferred else DAY - BACK - AHEAD

    def take(self, row: Row) -> None:
        self.own[row.side] = max(row.ts, self.own.get(row.side, -1))
        now = max(self.own.values())
        closed = [w for w in self.waiting if now > self.end(w) + self.grace]
        for w in sorted(closed, key=lambda w: (w.ts, w.side == "l", w.key)):
            self.waiting.remove(w)
            self.alone(w)
        back, ahead = (BACK, AHEAD) if row.side == "l" else (AHEAD, BACK)
        others = [
            o
            for o in self.rows
            if o.side != row.side and o.key == row.key and row.ts - back <= o.ts <= row.ts + ahead and self.retained(o)
        ]
        for o in sorted(others, key=lambda o: o.ts):
            self.waiting = [w for w in self.waiting if w is not o]
            left, right = (row, o) if row.side == "l" else (o, row)
            self.send(row.key, left.value, right.value, max(row.ts, o.ts))
        if not others and row.side in self.outer:
            if self.deferred and now <= self.end(row) + self.grace:
                self.waiting.append(row)
            else:
                self.alone(row)
        if self.retained(row):
            self.rows.append(row)

    def end(self, row: Row) -> int:
        return row.ts + (AHEAD if row.side == "l" else BACK)

    def retained(self, row: Row) -> bool:
        return row.ts > self.own[row.side] - BACK - AHEAD - self.grace

    def alone(self, row: Row) -> None:
        left, right = (row.value, None) if row.side == "l" else (None, row.value)
        self.send(row.key, left, right, row.ts)

    def send(self, key: bytes, left: int | None, right: int | None, ts: int) -> None:
        self.out.append(Sent(key, json.dumps({"A": left, "B": right}, separators=(",", ":")).encode(), ts))


def expected(records: Sequence[Record]) -> dict[str, dict[int, list[Sent]]]:
    found: dict[str, dict[int, list[Sent]]] = {}
    for name, (_, _, outer, deferred) in JOINS.items():
        models = {part: Model(outer, deferred) for part in (0, 1)}
        for record in records:
            if record.key is not None and record.value is not None:
                value = json.loads(record.value)["V"]
                models[record.partition].take(Row(record.topic, record.key, value, record.timestamp))
        found[name] = {part: model.out for part, model in models.items() if model.out}
    return found


# -- the engine --------------------------------------------------------------------------------------


def in_order(records: Sequence[Record]) -> list[Record]:
    """The order in which the records of a tick come: of several partitions the one first that is behind in time."""
    reached: dict[tuple[str, int], int] = {}
    placed = []
    for place, record in enumerate(records):
        queue = (record.topic, record.partition)
        reached[queue] = max(record.timestamp, reached.get(queue, 0))
        placed.append(((reached[queue], record.topic, record.partition, place), record))
    return [record for _, record in sorted(placed, key=lambda p: p[0])]


def cut(records: Sequence[Record], places: Iterable[int]) -> list[Sequence[Record]]:
    edges = [0, *sorted({p for p in places if 0 < p < len(records)}), len(records)]
    return [records[a:b] for a, b in pairwise(edges)]


def results(
    engine, ticks: Sequence[Sequence[Record]], *, restarted_in: Path | None = None
) -> dict[str, dict[int, list[Sent]]]:
    driver = Driver(engine, SQL, folder=restarted_in)
    for tick in ticks:
        assert not driver.tick(tick).failed
        if restarted_in is not None:
            driver = driver.restart()
    found: dict[str, dict[int, list[Sent]]] = {}
    for name in JOINS:
        parts: dict[int, list[Sent]] = defaultdict(list)
        for sent in driver.sent(name):
            parts[PARTITIONS[sent.key]].append(sent)
        found[name] = dict(parts)
    driver.close()
    return found


@st.composite
def records(draw) -> Record:
    key = draw(st.sampled_from(list(PARTITIONS)))
    value = draw(st.one_of(*[st.integers(0, 9).map(lambda v: b'{"V":%d}' % v)] * 6, st.none()))
    return Record(draw(st.sampled_from("lr")), key, value, draw(st.integers(0, 30)), PARTITIONS[key])


def _record(topic: str, key: bytes, value: int, ts: int) -> Record:
    return Record(topic, key, b'{"V":%d}' % value, ts, PARTITIONS[key])


WAITING = [
    _record("l", b"a", 1, 0),
    _record("l", b"a", 2, 10),
    _record("r", b"a", 3, 10),
    _record("r", b"b", 4, 2),
    _record("l", b"c", 5, 30),
    _record("r", b"b", 6, 1),
    _record("l", b"b", 7, 5),
    _record("l", b"a", 8, 25),
    _record("r", b"a", 9, 3),
    _record("l", b"a", 9, 12),
]


@slow_law(1)
@example(WAITING, range(20))
@given(st.lists(records(), min_size=8, max_size=20), st.sets(st.integers(1, 20), max_size=3))
def test_records_meet_the_same_however_they_come(engine, input_records, places):
    ordered = in_order(input_records)
    wanted = expected(ordered)
    assert results(engine, [input_records]) == wanted
    assert results(engine, cut(ordered, places)) == wanted


def test_what_waits_and_what_is_kept_outlives_a_restart(engine, tmp_path):
    ordered = in_order(WAITING)
    assert results(engine, [ordered[:4], ordered[4:7], ordered[7:]], restarted_in=tmp_path) == expected(ordered)


def test_the_store_is_asked_once_for_what_several_stages_read(engine, monkeypatch):
    asked = []
    lookup = DuckDbStage.lookup_groups
    monkeypatch.setattr(DuckDbStage, "lookup_groups", lambda *args: (asked.append(args[1]), lookup(*args))[1])
    driver = Driver(engine, SQL)
    assert not driver.tick(WAITING).failed
    driver.close()
    assert len(set(asked)) == 2 * len(JOINS)
    assert len(asked) <= 2 * len(set(asked))  # a join that waits has two rounds
