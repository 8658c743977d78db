"""Holds: which times they may be at, and what moves them.

A hold's object is in the command topic, its time in the store. It is placed in the store before its command is
written, and taken from the store after the command that drops it: what a crash leaves between the two is a time that
belongs to no hold, and is dropped at the next start.

A hold that is created together with its object is placed on the object's inputs, where their history starts: the object
is then built from there on, and the hold goes over to it once it can be read.
"""

import json
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from threading import Lock

from holdfast.catalog.objects import Hold, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.coordinator.advances import Advances
from holdfast.errors import HoldTimeError, ReadError
from holdfast.names import CollectionId, HoldId, ObjectName
from holdfast.runtime.store.port import Kept, Pinned, Store, Time
from holdfast.serving.times import Times
from holdfast.serving.timestamps import NamedHold
from holdfast.sql.moments import Moment

log = logging.getLogger(__name__)

UNPLACED = Time(0)
"""The time of a hold whose object is built from streams, until it can be read."""
PATIENCE = 60.0
"""Seconds that a CREATE HOLD waits for a table that is being built: a script that has just made it needs no loop."""


@dataclass(frozen=True, slots=True)
class HoldStatus:
    """A hold as SHOW HOLDS tells of it. `advanced` counts how often it was moved on by itself, last for `reason`.

    `pinned` is what history has only because of it.
    """

    hold: Hold
    at: Time
    lag_ms: int
    advanced: int
    reason: str | None
    pinned: Pinned


@dataclass(frozen=True, slots=True)
class _Noted:
    """What the store remembers of a hold beside its time."""

    advanced: int = 0
    reason: str | None = None


