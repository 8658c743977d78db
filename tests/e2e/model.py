"""The queries under test, and their expected results, computed in Python from the written records.

A stream's rows have an order per key. A table has one state per key after each record, None while it has no row; a tick
may skip states, but never shows a state that did not exist or goes back.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .load import Written
from .topics import Record

Row = dict[str, Any]
LIMIT = 40

QUERIES = """
CREATE STREAM events (k STRING KEY, n BIGINT, x INT, tag STRING)
  WITH (KAFKA_TOPIC = '{0}_events', VALUE_FORMAT = 'JSON');
CREATE TABLE facts (id STRING PRIMARY KEY, v INT, n BIGINT)
  WITH (KAFKA_TOPIC = '{0}_facts', VALUE_FORMAT = 'JSON');
CREATE STREAM big WITH (KAFKA_TOPIC = '{0}_big') AS
  SELECT k, n, x * 2 AS xx, UCASE(tag) AS tag FROM events WHERE x > -3 EMIT CHANGES;
CREATE STREAM chained WITH (KAFKA_TOPIC = '{0}_chained') AS
  SELECT k, n, xx + 1 AS y FROM big WHERE tag <> 'A' EMIT CHANGES;
CREATE TABLE totals WITH (KAFKA_TOPIC = '{0}_totals') AS
  SELECT k, COUNT(*) AS c, SUM(x) AS s, MIN(x) AS lo, MAX(n) AS hi
  FROM events GROUP BY k HAVING SUM(x) < 40 EMIT CHANGES;
CREATE TABLE low_totals WITH (KAFKA_TOPIC = '{0}_low_totals') AS
  SELECT k, s, c FROM totals WHERE s < 10 EMIT CHANGES;
CREATE TABLE by_tag WITH (KAFKA_TOPIC = '{0}_by_tag') AS
  SELECT tag, COUNT(*) AS c, SUM(n) AS s FROM big GROUP BY tag EMIT CHANGES;
CREATE TABLE good_facts WITH (KAFKA_TOPIC = '{0}_good_facts') AS
  SELECT id, v, n FROM facts WHERE v > 50 EMIT CHANGES;
