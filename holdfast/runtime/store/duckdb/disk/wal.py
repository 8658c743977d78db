"""The write-ahead log: an append-only table with everything small that a transaction changes.

A row has the entries of one transaction as JSON: one small INSERT per tick writes them all (0.6 ms; as separate rows
2 ms), and reading them takes no SQL. A small tick's row also has its changes (see `memtable.changes`) until they are
flushed to tables. Opening a store reads the log into memory; compaction rewrites it. The table is named `ledger`, and
the kinds of entries keep their names, because stores on disk have them:

    collection  name          since, upper, history_from + 1 (0: none), written, next_seq
    position    name, topic   offset           how far a query has read; topic "" has its placement (part 0, see
                                               `_PLACEMENTS`) and the time it replayed its inputs to (part 1)
    remap       topic         time, end        which offsets became visible when
    published   topic         time, end        where a sink topic ends, when an outbox was published up to a time
    committed                 time
    reserved                  time
    dropped     name                           forget the collection
    forgotten   name                           forget the query's positions
    kept        name, topic   time             a hold; `topic` has its collections as JSON
    let_go      name                           forget the hold
    settled     name          time             rows of the query's outbox up to it are published; no name: of all
                                               outboxes; no time: the outbox was dropped
    folded      (part: the object's number)    n: changes up to that row are in the object's tables; none: dropped
"""

import json
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import duckdb

from holdfast.names import CollectionId, HoldId, QueryId, TopicName
from holdfast.runtime.store.duckdb.statements import one
from holdfast.runtime.store.port import NEW_QUERY, EndOffset, Placement, QueryPosition, StoredHold, Time

Partition = tuple[TopicName, int]
EndMarks = dict[Partition, list[tuple[Time, int]]]


class WalEntry(NamedTuple):
    kind: str
    name: str = ""
    topic: str = ""
    part: int = 0
    numbers: tuple[int, ...] = ()


class LoggedTick(NamedTuple):
    """The encoded changes of a small tick, under the number of their row."""

    number: int
    time: Time
    encoded: bytes