class Holds:
    """The holds of the catalog. `place` and `settle` on the coordinator's thread, the rest from any."""

    def __init__(self, store: Store, times: Times, catalog: Callable[[], Catalog], ceiling_ms: int) -> None:
        self._store, self._times, self._catalog, self._ceiling_ms = store, times, catalog, ceiling_ms
        self._advances = Advances(store.move_kept)
        self._noting = Lock()

    # -- statements ----------------------------------------------------------------------------------

    def await_built(self, names: Sequence[str]) -> None:
        """Wait for tables and indexes that are being built. Never on the coordinator's thread, which builds them."""
        tables = [found for name in names if (found := self._catalog().held(name)) is not None]
        deadline = time.monotonic() + PATIENCE
        while any(map(self._times.building, tables)) and time.monotonic() < deadline:
            time.sleep(0.02)

    def place(self, hold: Hold, at: Moment | None) -> Time:
        """Place a new hold; durable on return."""
        self._check_lag(hold)
        self._check_built(hold.on)
        chosen = Time(at.at(self._times.now())) if at is not None else self._implied(hold.on)
        self._check(hold, chosen, at)
        try:
            self._store.keep(hold.id, [CollectionId(name) for name in hold.on], chosen)
        except ReadError as error:
            raise self._refusal(hold, chosen, at) from error
        return chosen

    def place_on_inputs(self, hold: Hold, inputs: Sequence[ObjectName], at: Moment | None) -> Time | None:
        """Place a hold on what its object will be computed from; durable on return.

        None when that is not all tables: history of streams is not kept, and the object's starts when it is built.
        """
        self._check_lag(hold)
        tables = [found for name in inputs if isinstance(found := self._catalog().find(name), Table)]
        if len(tables) < len(inputs):
            self._store.keep(hold.id, (), UNPLACED)
            return None
        self._check_built(inputs)
        least = max(self._store.frontier(CollectionId(name)).since for name in inputs)
        chosen = Time(at.at(self._times.now())) if at is not None else least
        if chosen < least:
            raise HoldTimeError(
                f'hold "{hold.name}" cannot be at {chosen}, where what it holds will have no history',
                detail=" ".join(f'"{name}" can be read from {self._since(name)} on.' for name in inputs),
                hint=f"Valid times are {least} and later.",
                position=at.position if at is not None else None,
            )
        self._store.keep(hold.id, [CollectionId(name) for name in inputs], chosen)
        return chosen

    def start_of(self, name: ObjectName) -> Time | None:
        """Where the history of an object that is built is to start, if a hold is on its inputs for it."""
        found = self._catalog().held(name)
        query = self._catalog().queries.get(found.query) if found is not None and found.query is not None else None
        kept = self._store.kept()
        for hold in self._catalog().holds_on(name):
            if query is not None and hold.id in kept and kept[hold.id].on == tuple(map(CollectionId, query.sources)):
                return kept[hold.id].at
        return None

    def forget(self, hold: Hold) -> None:
        """Take back what `place` did."""
        self._store.drop_kept([hold.id])

    def advance(self, hold: Hold, to: Moment | None) -> Time:
        """Move a hold; durable on return. Those that come together are written together."""
        self._refresh(hold)
        self.at(hold)
        chosen = Time(to.at(self._times.now())) if to is not None else self._implied(hold.on)
        self._check(hold, chosen, to)
        refused = self._advances.move(hold.id, chosen)
        if refused is not None:
            raise self._refusal(hold, chosen, to) from refused
        return chosen

    # -- keeping -------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Have a time for each hold of the catalog, and for no other.

        A hold has none when its store was built anew: it then begins where its objects can be read.
        """
        holds, kept = {hold.id: hold for hold in self._catalog().holds.values()}, self._store.kept()
        gone = [id_ for id_ in kept if id_ not in holds]
        for id_ in gone:
            self._store.put(_fact(id_), None)
        self._store.drop_kept(gone)
        for hold in holds.values():
            wanted = tuple(CollectionId(name) for name in hold.on)
            if hold.id in kept and kept[hold.id].on == wanted:
                continue
            if any(self._frontier_of(name) is None for name in hold.on):
                continue
            at = max(self._store.frontier(id_).since for id_ in wanted)
            at = Time(max(at, kept[hold.id].at)) if hold.id in kept else at
            self._store.keep(hold.id, wanted, at)
            if hold.id not in kept or not _is_new(kept[hold.id], wanted):
                self._note(hold, "what it held was built anew")

    def advance_overdue(self) -> None:
        """Move on the holds that trail their objects by more than they may."""
        for hold, kept in self._placed(self._catalog().holds.values()):
            upper = self._upper(hold)
            if upper is None or upper - kept.at <= hold.max_lag_ms:
                continue
            to = Time(upper - hold.max_lag_ms)
            if self._advances.move(hold.id, to) is None:
                self._note(hold, f"it was more than {hold.max_lag_ms} ms behind, and went from {kept.at} to {to}")

    # -- looking -------------------------------------------------------------------------------------

    def at(self, hold: Hold) -> Time:
        found = self._store.kept().get(hold.id)
        if found is None or not _is_placed(hold, found):
            raise ReadError(f'hold "{hold.name}" has no time yet', detail="What it holds is still being built.")
        return found.at

    def on(self, name: ObjectName) -> list[NamedHold]:
        """The holds on an object, with their times."""
        return [NamedHold(h.name, kept.at) for h, kept in self._placed(self._catalog().holds_on(name))]

    def _placed(self, holds: Iterable[Hold]) -> list[tuple[Hold, Kept]]:
        """Those of some holds that are on their objects, with their times."""
        kept = self._store.kept()
        found = [(hold, kept[hold.id]) for hold in holds if hold.id in kept]
        return [(hold, each) for hold, each in found if _is_placed(hold, each)]

    def status(self) -> list[HoldStatus]:
        kept = self._store.kept()
        found = []
        for hold in self._catalog().holds.values():
            if hold.id in kept:
                upper, noted = self._upper(hold), self._noted(hold.id)
                lag = max(0, upper - kept[hold.id].at) if upper is not None else 0
                found.append(
                    HoldStatus(hold, kept[hold.id].at, lag, noted.advanced, noted.reason, self._store.pinned(hold.id))
                )
        return found

    # -- times ---------------------------------------------------------------------------------------

    def _check_lag(self, hold: Hold) -> None:
        if hold.max_lag_ms > self._ceiling_ms:
            raise HoldTimeError(
                f"MAX LAG must be at most {self._ceiling_ms} ms",
                hint="The setting hold_max_lag is the ceiling of this server.",
            )

    def _check_built(self, names: Sequence[ObjectName]) -> None:
        for name in names:
            if self._frontier_of(name) is None:
                raise ReadError(f'table "{name}" is still building', hint="Create the hold once it has caught up.")

    def _since(self, name: ObjectName) -> Time:
        return self._store.frontier(CollectionId(name)).since

    def _check(self, hold: Hold, at: Time, asked: Moment | None) -> None:
        # Other holds are asked only about a time that is before the read frontier.
        if any(at < self._store.implied_since(CollectionId(name)) and at < self._least(name) for name in hold.on):
            raise self._refusal(hold, at, asked)

    def _least(self, name: ObjectName) -> Time:
        """The least time that a hold on an object may have: its read frontier, or another hold's time."""
        return Time(min([self._store.implied_since(CollectionId(name)), *(held.at for held in self.on(name))]))

    def _implied(self, names: Sequence[ObjectName]) -> Time:
        return max(self._store.implied_since(CollectionId(name)) for name in names)

    def _refusal(self, hold: Hold, at: Time, asked: Moment | None) -> HoldTimeError:
        said = []
        for name in hold.on:
            frontier, holds = self._store.implied_since(CollectionId(name)), self.on(name)
            first = min(holds, key=lambda held: held.at, default=None)
            behind = f' and the hold "{first.name}" on it is at {first.at}' if first is not None else ""
            said.append(f'"{name}" has the read frontier {frontier}{behind}.')
        least = max(self._least(name) for name in hold.on)
        return HoldTimeError(
            f'hold "{hold.name}" cannot be at {at}, which is no longer readable',
            detail=" ".join(said),
            hint=f"Valid times are {least} and later.",
            position=asked.position if asked is not None else None,
        )

    def _refresh(self, hold: Hold) -> None:
        for name in hold.on:
            self._frontier_of(name)

    def _frontier_of(self, name: ObjectName) -> Time | None:
        """The upper of an object, as it is now; None while it is being built."""
        found = self._catalog().held(name)
        return self._times.upper(found) if found is not None else None

    def _upper(self, hold: Hold) -> Time | None:
        uppers = [upper for name in hold.on if (upper := self._frontier_of(name)) is not None]
        return min(uppers, default=None)

    # -- what happened by itself ---------------------------------------------------------------------

    def _note(self, hold: Hold, reason: str) -> None:
        log.warning('hold "%s" was moved on: %s', hold.name, reason)
        with self._noting:
            noted = _Noted(self._noted(hold.id).advanced + 1, reason)
            self._store.put(_fact(hold.id), json.dumps(asdict(noted)))

    def _noted(self, id_: HoldId) -> "_Noted":
        text = self._store.get(_fact(id_))
        return _Noted(**json.loads(text)) if text is not None else _Noted()


def _is_new(kept: Kept, wanted: Sequence[CollectionId]) -> bool:
    """Whether a hold was not on its objects yet, but on what they are computed from."""
    return kept.at == UNPLACED or not set(kept.on) <= set(wanted)


def _is_placed(hold: Hold, kept: Kept) -> bool:
    return not _is_new(kept, list(map(CollectionId, hold.on)))


def _fact(id_: HoldId) -> str:
    return f"hold/{id_}"
