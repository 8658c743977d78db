"""Holds: which times they may have, and what advances them.

The object of a hold is in the command topic, its time in the store. The time is stored before the command is written,
and removed after the command that drops the hold: what a crash leaves between the two is a time without a hold, which
the next start removes.

A hold that is created together with its object is first put on the object's inputs, where their history starts. The
object is then built from that time on, and the hold moves to it once it can be read.
"""

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from threading import Lock

from holdfast.catalog.objects import Hold, Holdable, NamedHold, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.coordinator.downtime import Downtime
from holdfast.coordinator.hold_advances import HoldAdvances
from holdfast.coordinator.uppers import Uppers
from holdfast.errors import HoldTimeError, ReadError
from holdfast.names import CollectionId, HoldId, ObjectName
from holdfast.runtime.progress import Status
from holdfast.runtime.store.port import RetainedHistory, Store, StoredHold, Time
from holdfast.sql.literals.duration import duration_text
from holdfast.sql.literals.moment import Moment
from holdfast.wall_clock import WallClock

log = logging.getLogger(__name__)

NO_TIME = Time(0)
"""The time of a hold whose object is built from streams, until the object can be read."""
BUILD_TIMEOUT = 60.0
"""Seconds that CREATE HOLD waits for a table that is being built: a script that has just created it needs no loop."""


@dataclass(frozen=True, slots=True)
class HoldStatus:
    """A hold as SHOW HOLDS lists it. `advanced` counts its automatic advances, the last one for `reason`.

    `pinned` is the history that only this hold retains.
    """

    hold: Hold
    at: Time
    lag_ms: int
    advanced: int
    reason: str | None
    pinned: RetainedHistory


@dataclass(frozen=True, slots=True)
class _AutomaticAdvances:
    """How often a hold was advanced automatically, and why it was last; stored beside its time."""

    advanced: int = 0
    reason: str | None = None


