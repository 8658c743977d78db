"""The small things a tick moves, as one append-only table that is folded into memory when the store opens.

A row holds the entries of one transaction as JSON: one small INSERT per tick writes them all (0.6 ms; as rows
of their own 2 ms), and reading them costs no SQL. Beside them it holds the tick's small changes, as `journal` tells,
until those are folded into tables. The kinds, and their numbers:

    collection  name          since, upper, history_from + 1 (0: none), written, next_seq
    position    name, topic   offset           how far a query has read
    remap       topic         time, end        which offsets became visible when
    published   topic         time, end        where sink topics ended when all up to a time was published
    committed                 time
    reserved                  time
    dropped     name                           forget the collection
    forgotten   name                           forget the query's positions
    kept        name, topic   time             a hold; `topic` has its collections as JSON
    let_go      name                           forget the hold
    settled                   time             what was owed up to it is published
    folded      (part: the object's number)    n: changes up to that row are in the object's tables; none: it is gone
"""

import json
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import duckdb

from holdfast.names import CollectionId, HoldId, QueryId, TopicName
from holdfast.runtime.store.duckdb.one import one
from holdfast.runtime.store.port import Kept, Moved, Position, Time

Partition = tuple[TopicName, int]
Marks = dict[Partition, list[tuple[Time, int]]]


class Entry(NamedTuple):
    kind: str
    name: str = ""
    topic: str = ""
    part: int = 0
    numbers: tuple[int, ...] = ()


class Change(NamedTuple):
    """A tick's small changes, under the number of their row."""

    number: int
    time: Time
    encoded: bytes


