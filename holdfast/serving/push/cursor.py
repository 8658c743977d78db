"""The position of a push query in the tables that it reads, for EMIT CHANGES, EMIT ALL and SUBSCRIBE.

Streams are not stored: EMIT CHANGES of a stream has a position in the topic instead (`StreamPush`).

    BUILDING ──▶ WAITING ──▶ SNAPSHOT ──▶ CHANGES ──▶ ENDED            CLOSED from any of them

`_begin` pins ``at = upper - 1``, the latest time that is final for all tables, or the time of AS OF
(`holdfast.serving.time.choice.choose`). The snapshot has the rows as of `at`; the changes are those with a time greater
than `at`. So there is neither a gap nor a repeat between the two.

The pin advances with the cursor: history before `at` may be compacted away, history after it may not.
"""

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from enum import Enum, auto
from threading import Lock
from typing import Protocol

import pyarrow as pa

from holdfast.catalog.objects import Table
from holdfast.coordinator.upstream import Stop
from holdfast.errors import BadTime, ReadError
from holdfast.names import CollectionId
from holdfast.runtime.store.port import ChangeRange, Store, Time
from holdfast.serving.results import Notice
from holdfast.serving.time.choice import least_frozen
from holdfast.serving.time.read_times import Times
from holdfast.sql.literals.moment import BoundAsOf, Moment

CATCH_UP_MS = 1_000
"""How often a cursor advances while nothing changes, so that its pin does not block compaction."""


