"""Chooses the time of a read from the bounds of the objects, and records what decided.

       since                upper
    ─────┬────────────────────┬─────▶ time        for each object that is read
         │◀─── readable ─────▶│

A plain read takes the latest time that is final for every object. `AS OF t` takes t; if t is not readable, the error
says why.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.catalog.objects import NamedHold, Table
from holdfast.errors import UnreadableTime
from holdfast.names import ObjectName
from holdfast.runtime.store.port import Frontier, Time
from holdfast.sql.literals.moment import BoundAsOf


class Decider(StrEnum):
    """What decided the chosen time."""

    NOW = "the latest final time"
    FROZEN = "the upper of a frozen object"
    AS_OF = "AS OF"
    SINCE = "the greatest since"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The times at which an object is readable. `frozen` is the reason why its upper no longer follows the clock."""

    name: ObjectName
    frontier: Frontier
    frozen: str | None = None
    holds: tuple[NamedHold, ...] = ()
    kind: str = Table.KIND

    def __str__(self) -> str:
        frozen = f", which is frozen: {self.frozen}" if self.frozen else ""
        return f'"{self.name}" has since {self.frontier.since} and upper {self.frontier.upper}{frozen}.'

    @property
    def notice(self) -> str:
        """The NOTICE of a read of a frozen object; it has no readable time while it is rebuilt."""
        since = f" since {self.frontier.upper - 1}" if self.frontier.upper else ""
        return f'{self.kind} "{self.name}" has been frozen{since}: {self.frozen}'


@dataclass(frozen=True, slots=True)
class TimeChoice:
    """The time of a read. `by` is the object whose bound decided, if one did; `notice` is shown to the user.

    `readable` has the objects and indexes that are pinned at the time; empty until they are.
    """

    time: Time
    bounds: tuple[Bounds, ...]
    decided: Decider
    by: ObjectName | None = None
    notice: str | None = None
    readable: tuple[ObjectName, ...] = ()


def choose(bounds: Sequence[Bounds], now: Time, as_of: BoundAsOf | None = None) -> TimeChoice:
    """The time at which all objects are read; `now` is the latest final time of those whose upper follows the clock.

    It may be in the future. Raises `UnreadableTime` if there is none.
    """
    bounds = tuple(bounds)
    since = max(bounds, key=lambda b: b.frontier.since, default=None)
    frozen = least_frozen(bounds)
    least = since.frontier.since if since is not None else Time(0)
    if as_of is None:
        chosen = TimeChoice(now, bounds, Decider.NOW)
        if frozen is not None and frozen.frontier.upper <= now:
            latest = Time(frozen.frontier.upper - 1)
            chosen = TimeChoice(latest, bounds, Decider.FROZEN, frozen.name, frozen.notice)
    else:
        wanted = Time(as_of.moment.at(now))
        chosen = TimeChoice(wanted, bounds, Decider.AS_OF)
        if as_of.at_least and wanted < least and since is not None:
            chosen = TimeChoice(least, bounds, Decider.SINCE, since.name)
    if chosen.time < least or (frozen is not None and chosen.time >= frozen.frontier.upper):
        raise no_valid_time(bounds, chosen.time, as_of)
    return chosen


def least_frozen(bounds: Sequence[Bounds]) -> Bounds | None:
    """The frozen object with the least upper."""
    return min((b for b in bounds if b.frozen is not None), key=lambda b: b.frontier.upper, default=None)


def explain_choice(choice: TimeChoice, now: Time) -> str:
    """The text of EXPLAIN TIMESTAMP: the time, what decided it, and the bounds of each object."""
    by = f', of "{choice.by}"' if choice.by is not None else ""
    lines = [
        f"               query time: {choice.time}",
        f"               decided by: {choice.decided}{by}",
        f"        latest final time: {now}",
        f"           can answer now: {str(choice.time <= now).lower()}",
    ]
    for bounds in choice.bounds:
        frozen = f"since {bounds.frontier.upper - 1}: {bounds.frozen}" if bounds.frozen else "false"
        lines += [
            "",
            f'object "{bounds.name}":',
            f"                    since: {bounds.frontier.since}",
            f"                    upper: {bounds.frontier.upper}",
            f"                   frozen: {frozen}",
        ]
    return "\n".join(lines) + "\n"


def no_valid_time(bounds: Sequence[Bounds], wanted: Time, as_of: BoundAsOf | None) -> UnreadableTime:
    """Why a time is not readable, and which times are."""
    detail = [f"The requested time is {wanted}."] if as_of is not None else []
    detail += [str(each) for each in bounds]
    detail += _nearest_hold(bounds, wanted)
    least = max((b.frontier.since for b in bounds), default=Time(0))
    most = min((b.frontier.upper for b in bounds if b.frozen is not None), default=None)
    if most is None:
        hint = f"Valid times are {least} and later."
    elif most > least:
        hint = f"Valid times are from {least} to {most - 1}."
    else:
        hint = "No time is valid for all of them; read them in separate queries."
    position = as_of.moment.position if as_of is not None else None
    return UnreadableTime(
        "could not find a valid timestamp for the query", detail=" ".join(detail), hint=hint, position=position
    )


def _nearest_hold(bounds: Sequence[Bounds], wanted: Time) -> list[str]:
    holds = [(abs(hold.at - wanted), hold, b.name) for b in bounds for hold in b.holds]
    if not holds:
        return []
    _, hold, name = min(holds, key=lambda found: found[0])
    where = "which is in advance of it" if hold.at > wanted else "which does not make it readable"
    return [f'The nearest hold is "{hold.name}" on "{name}" at {hold.at}, {where}.']
