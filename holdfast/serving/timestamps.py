"""The time that a read is answered for: which bounds there were, and which of them decided.

       since                upper
    ─────┬────────────────────┬─────▶ time        for each object that is read
         │◀─ it can be read ─▶│

A plain read takes the latest time that is final for every object. `AS OF t` takes t, or says why it cannot.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.catalog.objects import Table
from holdfast.errors import UnreadableTime
from holdfast.names import ObjectName
from holdfast.runtime.store.port import Frontier, Time
from holdfast.sql.moments import BoundAsOf


class Decider(StrEnum):
    """What made a time the one that was chosen."""

    NOW = "the latest final time"
    FROZEN = "the upper of an object that is not kept current"
    AS_OF = "AS OF"
    SINCE = "the greatest since"


@dataclass(frozen=True, slots=True)
class NamedHold:
    """A hold that a user made, and the time that it keeps."""

    name: str
    at: Time


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between which times an object can be read. `frozen` says why its upper no longer follows the clock."""

    name: ObjectName
    frontier: Frontier
    frozen: str | None = None
    holds: tuple[NamedHold, ...] = ()
    kind: str = Table.KIND

    def __str__(self) -> str:
        stays = f", where it stays: its query {self.frozen}" if self.frozen else ""
        return f'"{self.name}" has since {self.frontier.since} and upper {self.frontier.upper}{stays}.'


@dataclass(frozen=True, slots=True)
class TimeChoice:
    """The time of a read. `by` is the object whose bound decided, if one did; `notice` says what a user should know.

    `readable` are the objects and indexes that are held at the time, once something is.
    """

    time: Time
    bounds: tuple[Bounds, ...]
    decided: Decider
    by: ObjectName | None = None
    notice: str | None = None
    readable: tuple[ObjectName, ...] = ()


def choose(bounds: Sequence[Bounds], now: Time, as_of: BoundAsOf | None = None) -> TimeChoice:
    """The time at which all the objects are read; `now` is the latest final time of those that are kept current.

    May be after `now`: then it has to be waited for. `UnreadableTime` when there is none.
    """
    bounds = tuple(bounds)
    since = max(bounds, key=lambda b: b.frontier.since, default=None)
    frozen = min((b for b in bounds if b.frozen is not None), key=lambda b: b.frontier.upper, default=None)
    least = since.frontier.since if since is not None else Time(0)
    if as_of is None:
        chosen = TimeChoice(now, bounds, Decider.NOW)
        if frozen is not None and frozen.frontier.upper <= now:
            notice = f'{frozen.kind} "{frozen.name}" is not kept current, its query {frozen.frozen}'
            chosen = TimeChoice(Time(frozen.frontier.upper - 1), bounds, Decider.FROZEN, frozen.name, notice)
    else:
        wanted = Time(as_of.moment.at(now))
        chosen = TimeChoice(wanted, bounds, Decider.AS_OF)
        if as_of.at_least and wanted < least and since is not None:
            chosen = TimeChoice(least, bounds, Decider.SINCE, since.name)
    if chosen.time < least or (frozen is not None and chosen.time >= frozen.frontier.upper):
        raise no_valid_time(bounds, chosen.time, as_of)
    return chosen


def explained(choice: TimeChoice, now: Time) -> str:
    """A choice for people: the time, what decided it, and the bounds of each object."""
    by = f', of "{choice.by}"' if choice.by is not None else ""
    lines = [
        f"               query time: {choice.time}",
        f"               decided by: {choice.decided}{by}",
        f"        latest final time: {now}",
        f"           can answer now: {str(choice.time <= now).lower()}",
    ]
    for bounds in choice.bounds:
        lines += [
            "",
            f'object "{bounds.name}":',
            f"                    since: {bounds.frontier.since}",
            f"                    upper: {bounds.frontier.upper}",
            f"             kept current: {'false, its query ' + bounds.frozen if bounds.frozen else 'true'}",
        ]
    return "\n".join(lines) + "\n"


def no_valid_time(bounds: Sequence[Bounds], wanted: Time, as_of: BoundAsOf | None) -> UnreadableTime:
    """Why a time cannot be read, and which can."""
    said = [f"The time asked for is {wanted}."] if as_of is not None else []
    said += [str(each) for each in bounds]
    said += _nearest_hold(bounds, wanted)
    least = max((b.frontier.since for b in bounds), default=Time(0))
    most = min((b.frontier.upper for b in bounds if b.frozen is not None), default=None)
    if most is None:
        hint = f"Valid times are {least} and later."
    elif most > least:
        hint = f"Valid times are from {least} to {most - 1}."
    else:
        hint = "No time is valid for all of them; read them in queries of their own."
    position = as_of.moment.position if as_of is not None else None
    return UnreadableTime(
        "could not find a valid timestamp for the query", detail=" ".join(said), hint=hint, position=position
    )


def _nearest_hold(bounds: Sequence[Bounds], wanted: Time) -> list[str]:
    holds = [(abs(hold.at - wanted), hold, b.name) for b in bounds for hold in b.holds]
    if not holds:
        return []
    _, hold, name = min(holds, key=lambda found: found[0])
    where = "which is in advance of it" if hold.at > wanted else "which does not keep it"
    return [f'The nearest hold is "{hold.name}" on "{name}" at {hold.at}, {where}.']
