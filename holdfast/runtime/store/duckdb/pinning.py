"""What is in history only because of a hold.

Compaction forgets versions that were superseded up to since. Without the hold since would be further: the versions
that were superseded between both are pinned. They cannot change any more, so what was counted of them stays right
until since moves, and a look at an old hold counts only what has come since the last look.
"""

from contextlib import closing
from dataclasses import dataclass

from holdfast.names import HoldId
from holdfast.runtime.store import frontier as laws
from holdfast.runtime.store.duckdb.contents import Contents
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.fetching import as_arrow
from holdfast.runtime.store.duckdb.objects import Collection
from holdfast.runtime.store.duckdb.one import one
from holdfast.runtime.store.duckdb.problems import telling
from holdfast.runtime.store.port import Frontier, Pinned, Time

SAMPLE = 1_000
"""Versions of which the mean size is taken."""


@dataclass(slots=True)
class Counted:
    """How many versions were superseded after `after` and up to `to`, and how large each is on the average."""

    after: Time
    to: Time
    rows: int = 0
    measured: int = 0
    width: float = 0.0


class Pins:
    """Of a store. Callers hold `writing`: compaction must not forget what is being counted."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._counted: dict[int, Counted] = {}

    def of(self, hold: HoldId) -> Pinned:
        kept = self._core.ledger.kept.get(hold)
        rows = size = 0
        for id_ in kept.on if kept is not None else ():
            collection = self._core.objects.collections[id_]
            with self._core.times:
                frontier, free = collection.frontier, self._without(hold, collection)
            if free <= frontier.since:
                continue
            counted = self._count(collection, frontier, free)
            rows, size = rows + counted.rows, size + round(counted.rows * counted.width)
        return Pinned(rows, size)

    def _without(self, hold: HoldId, collection: Collection) -> Time:
        """Where since would be without the hold."""
        if laws.is_building(collection.frontier):
            return collection.frontier.since
        others = [kept.at for id_, kept in self._core.ledger.kept.items() if id_ != hold and collection.id in kept.on]
        wanted = max(collection.wanted, laws.implied_since(collection.frontier.upper, collection.window_ms))
        return laws.held_since(collection.frontier, Time(wanted), [*self._core.holds.on(collection.id), *others])

    def _count(self, collection: Collection, frontier: Frontier, to: Time) -> Counted:
        found = self._counted.get(collection.number)
        if found is None or found.after != frontier.since or found.to > to:
            found = self._counted[collection.number] = Counted(frontier.since, frontier.since)
        if to > found.to:
            found.rows += self._rows(collection, found.to, to)
            found.to = to
        if found.rows > found.measured + found.measured // 4:
            found.measured, found.width = found.rows, self._width(collection, found.after, to)
        return found

    def _rows(self, collection: Collection, after: Time, to: Time) -> int:
        """The tables alone tell of times before those that memory has: their counts need no look at keys."""
        contents = Contents.of(self._core, collection)
        stored = to if contents.pending is None else Time(min(to, contents.pending.first - 1))
        counts = f"SELECT count(*) FROM {collection.history} WHERE until > {after} AND until <= {stored}"
        later = Time(max(after, stored))
        if later < to:
            more = f"SELECT count(*) FROM ({contents.history()}) WHERE until > {later} AND until <= {to}"
            counts = f"SELECT ({counts}) + ({more})"
        with telling(), closing(self._core.database.cursor()) as cursor:
            contents.register(cursor)
            [rows] = one(cursor, counts)
            return int(rows)

    def _width(self, collection: Collection, after: Time, to: Time) -> float:
        contents = Contents.of(self._core, collection)
        sql = f"SELECT * FROM ({contents.history()}) WHERE until > {after} AND until <= {to} LIMIT {SAMPLE}"
        with telling(), closing(self._core.database.cursor()) as cursor:
            contents.register(cursor)
            sample = as_arrow(cursor, sql)
        return sample.nbytes / sample.num_rows if sample.num_rows else 0.0