"""

LATER = {
    "EXTRA_STREAM": "CREATE STREAM extra_stream WITH (KAFKA_TOPIC = '{0}_extra_stream') AS "
    "SELECT k, n, xx FROM big WHERE xx > 4 EMIT CHANGES;",
    "EXTRA_COUNTS": "CREATE TABLE extra_counts WITH (KAFKA_TOPIC = '{0}_extra_counts') AS "
    "SELECT k, COUNT(*) AS c, MAX(n) AS hi FROM big GROUP BY k EMIT CHANGES;",
    "EXTRA_TOTALS": "CREATE TABLE extra_totals WITH (KAFKA_TOPIC = '{0}_extra_totals') AS "
    "SELECT k, c, s FROM totals WHERE s > 0 EMIT CHANGES;",
    "EXTRA_FACTS": "CREATE TABLE extra_facts WITH (KAFKA_TOPIC = '{0}_extra_facts') AS "
    "SELECT id, n FROM facts WHERE v > 20 EMIT CHANGES;",
    "EXTRA_CHAIN": "CREATE STREAM extra_chain WITH (KAFKA_TOPIC = '{0}_extra_chain') AS "
    "SELECT k, n FROM chained EMIT CHANGES;",
}
"""Queries that are created while the others run, by object name."""


@dataclass(frozen=True, slots=True)
class StreamRow:
    """A row of a stream with the time and the partition that its record must have."""

    key: str
    value: Row
    timestamp: int
    partition: int


@dataclass
class Model:
    """The expected contents of every object after all written records."""

    streams: dict[str, list[StreamRow]] = field(default_factory=dict)
    states: dict[str, dict[str, list[Row | None]]] = field(default_factory=dict)
    """For tables whose keys change in a defined order: every state of each key, oldest first."""
    tables: dict[str, dict[str, Row]] = field(default_factory=dict)
    undecodable: set[tuple[str, int, int]] = field(default_factory=set)

    @staticmethod
    def of(written: Sequence[Written]) -> "Model":
        model = Model()
        ordered = sorted(written, key=lambda w: (w.topic, w.partition, w.offset))
        events = [w for w in ordered if isinstance(w.value, dict) and "x" in w.value]
        facts = [w for w in ordered if not isinstance(w.value, bytes) and (w.value is None or "v" in w.value)]
        model.undecodable = {(w.topic, w.partition, w.offset) for w in ordered if isinstance(w.value, bytes)}
        model._add_streams(events)
        model._add_tables(events, facts)
        return model

    def _add_streams(self, events: Sequence[Written]) -> None:
        read = [StreamRow(w.key, dict(w.value or {}), w.timestamp, w.partition) for w in events]
        big = chosen(read, lambda v: v["x"] > -3, lambda v: {"N": v["n"], "XX": v["x"] * 2, "TAG": v["tag"].upper()})
        chained = chosen(big, lambda v: v["TAG"] != "A", lambda v: {"N": v["N"], "Y": v["XX"] + 1})
        self.streams["BIG"], self.streams["CHAINED"] = big, chained
        self.streams["EXTRA_STREAM"] = chosen(big, lambda v: v["XX"] > 4, lambda v: {"N": v["N"], "XX": v["XX"]})
        self.streams["SIZED"] = self.streams["DENIED"] = self.streams["EXTRA_STREAM"]
        self.streams["EXTRA_CHAIN"] = chosen(chained, lambda _: True, lambda v: {"N": v["N"]})

    def _add_tables(self, events: Sequence[Written], facts: Sequence[Written]) -> None:
        totals = running_totals(events)
        self.states["TOTALS"] = shown(totals, lambda r: r["S"] < LIMIT, ("C", "S", "LO", "HI"))
        self.states["LOW_TOTALS"] = shown(self.states["TOTALS"], lambda r: r["S"] < 10, ("S", "C"))
        self.states["EXTRA_TOTALS"] = shown(self.states["TOTALS"], lambda r: r["S"] > 0, ("C", "S"))
        rows: dict[str, list[Row | None]] = {}
        for fact in facts:
            value = fact.value if isinstance(fact.value, dict) else None
            rows.setdefault(fact.key, []).append({"V": value["v"], "N": value["n"]} if value else None)
        self.states["FACTS"] = rows
        self.states["GOOD_FACTS"] = shown(rows, lambda r: r["V"] > 50, ("V", "N"))
        self.states["EXTRA_FACTS"] = shown(rows, lambda r: r["V"] > 20, ("N",))
        self.states["EXTRA_COUNTS"] = counts(self.streams["BIG"])
        for name, states in self.states.items():
            self.tables[name] = {key: row for key, (*_, row) in states.items() if row is not None}
        by_tag: dict[str, Row] = {}
        for row in self.streams["BIG"]:
            total = by_tag.setdefault(row.value["TAG"], {"C": 0, "S": 0})
            total["C"] += 1
            total["S"] += row.value["N"]
        self.tables["BY_TAG"] = by_tag


def chosen(rows: Iterable[StreamRow], where: Callable[[Row], bool], select: Callable[[Row], Row]) -> list[StreamRow]:
    return [StreamRow(r.key, select(r.value), r.timestamp, r.partition) for r in rows if where(r.value)]


def running_totals(events: Iterable[Written]) -> dict[str, list[Row | None]]:
    states: dict[str, list[Row | None]] = {}
    for event in events:
        assert isinstance(event.value, dict)
        x, n = event.value["x"], event.value["n"]
        so_far = states.setdefault(event.key, [])
        last = so_far[-1] if so_far else None
        before = last or {"C": 0, "S": 0, "LO": x, "HI": n}
        so_far.append(
            {"C": before["C"] + 1, "S": before["S"] + x, "LO": min(before["LO"], x), "HI": max(before["HI"], n)}
        )
    return states


def counts(rows: Iterable[StreamRow]) -> dict[str, list[Row | None]]:
    states: dict[str, list[Row | None]] = {}
    for row in rows:
        so_far = states.setdefault(row.key, [])
        last = so_far[-1] if so_far else None
        before = last or {"C": 0, "HI": 0}
        so_far.append({"C": before["C"] + 1, "HI": max(before["HI"], row.value["N"])})
    return states


def shown(
    states: Mapping[str, Sequence[Row | None]], where: Callable[[Row], bool], columns: Sequence[str]
) -> dict[str, list[Row | None]]:
    """The states of a table that selects rows and columns of another."""
    return {
        key: [{c: row[c] for c in columns} if row is not None and where(row) else None for row in rows]
        for key, rows in states.items()
    }


# ---- comparison


def check_stream(name: str, records: Sequence[Record], expected: Sequence[StreamRow], *, whole: bool) -> None:
    """Every row once, in order per key, in its key's partition, with its time; with `whole`, none is missing."""
    got: dict[str | None, list[StreamRow]] = {}
    for r in sorted(records, key=lambda r: (r.partition, r.offset)):
        got.setdefault(r.key, []).append(StreamRow(r.key or "", json.loads(r.value or b""), r.timestamp, r.partition))
    wanted: dict[str, list[StreamRow]] = {}
    for row in expected:
        wanted.setdefault(row.key, []).append(row)
    for key, rows in got.items():
        of_key = wanted.get(key or "", [])
        for at, row in enumerate(rows):
            assert of_key[at : at + 1] == [row], wrong_row(name, key, at, rows, of_key)
    if whole:
        lacking = {key: rows[len(got.get(key, [])) :] for key, rows in wanted.items()}
        lacking = {key: rows for key, rows in lacking.items() if rows}
        assert not lacking, f"{name} lacks the ends of {len(lacking)} keys: {str(lacking)[:500]}"