class Ledger:
    """The fold. `apply` only what was committed; callers hold the store's lock."""

    def __init__(self) -> None:
        self.positions: defaultdict[QueryId, dict[Partition, int]] = defaultdict(dict)
        self.remap: Marks = {}
        self.published: Marks = {}
        self.collections: dict[CollectionId, tuple[int, ...]] = {}
        self.kept: dict[HoldId, Kept] = {}
        self.committed = Time(0)
        self.reserved = Time(0)
        self.size = 0
        """How many entries the table has."""
        self.needed = 0
        """How many it had when it was last rewritten."""
        self.bytes = 0
        """How long the changes are that the table has."""
        self.left = 0
        """How long they were when it was last rewritten."""
        self.settled = Time(0)
        self.folded: dict[int, int] = {}
        self._remaining = 0
        self.next = 0
        """The number of the next row."""

    @classmethod
    def read(cls, database: duckdb.DuckDBPyConnection) -> tuple["Ledger", list[Change]]:
        """The fold, and the changes that may not be in tables yet."""
        ledger, changes = cls(), []
        rows = database.execute("SELECT n, entries, time, changes FROM ledger ORDER BY n").fetchall()
        for n, entries, time, changed in rows:
            found = json.loads(entries)
            ledger.next = n
            ledger.apply(Entry(kind, name, topic, part, tuple(numbers)) for kind, name, topic, part, numbers in found)
            if changed is not None:
                changes.append(Change(n, Time(time), changed))
                ledger.bytes += len(changed)
        return ledger, changes

    def write(
        self,
        run: duckdb.DuckDBPyConnection,
        entries: Sequence[Entry],
        *,
        time: Time | None = None,
        changes: bytes | None = None,
    ) -> None:
        """Write a row inside the caller's transaction; once it is durable, `apply` its entries."""
        if entries:
            row = [self.next, json.dumps(entries), time, changes]
            run.execute("INSERT INTO ledger (n, entries, time, changes) VALUES (?, ?, ?, ?)", row)

    def apply(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.size += 1
            self._apply(entry)
        self.next += 1

    def _apply(self, entry: Entry) -> None:
        partition = (TopicName(entry.topic), entry.part)
        match entry.kind:
            case "collection":
                self.collections[CollectionId(entry.name)] = entry.numbers
            case "position":
                self.positions[QueryId(entry.name)][partition] = entry.numbers[0]
            case "remap":
                _mark(self.remap, partition, entry.numbers)
            case "published":
                _mark(self.published, partition, entry.numbers)
            case "committed":
                self.committed = Time(max(self.committed, entry.numbers[0]))
            case "reserved":
                self.reserved = Time(max(self.reserved, entry.numbers[0]))
            case "dropped":
                self.collections.pop(CollectionId(entry.name), None)
                self._let_go_of(CollectionId(entry.name))
            case "kept":
                on = tuple(map(CollectionId, json.loads(entry.topic)))
                self.kept[HoldId(entry.name)] = Kept(on, Time(entry.numbers[0]))
            case "let_go":
                self.kept.pop(HoldId(entry.name), None)
            case "forgotten":
                self.positions.pop(QueryId(entry.name), None)
            case "settled":
                self.settled = Time(max(self.settled, entry.numbers[0]))
            case "folded" if entry.numbers:
                self.folded[entry.part] = entry.numbers[0]
            case "folded":
                self.folded.pop(entry.part, None)

    def _let_go_of(self, collection: CollectionId) -> None:
        for hold, kept in list(self.kept.items()):
            if collection in kept.on:
                self.kept[hold] = Kept(tuple(id_ for id_ in kept.on if id_ != collection), kept.at)

    def rewrite(self, run: duckdb.DuckDBPyConnection, *, unfolded: int) -> None:
        """Replace the entries by the fold, and leave out changes whose number is below `unfolded`.

        Inside the caller's transaction; `rewritten` once it is durable.
        """
        run.execute(f"DELETE FROM ledger WHERE n < {unfolded} OR changes IS NULL")
        run.execute("UPDATE ledger SET entries = '[]'")
        self.write(run, list(self.entries()))
        [self._remaining] = one(run, "SELECT coalesce(sum(octet_length(changes)), 0) FROM ledger")

    def rewritten(self) -> None:
        self.size = self.needed = sum(1 for _ in self.entries())
        self.bytes = self.left = self._remaining
        self.next += 1

    def entries(self) -> Iterator[Entry]:
        for collection, numbers in self.collections.items():
            yield Entry("collection", collection, numbers=numbers)
        for hold, kept in self.kept.items():
            yield kept_entry(hold, kept)
        for query, offsets in self.positions.items():
            for (topic, part), offset in offsets.items():
                yield Entry("position", query, topic, part, (offset,))
        for kind, marks in (("remap", self.remap), ("published", self.published)):
            for (topic, part), ends in marks.items():
                for time, end in ends:
                    yield Entry(kind, "", topic, part, (time, end))
        yield Entry("committed", numbers=(self.committed,))
        yield Entry("reserved", numbers=(self.reserved,))
        yield Entry("settled", numbers=(self.settled,))
        for number, upto in self.folded.items():
            yield Entry("folded", part=number, numbers=(upto,))

    def trim(self, since: Time) -> None:
        """Forget the marks that no time from `since` on needs."""
        for marks in (self.remap, self.published):
            for ends in marks.values():
                del ends[: max(0, _place(ends, since) - 1)]

    def read_by(self, query: QueryId) -> list[Position]:
        return [Position(query, topic, part, offset) for (topic, part), offset in self.positions[query].items()]


def kept_entry(hold: HoldId, kept: Kept) -> Entry:
    return Entry("kept", hold, json.dumps(kept.on), numbers=(kept.at,))


def ends_at(marks: Marks, time: Time | None) -> list[Moved]:
    """The end of every partition as of a time, or the last one."""
    found = []
    for (topic, part), ends in marks.items():
        place = len(ends) if time is None else _place(ends, time)
        if place:
            found.append(Moved(topic, part, ends[place - 1][1]))
    return found


def _mark(marks: Marks, partition: Partition, numbers: tuple[int, ...]) -> None:
    time, end = numbers
    ends = marks.setdefault(partition, [])
    if ends and ends[-1][0] == time:
        ends[-1] = (Time(time), end)
    else:
        insort(ends, (Time(time), end))


def _place(ends: list[tuple[Time, int]], time: Time) -> int:
    return bisect_right(ends, time, key=lambda end: end[0])