class Holds:
    """The holds of the catalog. `create` and `settle` on the coordinator's thread, the rest from any thread."""

    def __init__(
        self,
        store: Store,
        uppers: Uppers,
        catalog: Callable[[], Catalog],
        clock: WallClock,
        *,
        ceiling: timedelta,
        grace: timedelta,
    ) -> None:
        """`ceiling` is the greatest MAX LAG allowed. The time that the server was down counts only after `grace`."""
        self._store, self._uppers, self._catalog = store, uppers, catalog
        self._ceiling_ms, self._clock = ceiling // timedelta(milliseconds=1), clock
        self._downtime = Downtime(store, clock, grace)
        self._advances = HoldAdvances(store.move_holds)
        self._recording = Lock()
        """Protects the counts of automatic advances, which are read and then written."""

    # -- statements

    def await_built(self, names: Sequence[str]) -> None:
        """Wait for tables and indexes that are being built. Never on the coordinator's thread, which builds them."""
        tables = [found for name in names if (found := self._catalog().held(name)) is not None]
        deadline = self._clock.monotonic() + BUILD_TIMEOUT
        while any(map(self._is_building, tables)) and self._clock.monotonic() < deadline:
            self._clock.sleep(0.02)

    def create(self, hold: Hold, at: Moment | None) -> Time:
        """Give a new hold its time; durable on return."""
        self._check_lag(hold)
        self._check_built(hold.on)
        chosen = Time(at.at(self._uppers.now())) if at is not None else self._implied(hold.on)
        self._check(hold, chosen, at)
        try:
            self._store.put_hold(hold.id, [CollectionId(name) for name in hold.on], chosen)
        except ReadError as error:
            raise self._refusal(hold, chosen, at) from error
        return chosen

    def create_on_inputs(self, hold: Hold, inputs: Sequence[ObjectName], at: Moment | None) -> Time | None:
        """Put a hold on what its object will be computed from; durable on return.

        None when not all inputs are tables: streams have no history, and that of the object starts when it is built.
        """
        self._check_lag(hold)
        tables = [found for name in inputs if isinstance(found := self._catalog().find(name), Table)]
        if len(tables) < len(inputs):
            self._store.put_hold(hold.id, (), NO_TIME)
            return None
        self._check_built(inputs)
        least = max(self._store.frontier(CollectionId(name)).since for name in inputs)
        chosen = Time(at.at(self._uppers.now())) if at is not None else least
        if chosen < least:
            raise HoldTimeError(
                f'hold "{hold.name}" cannot be at {chosen}, where what it holds will have no history',
                detail=" ".join(f'"{name}" can be read from {self._since(name)} on.' for name in inputs),
                hint=f"Valid times are {least} and later.",
                position=at.position if at is not None else None,
            )
        self._store.put_hold(hold.id, [CollectionId(name) for name in inputs], chosen)
        return chosen

    def start_of(self, name: ObjectName) -> Time | None:
        """Where the history of an object has to start while it is built, if a hold is on its inputs for it."""
        found = self._catalog().held(name)
        query = self._catalog().queries.get(found.query) if found is not None and found.query is not None else None
        stored = self._store.holds()
        for hold in self._catalog().holds_on(name):
            if (
                query is not None
                and hold.id in stored
                and stored[hold.id].on == tuple(map(CollectionId, query.sources))
            ):
                return stored[hold.id].at
        return None

    def undo_create(self, hold: Hold) -> None:
        """Remove the time of a hold whose command was not written."""
        self._store.drop_holds([hold.id])

    def advance(self, hold: Hold, to: Moment | None) -> Time:
        """Move a hold; durable on return. Concurrent advances are written in batches."""
        for name in hold.on:
            self._upper_of(name)
        self.at(hold)
        chosen = Time(to.at(self._uppers.now())) if to is not None else self._implied(hold.on)
        self._check(hold, chosen, to)
        refused = self._advances.move(hold.id, chosen)
        if refused is not None and hold.id not in self._store.holds():
            raise ReadError(f'hold "{hold.name}" was dropped') from refused
        if refused is not None:
            raise self._refusal(hold, chosen, to) from refused
        return chosen

    # -- maintenance

    def settle(self) -> None:
        """Store a time for each hold of the catalog, and for no other.

        A hold has none after its store was rebuilt: it then starts where its objects can be read.
        """
        holds, stored = {hold.id: hold for hold in self._catalog().holds.values()}, self._store.holds()
        dropped = [id_ for id_ in stored if id_ not in holds]
        for id_ in dropped:
            self._store.put(_fact(id_), None)
        self._store.drop_holds(dropped)
        for hold in holds.values():
            wanted = tuple(CollectionId(name) for name in hold.on)
            if hold.id in stored and stored[hold.id].on == wanted:
                continue
            if any(self._upper_of(name) is None for name in hold.on):
                continue
            at = max(self._store.frontier(id_).since for id_ in wanted)
            at = Time(max(at, stored[hold.id].at)) if hold.id in stored else at
            self._store.put_hold(hold.id, wanted, at)
            if hold.id not in stored or not _is_on_inputs(stored[hold.id], wanted):
                self._record_advance(hold, "what it held was rebuilt")

    def advance_overdue(self) -> None:
        """Advance the holds that lag by more than their MAX LAG.

        A client could not advance its hold while the server was down, and needs a moment to connect again.
        """
        forgiven_ms = self._downtime.forgiven_ms()
        for hold, stored in self._on_their_objects(self._catalog().holds.values()):
            upper = self._least_upper(hold)
            if upper is None or upper - stored.at <= hold.max_lag_ms + forgiven_ms:
                continue
            to = Time(upper - hold.max_lag_ms)
            if self._advances.move(hold.id, to) is None:
                reason = f"it was more than {hold.max_lag_ms} ms behind, and went from {stored.at} to {to}"
                self._record_advance(hold, reason)

    # -- status

    def at(self, hold: Hold) -> Time:
        """The time of a hold."""
        found = self._store.holds().get(hold.id)
        if found is None or not _is_on_objects(hold, found):
            raise ReadError(f'hold "{hold.name}" has no time yet', detail="What it holds is still being built.")
        return found.at

    def on(self, name: ObjectName) -> list[NamedHold]:
        """The holds on an object, with their times."""
        return [NamedHold(h.name, stored.at) for h, stored in self._on_their_objects(self._catalog().holds_on(name))]

    def _on_their_objects(self, holds: Iterable[Hold]) -> list[tuple[Hold, StoredHold]]:
        """Those of some holds that are on their objects, with what is stored of them."""
        stored = self._store.holds()
        found = [(hold, stored[hold.id]) for hold in holds if hold.id in stored]
        return [(hold, each) for hold, each in found if _is_on_objects(hold, each)]

    def status(self) -> list[HoldStatus]:
        stored = self._store.holds()
        found = []
        for hold in self._catalog().holds.values():
            if hold.id in stored:
                at, upper, automatic = stored[hold.id].at, self._least_upper(hold), self._automatic(hold.id)
                lag = max(0, upper - at) if upper is not None else 0
                retained = self._store.retained_by(hold.id)
                found.append(HoldStatus(hold, at, lag, automatic.advanced, automatic.reason, retained))
        return found

    # -- times

    def _check_lag(self, hold: Hold) -> None:
        if hold.max_lag_ms > self._ceiling_ms:
            raise HoldTimeError(
                f"MAX LAG must be at most {duration_text(self._ceiling_ms)}",
                hint="The setting hold_max_lag is the ceiling of this server.",
            )

    def _check_built(self, names: Sequence[ObjectName]) -> None:
        for name in names:
            if self._upper_of(name) is None:
                raise ReadError(f'table "{name}" is still building', hint="Create the hold once it has caught up.")

    def _since(self, name: ObjectName) -> Time:
        return self._store.frontier(CollectionId(name)).since

    def _check(self, hold: Hold, at: Time, asked: Moment | None) -> None:
        # Other holds matter only for a time before the read frontier.
        if any(at < self._store.implied_since(CollectionId(name)) and at < self._least(name) for name in hold.on):
            raise self._refusal(hold, at, asked)

    def _least(self, name: ObjectName) -> Time:
        """The least time that a hold on an object may have: its read frontier, or another hold's time."""
        return Time(min([self._store.implied_since(CollectionId(name)), *(held.at for held in self.on(name))]))

    def _implied(self, names: Sequence[ObjectName]) -> Time:
        return max(self._store.implied_since(CollectionId(name)) for name in names)

    def _refusal(self, hold: Hold, at: Time, asked: Moment | None) -> HoldTimeError:
        details = []
        for name in hold.on:
            frontier, holds = self._store.implied_since(CollectionId(name)), self.on(name)
            first = min(holds, key=lambda held: held.at, default=None)
            behind = f' and the hold "{first.name}" on it is at {first.at}' if first is not None else ""
            details.append(f'"{name}" has the read frontier {frontier}{behind}.')
        least = max(self._least(name) for name in hold.on)
        return HoldTimeError(
            f'hold "{hold.name}" cannot be at {at}, which is no longer readable',
            detail=" ".join(details),
            hint=f"Valid times are {least} and later.",
            position=asked.position if asked is not None else None,
        )

    def _is_building(self, table: Holdable) -> bool:
        progress = self._uppers.progress(table)
        return progress is not None and progress.status is Status.BUILDING

    def _upper_of(self, name: ObjectName) -> Time | None:
        """The upper of an object now; None while it is being built."""
        found = self._catalog().held(name)
        return self._uppers.upper(found) if found is not None else None

    def _least_upper(self, hold: Hold) -> Time | None:
        uppers = [upper for name in hold.on if (upper := self._upper_of(name)) is not None]
        return min(uppers, default=None)

    # -- automatic advances

    def _record_advance(self, hold: Hold, reason: str) -> None:
        log.warning('hold advanced automatically: hold="%s" reason=%s', hold.name, reason)
        with self._recording:
            recorded = _AutomaticAdvances(self._automatic(hold.id).advanced + 1, reason)
            self._store.put(_fact(hold.id), json.dumps(asdict(recorded)))

    def _automatic(self, id_: HoldId) -> _AutomaticAdvances:
        text = self._store.get(_fact(id_))
        return _AutomaticAdvances(**json.loads(text)) if text is not None else _AutomaticAdvances()


def _is_on_inputs(stored: StoredHold, wanted: Sequence[CollectionId]) -> bool:
    """Whether a hold is not yet on its objects, but on what they are computed from."""
    return stored.at == NO_TIME or not set(stored.on) <= set(wanted)


def _is_on_objects(hold: Hold, stored: StoredHold) -> bool:
    return not _is_on_inputs(stored, list(map(CollectionId, hold.on)))


def _fact(id_: HoldId) -> str:
    return f"hold/{id_}"