def wrong_row(name: str, key: str | None, at: int, rows: Sequence[StreamRow], wanted: Sequence[StreamRow]) -> str:
    row = rows[at]
    what = "came twice" if row in rows[:at] else "came before its turn" if row in wanted else "is wrong"
    return f"{name}, key {key}, row {at}: {row} {what}; expected {wanted[at : at + 1]}, then {wanted[at + 1 : at + 3]}"


def check_changelog(name: str, records: Sequence[Record], states: Mapping[str, Sequence[Row | None]]) -> None:
    """Each key's records are states that it had, in order; no tombstone where there was no row."""
    at: dict[str, int] = {}
    last: dict[str, Row | None] = {}
    for record in sorted(records, key=lambda r: (r.partition, r.offset)):
        key = record.key or ""
        row = None if record.value is None else json.loads(record.value)
        assert row is not None or last.get(key) is not None, f"{name}: a tombstone for {key}, which has no row"
        assert row != last.get(key), f"{name}: {key} gets {row} again"
        of_key = states.get(key, [])
        position = next((n for n in range(at.get(key, 0), len(of_key)) if of_key[n] == row), None)
        assert position is not None, (
            f"{name}: {key} gets {row} at {record.partition}:{record.offset}, which is not a state after "
            f"{of_key[max(0, at.get(key, 0) - 1) : at.get(key, 0) + 3]}"
        )
        at[key], last[key] = position + 1, row


def check_counts(name: str, records: Sequence[Record]) -> None:
    """For aggregates whose keys have records in several partitions: counts only grow."""
    last: dict[str | None, int] = {}
    for record in sorted(records, key=lambda r: (r.partition, r.offset)):
        count = json.loads(record.value or b"{}").get("C", 0)
        assert count > last.get(record.key, 0), f"{name}: the count of {record.key} goes from {last} to {count}"
        last[record.key] = count


def folded(records: Sequence[Record]) -> dict[str, Row]:
    """The table that a changelog topic represents."""
    rows: dict[str, Row] = {}
    for record in sorted(records, key=lambda r: (r.partition, r.offset)):
        if record.value is None:
            rows.pop(record.key or "", None)
        else:
            rows[record.key or ""] = json.loads(record.value)
    return rows
