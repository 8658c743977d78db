"""Holds: which times they may be at, and what moves them.

A hold's object is in the command topic, its time in the store. It is placed in the store before its command is
written, and taken from the store after the command that drops it: what a crash leaves between the two is a time that
belongs to no hold, and is dropped at the next start.
"""

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from threading import Lock

from holdfast.catalog.objects import Hold, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.coordinator.advances import Advances
from holdfast.errors import HoldTimeError, ReadError
from holdfast.names import CollectionId, HoldId, ObjectName
from holdfast.runtime.store.port import Pinned, Store, Time
from holdfast.serving.times import Times
from holdfast.serving.timestamps import NamedHold
from holdfast.sql.moments import Moment

log = logging.getLogger(__name__)

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
        """Wait for tables that are being built. Never on the coordinator's thread, which builds them."""
        tables = [found for name in names if isinstance(found := self._catalog().find(name), Table)]
        deadline = time.monotonic() + PATIENCE
        while any(map(self._times.building, tables)) and time.monotonic() < deadline:
            time.sleep(0.02)

    def place(self, hold: Hold, at: Moment | None) -> Time:
        """Place a new hold; durable on return."""
        if hold.max_lag_ms > self._ceiling_ms:
            raise HoldTimeError(
                f"MAX LAG must be at most {self._ceiling_ms} ms",
                hint="The setting hold_max_lag is the ceiling of this server.",
            )
        for name in hold.on:
            if self._frontier_of(name) is None:
                raise ReadError(f'table "{name}" is still building', hint="Create the hold once it has caught up.")
        chosen = Time(at.at(self._times.now())) if at is not None else self._implied(hold.on)
        self._check(hold, chosen, at)
        try:
            self._store.keep(hold.id, [CollectionId(name) for name in hold.on], chosen)
        except ReadError as error:
            raise self._refusal(hold, chosen, at) from error
        return chosen

    def forget(self, hold: Hold) -> None:
        """Take back what `place` did."""
        self._store.drop_kept([hold.id])

    def advance(self, hold: Hold, to: Moment | None) -> Time:
        """Move a hold; durable on return. Those that come together are written together."""
        self._refresh(hold)
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
            self._note(hold, "what it held was built anew")

    def advance_overdue(self) -> None:
        """Move on the holds that trail their objects by more than they may."""
        kept = self._store.kept()
        for hold in self._catalog().holds.values():
            upper = self._upper(hold)
            if hold.id not in kept or upper is None or upper - kept[hold.id].at <= hold.max_lag_ms:
                continue
            to = Time(upper - hold.max_lag_ms)
            if self._advances.move(hold.id, to) is None:
                self._note(
                    hold, f"it was more than {hold.max_lag_ms} ms behind, and went from {kept[hold.id].at} to {to}"
                )

    # -- looking -------------------------------------------------------------------------------------

    def at(self, hold: Hold) -> Time:
        found = self._store.kept().get(hold.id)
        if found is None:
            raise ReadError(f'hold "{hold.name}" has no time yet', detail="What it holds is still being built.")
        return found.at

    def on(self, name: ObjectName) -> list[NamedHold]:
        """The holds on an object, with their times."""
        kept = self._store.kept()
        return [NamedHold(h.name, kept[h.id].at) for h in self._catalog().holds_on(name) if h.id in kept]

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

    def _check(self, hold: Hold, at: Time, asked: Moment | None) -> None:
        if any(at < self._least(name) for name in hold.on):
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
        found = self._catalog().find(name)
        return self._times.upper(found) if isinstance(found, Table) else None

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


def _fact(id_: HoldId) -> str:
    return f"hold/{id_}"