class WriteAheadLog:
    """What the log amounts to. `apply` only what was committed; callers hold `memory_lock`."""

    def __init__(self) -> None:
        self.positions: defaultdict[QueryId, dict[Partition, int]] = defaultdict(dict)
        self.remap: EndMarks = {}
        self.published: dict[Partition, int] = {}
        """Where the sink topics ended when they were last published to."""
        self.collections: dict[CollectionId, tuple[int, ...]] = {}
        self.holds: dict[HoldId, StoredHold] = {}
        self.committed = Time(0)
        self.reserved = Time(0)
        self.size = 0
        """How many entries the table has."""
        self.needed = 0
        """How many it had when it was last rewritten."""
        self.bytes = 0
        """The size of the changes in the table."""
        self.left = 0
        """Their size when it was last rewritten."""
        self._published_to: dict[QueryId, Time] = {}
        self.flushed: dict[int, int] = {}
        self._remaining = 0
        self.next = 0
        """The number of the next row."""

    @classmethod
    def read(cls, database: duckdb.DuckDBPyConnection) -> tuple["WriteAheadLog", list[LoggedTick]]:
        """The log in memory, and the ticks that may not be flushed yet."""
        log, changes = cls(), []
        rows = database.execute("SELECT n, entries, time, changes FROM ledger ORDER BY n").fetchall()
        for n, entries, time, changed in rows:
            found = json.loads(entries)
            log.next = n
            log.apply(WalEntry(kind, name, topic, part, tuple(numbers)) for kind, name, topic, part, numbers in found)
            if changed is not None:
                changes.append(LoggedTick(n, Time(time), changed))
                log.bytes += len(changed)
        return log, changes

    def write(
        self,
        run: duckdb.DuckDBPyConnection,
        entries: Sequence[WalEntry],
        *,
        time: Time | None = None,
        changes: bytes | None = None,
    ) -> None:
        """Write a row inside the caller's transaction; once it is durable, `apply` its entries."""
        if entries:
            row = [self.next, json.dumps(entries), time, changes]
            run.execute("INSERT INTO ledger (n, entries, time, changes) VALUES (?, ?, ?, ?)", row)

    def apply(self, entries: Iterable[WalEntry]) -> None:
        for entry in entries:
            self.size += 1
            self._apply(entry)
        self.next += 1

    def _apply(self, entry: WalEntry) -> None:
        partition = (TopicName(entry.topic), entry.part)
        match entry.kind:
            case "collection":
                self.collections[CollectionId(entry.name)] = entry.numbers
            case "position":
                self.positions[QueryId(entry.name)][partition] = entry.numbers[0]
            case "remap":
                _mark(self.remap, partition, entry.numbers)
            case "published" if entry.numbers[1]:
                self.published[partition] = entry.numbers[1]
            case "published":
                self.published.pop(partition, None)
            case "committed":
                self.committed = Time(max(self.committed, entry.numbers[0]))
            case "reserved":
                self.reserved = Time(max(self.reserved, entry.numbers[0]))
            case "dropped":
                self.collections.pop(CollectionId(entry.name), None)
                self._release(CollectionId(entry.name))
            case "kept":
                on = tuple(map(CollectionId, json.loads(entry.topic)))
                self.holds[HoldId(entry.name)] = StoredHold(on, Time(entry.numbers[0]))
            case "let_go":
                self.holds.pop(HoldId(entry.name), None)
            case "forgotten":
                self.positions.pop(QueryId(entry.name), None)
            case "settled" if not entry.numbers:
                self._published_to.pop(QueryId(entry.name), None)
            case "settled":
                query = QueryId(entry.name)
                self._published_to[query] = Time(max(self._published_to.get(query, 0), entry.numbers[0]))
            case "folded" if entry.numbers:
                self.flushed[entry.part] = entry.numbers[0]
            case "folded":
                self.flushed.pop(entry.part, None)

    def _release(self, collection: CollectionId) -> None:
        for id_, hold in list(self.holds.items()):
            if collection in hold.on:
                self.holds[id_] = StoredHold(tuple(on for on in hold.on if on != collection), hold.at)

    def rewrite(self, run: duckdb.DuckDBPyConnection, *, unflushed: int) -> None:
        """Replace the entries by as few as give the same, and leave out changes whose number is below `unflushed`.

        Inside the caller's transaction; `rewritten` once it is durable.
        """
        run.execute(f"DELETE FROM ledger WHERE n < {unflushed} OR changes IS NULL")
        run.execute("UPDATE ledger SET entries = '[]'")
        self.write(run, list(self.entries()))
        [self._remaining] = one(run, "SELECT coalesce(sum(octet_length(changes)), 0) FROM ledger")

    def rewritten(self) -> None:
        self.size = self.needed = sum(1 for _ in self.entries())
        self.bytes = self.left = self._remaining
        self.next += 1

    def entries(self) -> Iterator[WalEntry]:
        for collection, numbers in self.collections.items():
            yield WalEntry("collection", collection, numbers=numbers)
        for id_, hold in self.holds.items():
            yield hold_entry(id_, hold)
        for query, offsets in self.positions.items():
            for (topic, part), offset in offsets.items():
                yield WalEntry("position", query, topic, part, (offset,))
        for (topic, part), ends in self.remap.items():
            for time, end in ends:
                yield WalEntry("remap", "", topic, part, (time, end))
        for (topic, part), end in self.published.items():
            yield WalEntry("published", "", topic, part, (self.committed, end))
        yield WalEntry("committed", numbers=(self.committed,))
        yield WalEntry("reserved", numbers=(self.reserved,))
        for query, published_to in self._published_to.items():
            yield WalEntry("settled", query, numbers=(published_to,))
        for number, upto in self.flushed.items():
            yield WalEntry("folded", part=number, numbers=(upto,))

    def trim(self, since: Time) -> None:
        """Forget the marks that no time from `since` on needs."""
        for ends in self.remap.values():
            del ends[: max(0, _index(ends, since) - 1)]

    def published_to(self, query: QueryId) -> Time:
        """Up to which time the outbox of a query is published."""
        return max(self._published_to.get(query, Time(0)), self._published_to.get(_ALL_QUERIES, Time(0)))

    def position(self, query: QueryId) -> QueryPosition:
        numbers = self.positions.get(query)
        if not numbers:
            return NEW_QUERY
        offsets = {partition: offset for partition, offset in numbers.items() if partition[0] != _NO_TOPIC}
        placement, replayed_to = numbers.get(_PLACEMENT, 0), numbers.get(_REPLAYED_TO)
        return QueryPosition(_PLACEMENTS[placement], offsets, None if replayed_to is None else Time(replayed_to))


_ALL_QUERIES = QueryId("")
"""Stores of earlier versions settled all outboxes at once."""
_NO_TOPIC = TopicName("")
"""Kafka has no topic without a name."""
_PLACEMENT, _REPLAYED_TO = (_NO_TOPIC, 0), (_NO_TOPIC, 1)
_PLACEMENTS = (Placement.BEHIND, Placement.LIVE, Placement.REBUILD)
"""By the number that stands for them in entries."""


def position_entries(
    query: QueryId, ends: Sequence[EndOffset], placement: Placement | None, replayed_to: Time | None
) -> list[WalEntry]:
    entries = [WalEntry("position", query, end.topic, end.partition, (end.offset,)) for end in ends]
    if placement is not None:
        entries.append(WalEntry("position", query, *_PLACEMENT, (_PLACEMENTS.index(placement),)))
    if replayed_to is not None:
        entries.append(WalEntry("position", query, *_REPLAYED_TO, (replayed_to,)))
    return entries


def hold_entry(id_: HoldId, hold: StoredHold) -> WalEntry:
    return WalEntry("kept", id_, json.dumps(hold.on), numbers=(hold.at,))


def ends_at(marks: EndMarks, time: Time | None) -> list[EndOffset]:
    """The end of every partition as of a time, or the last one."""
    found = []
    for (topic, part), ends in marks.items():
        last = len(ends) if time is None else _index(ends, time)
        if last:
            found.append(EndOffset(topic, part, ends[last - 1][1]))
    return found


def _mark(marks: EndMarks, partition: Partition, numbers: tuple[int, ...]) -> None:
    time, end = numbers
    ends = marks.setdefault(partition, [])
    if ends and ends[-1][0] == time:
        ends[-1] = (Time(time), end)
    else:
        insort(ends, (Time(time), end))


def _index(ends: list[tuple[Time, int]], time: Time) -> int:
    return bisect_right(ends, time, key=lambda end: end[0])
