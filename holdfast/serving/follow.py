"""A reader's place in a table: what is left of a snapshot, then a time, and a hold on all that it has still to read.

Snapshot and changes are cut at one time: the snapshot is as of `at`, the changes are those after it.
"""

from collections import deque
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import Event, Lock

import pyarrow as pa

from holdfast.catalog.objects import Table
from holdfast.errors import BadTime, ReadError
from holdfast.names import CollectionId
from holdfast.runtime.store.port import ChangeRange, Store, Time
from holdfast.serving.times import Times
from holdfast.sql.moments import BoundAsOf, Moment

BATCH_BYTES = 2 << 20
"""What a batch may take in memory, about; what is made of it for a client may take as much again."""
FIRST_ROWS, MOST_ROWS = 1_000, 100_000
"""Rows of a batch: few at first, until it is known how large they are."""
CATCH_UP_MS = 1_000
"""A reader of a table that does not change still moves on so often: what it holds keeps others from being forgotten."""


class Widths:
    """How many rows of a table make a batch. Shared by its readers, so that those at one place read the same."""

    def __init__(self) -> None:
        self._rows: dict[CollectionId, int] = {}

    def rows(self, collection: CollectionId) -> int:
        return self._rows.get(collection, FIRST_ROWS)

    def note(self, collection: CollectionId, read: pa.Table) -> None:
        if read.num_rows:
            fits = BATCH_BYTES * read.num_rows // max(read.nbytes, 1)
            self._rows[collection] = max(1, min(fits, 4 * self.rows(collection), MOST_ROWS))


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of the snapshot."""

    rows: pa.Table


@dataclass(frozen=True, slots=True)
class SnapshotDone:
    """All rows as of a time were given."""

    at: Time


@dataclass(frozen=True, slots=True)
class Start:
    """Where a reader begins: at a time, or at the latest one; with the rows of that time, or only what comes after."""

    snapshot: bool = False
    as_of: BoundAsOf | None = None
    up_to: Moment | None = None
    """Times from here on are not wanted."""


def ends_before_it_begins(written: Moment, at: Time, up_to: Time) -> BadTime:
    return BadTime(
        "UP TO must not be below AS OF",
        detail=f"It would begin at {at} and end before {up_to}.",
        position=written.position,
    )


class Follower:
    """One reader of one table. `pending` and `close` may come from any thread."""

    def __init__(self, store: Store, widths: Widths, times: Times, table: Table, start: Start) -> None:
        self._store, self._widths, self._times, self._table, self._start = store, widths, times, table, start
        self._collection = CollectionId(table.name)
        self._pages: Iterator[pa.Table] | None = None
        self._ranges: deque[ChangeRange] = deque()
        self._closed = Event()
        self._holding = Lock()
        self._hold: int | None = None
        self._up_to: Time | None = None
        self._waiting = False
        self.at = Time(0)
        """What it has given is all up to here, apart from what is left of the snapshot as of here."""
        self.time: Time | None = None
        """The time up to which everything was given; None in the middle of one."""
        if not times.building(table):
            self._begin()

    @property
    def begun(self) -> bool:
        return self._hold is not None

    @property
    def ended(self) -> bool:
        """Whether all that was wanted was given."""
        if self._up_to is None or self._waiting or self._pages is not None or self._ranges:
            return False
        return self.at + 1 >= self._up_to

    def pending(self) -> bool:
        """Whether there is something to read, as far as memory knows."""
        if self._hold is None:
            return not self._times.building(self._table)
        if self._waiting:
            return self._times.now() >= self.at
        return self._pages is not None or bool(self._ranges) or self._store.changed_at(self._collection) > self.at

    def step(self) -> Page | SnapshotDone | ChangeRange | None:
        """What comes next, None when there is nothing yet. Of a range of changes, `took` says that they were read."""
        if self._hold is None:
            if self._times.building(self._table):
                return None
            self._begin()
        if self._waiting and not self._begin_snapshot():
            return None
        if self._pages is not None:
            page = next(self._pages, None)
            if self._closed.is_set():
                self._forget_pages()
                return None
            if page is not None:
                self._widths.note(self._collection, page)
                return Page(page)
            self._pages = None
            self.time = self.at
            return SnapshotDone(self.at)
        return self._ranges[0] if self._ranges or self._look() else None

    def changes(self, part: ChangeRange) -> pa.Table:
        found = self._store.changes(self._collection, part.after, part.to, part.keys)
        self._widths.note(self._collection, found)
        return found

    def took(self, part: ChangeRange) -> None:
        assert self._ranges.popleft() == part
        if not self._ranges:
            self._advance(part.to)
        self.time = None if self._ranges else part.to

    def close(self) -> None:
        self._closed.set()
        self._keep(None)
        self._forget_pages()

    def _forget_pages(self) -> None:
        """Let go of the rest of a snapshot and what the store holds for it."""
        if isinstance(self._pages, Generator):
            # A reader that is in the middle of a page does it afterwards.
            with suppress(ValueError):
                self._pages.close()

    def _begin(self) -> None:
        """Take a place: at the time asked for or at the latest one; of a table that was being built, at its first."""
        while not self._closed.is_set():
            self.at = self._times.choose([self._table], self._start.as_of).time
            try:
                self._keep(self._store.hold(self._collection, self.at))
                break
            except ReadError:  # since has moved on between the choice and the hold
                continue
        if self._start.up_to is not None:
            self._up_to = Time(self._start.up_to.at(self._times.now()))
            if self._up_to < self.at:
                self.close()
                raise ends_before_it_begins(self._start.up_to, self.at, self._up_to)
        self._waiting = self._start.snapshot and self._up_to != self.at
        if not self._start.snapshot:
            self.time = self.at

    def _begin_snapshot(self) -> bool:
        """Whether the time of the snapshot is there; one in the future is waited for."""
        if self._times.latest_of(self._table).time < self.at:
            # An error, should the table stop short of it.
            self._times.choose([self._table], self._start.as_of)
            return False
        self._waiting = False
        size = partial(self._widths.rows, self._collection)
        self._pages = self._store.snapshot(self._collection, self.at, page=size)
        return True

    def _look(self) -> bool:
        """Find what came since; where nothing did, only the time has moved on."""
        latest = self._times.latest_of(self._table).time
        if self._up_to is not None:
            latest = Time(min(latest, self._up_to - 1))
        # In this order: a tick at or before `latest` is known to have changed the table, if it has.
        to = Time(min(latest, self._store.changed_at(self._collection)))
        if to > self.at:
            rows = self._widths.rows(self._collection)
            self._ranges.extend(self._store.change_ranges(self._collection, self.at, to, rows=rows))
        if not self._ranges:
            self.time = max(latest, self.at)
            if latest >= self.at + CATCH_UP_MS or to > self.at or latest + 1 == self._up_to:
                self._advance(latest)
        return bool(self._ranges)

    def _advance(self, to: Time) -> None:
        self._keep(self._store.hold(self._collection, to))
        self.at = to

    def _keep(self, hold: int | None) -> None:
        """Take a hold in place of the one before; a reader that was closed meanwhile keeps none."""
        with self._holding:
            ended = [self._hold, hold] if self._closed.is_set() else [self._hold]
            self._hold = None if self._closed.is_set() else hold
        for token in ended:
            if token is not None:
                self._store.release(token)