class CursorState(Enum):
    """What a cursor reads next."""

    BUILDING = auto()
    """Nothing: a table has no readable time yet."""
    WAITING = auto()
    """Nothing: the start time is pinned, but it is in the future."""
    SNAPSHOT = auto()
    """The rest of the rows as of `at`."""
    CHANGES = auto()
    """The changes after `at`."""
    ENDED = auto()
    """Nothing: everything before UP TO was read."""
    CLOSED = auto()


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of the snapshot."""

    rows: pa.Table


@dataclass(frozen=True, slots=True)
class SnapshotEnd:
    """All rows as of a time were read."""

    at: Time


@dataclass(frozen=True, slots=True)
class Start:
    """Where a cursor starts, the latest final time by default, and which rows it reads."""

    snapshot: bool = False
    """Read the rows as of the start time, not only later changes."""
    as_of: BoundAsOf | None = None
    up_to: Moment | None = None
    """Read only changes before this time."""


class CursorSource(Protocol):
    """What a cursor reads: one table, or a query over several."""

    @property
    def tables(self) -> Sequence[Table]: ...

    def snapshot(self, at: Time) -> Iterator[pa.Table]:
        """The rows as of a pinned time, in pages."""

    def ranges(self, after: Time, to: Time) -> Sequence[ChangeRange]:
        """The changes with ``after < time <= to``, split into ranges that are read one at a time, in order."""


class Cursor:
    """One reader's position.

    For one thread; only `pending`, `seconds_to_wait`, `lag_ms` and `close` are thread-safe.
    """

    def __init__(self, source: CursorSource, store: Store, times: Times, start: Start) -> None:
        self._source, self._store, self._times, self._start = source, store, times, start
        self._tables = source.tables
        self._collections = [CollectionId(table.name) for table in self._tables]
        self._pages: Iterator[pa.Table] = iter(())
        self._ranges: deque[ChangeRange] = deque()
        self._up_to: Time | None = None
        self._lock = Lock()
        """Protects `_pins` and `_state`, which `close` changes from another thread."""
        self._pins: ExitStack | None = None
        self._state = CursorState.BUILDING
        self.at = Time(0)
        """Everything up to this time was read, except the rest of the snapshot as of this time."""
        self.time: Time | None = None
        """The time up to which everything was read; None in the middle of a snapshot or a tick."""
        self.notice: Notice | None = None
        """Which table is frozen, or that none is any more; None if none ever was."""
        self._stops: list[Stop | None] = []
        self._caught_up_at = Time(0)
        """When everything readable was last read."""
        self._begin()

    @property
    def state(self) -> CursorState:
        return self._state

    @property
    def pinned_at(self) -> Time | None:
        """The time from which this cursor keeps history readable."""
        return self.at if self._pins is not None else None

    def pending(self) -> bool:
        """Whether `step` may return something now. Does not read from disk."""
        match self._state:
            case CursorState.BUILDING:
                return not self._building()
            case CursorState.WAITING:
                return self._times.now() >= self.at and not self._building()
            case CursorState.CHANGES:
                stops = self._stops_now()
                return bool(self._ranges) or stops != self._stops or self._readable_change(stops) > self.at
            case CursorState.SNAPSHOT | CursorState.ENDED | CursorState.CLOSED:
                return True

    def lag_ms(self, now: Time) -> int:
        """How far it is behind what is readable `now`, for as long as that is. Thread-safe."""
        if self._pins is None:
            return 0
        readable = min([now, *self._frozen_at(self._stops_now())])
        behind = readable - (self.at if self.time is None else self.time)
        # After a RESUME there is much to read at once: the time before it does not count.
        return max(0, min(behind, now - self._caught_up_at))

    def seconds_to_wait(self) -> float | None:
        """Seconds until `step` returns something even without a commit; None if it needs one."""
        until = self.at if self._state is CursorState.WAITING else self._up_to
        left = until - self._times.now() if until is not None else 0
        return left / 1000 if left > 0 else None

    def step(self) -> Page | SnapshotEnd | ChangeRange | None:
        """What to read next; None if there is nothing yet. After reading a range, call `advance_past`."""
        if self._state is CursorState.BUILDING:
            self._begin()
        if self._state is CursorState.WAITING:
            self._arrive()
        if self._state is CursorState.SNAPSHOT:
            return self._next_page()
        if self._state is CursorState.CHANGES:
            return self._ranges[0] if self._ranges or self._find_changes() else None
        return None

    def advance_past(self, part: ChangeRange) -> None:
        """Move past a range that was read. The pin advances after the last of the queued ranges."""
        assert self._ranges.popleft() == part
        if self._ranges:
            self.time = None
            return
        self.time = part.to
        self._advance(part.to)

    def close(self) -> None:
        self._enter(CursorState.CLOSED)
        self._replace_pins(None)
        self._drop_pages()

    def _building(self) -> bool:
        return any(self._times.building(table) for table in self._tables)

    def _begin(self) -> None:
        """Choose and pin the start time, once all tables have a readable one."""
        if self._building():
            return
        self._latest()
        while self._state is not CursorState.CLOSED:
            self.at = self._times.choose(self._tables, self._start.as_of).time
            # The since may advance between the choice and the pin.
            with suppress(ReadError):
                self._pin(self.at)
                break
        self._caught_up_at = self.at
        if self._start.up_to is not None:
            self._up_to = Time(self._start.up_to.at(self._times.now()))
            if self._up_to < self.at:
                self.close()
                raise up_to_before_start(self._start.up_to, self.at, self._up_to)
        if self._up_to == self.at:
            self.time = self.at
            self._enter(CursorState.ENDED)
            return
        if not self._start.snapshot:
            self.time = self.at
        arrived = self.at <= self._times.now()
        self._enter(CursorState.CHANGES if arrived and not self._start.snapshot else CursorState.WAITING)

    def _arrive(self) -> None:
        """Start reading if the start time has been reached."""
        if self._latest() < self.at:
            if not self._building():
                # Raises if a table's upper froze below the start time.
                self._times.choose(self._tables, self._start.as_of)
        elif self._start.snapshot:
            self._pages = self._source.snapshot(self.at)
            self._enter(CursorState.SNAPSHOT)
        else:
            self._enter(CursorState.CHANGES)

    def _next_page(self) -> Page | SnapshotEnd | None:
        page = next(self._pages, None)
        if self._state is CursorState.CLOSED:
            self._drop_pages()
            return None
        if page is not None:
            return Page(page)
        self.time = self.at
        self._enter_changes()
        return SnapshotEnd(self.at)

    def _find_changes(self) -> bool:
        """Queue the changes after `at`. If there are none, only advance the time."""
        latest = self._latest()
        self._check_history()
        if self._up_to is not None:
            latest = Time(min(latest, self._up_to - 1))
        # Read after `latest`: all ticks up to `latest` have then recorded which tables they changed.
        to = Time(min(latest, self._changed_at()))
        if to > self.at:
            self._ranges.extend(self._source.ranges(self.at, to))
        if not self._ranges:
            self.time, self._caught_up_at = max(latest, self.at), self._times.now()
            if latest >= self.at + CATCH_UP_MS or to > self.at or latest + 1 == self._up_to:
                self._advance(latest)
        return bool(self._ranges)

    def _latest(self) -> Time:
        """The latest time that is final for all tables: the least of their uppers, minus one. Sets `notice`."""
        self._stops, now = self._stops_now(), self._times.now()
        bounds = [self._times.following(table) for table in self._tables]
        frozen = least_frozen(bounds)
        if frozen is not None:
            self.notice = Notice(frozen.notice, current=False)
        elif self.notice is not None and not self.notice.current:
            self.notice = Notice(f"{_listed(self._tables)} current again", current=True)
        return Time(min([now, *(each.frontier.upper - 1 for each in bounds)]))

    def _check_history(self) -> None:
        """Raise if a table was rebuilt: the pins keep the history of one that was not."""
        for table in self._tables:
            since = self._store.frontier(CollectionId(table.name)).since
            if since > self.at:
                raise ReadError(
                    f'{table.KIND} "{table.name}" was rebuilt',
                    detail=f"Its history starts at {since}, and the query has read up to {self.at}: what changed in "
                    "between is not known.",
                    hint="Start the query again, with a snapshot.",
                )

    def _stops_now(self) -> list[Stop | None]:
        return [self._times.stop(table) for table in self._tables]

    def _frozen_at(self, stops: Sequence[Stop | None]) -> Iterator[Time]:
        """The latest readable times of the frozen tables."""
        existing = self._store.collections()
        for each, stop in zip(self._collections, stops, strict=True):
            if stop is not None and each in existing:
                yield Time(self._store.frontier(each).upper - 1)

    def _readable_change(self, stops: Sequence[Stop | None]) -> Time:
        """The time of the last change, or of the last readable one: a frozen table may have later ones."""
        return min([self._changed_at(), *self._frozen_at(stops)])

    def _changed_at(self) -> Time:
        return max(self._store.changed_at(each) for each in self._collections)

    def _advance(self, to: Time) -> None:
        self._pin(to)
        self.at = to
        self._enter_changes()

    def _enter_changes(self) -> None:
        ended = self._up_to is not None and self.at + 1 >= self._up_to
        self._enter(CursorState.ENDED if ended else CursorState.CHANGES)

    def _enter(self, state: CursorState) -> None:
        with self._lock:
            if self._state is not CursorState.CLOSED:
                self._state = state

    def _pin(self, at: Time) -> None:
        with ExitStack() as pins:
            for each in self._collections:
                pins.callback(self._store.unpin, self._store.pin(each, at))
            self._replace_pins(pins.pop_all())

    def _replace_pins(self, pins: ExitStack | None) -> None:
        """Replace the pins and release the previous ones. A cursor that was closed in the meantime releases both."""
        with self._lock:
            closed = self._state is CursorState.CLOSED
            released = [self._pins, pins] if closed else [self._pins]
            self._pins = None if closed else pins
        for each in released:
            if each is not None:
                each.close()

    def _drop_pages(self) -> None:
        """Release the store resources of the rest of the snapshot."""
        if isinstance(self._pages, Generator):
            # A page is being read: the reader closes them afterwards.
            with suppress(ValueError):
                self._pages.close()


def _listed(tables: Sequence[Table]) -> str:
    """Tables as the subject of a sentence."""
    names = ", ".join(f'"{table.name}"' for table in tables)
    return f"{tables[0].KIND} {names} is" if len(tables) == 1 else f"{names} are"


def up_to_before_start(moment: Moment, at: Time, up_to: Time) -> BadTime:
    return BadTime(
        "UP TO must not be below AS OF",
        detail=f"The query would start at {at} and end before {up_to}.",
        position=moment.position,
    )
