"""The laws of readable times, as functions without state.

    ────┬───────────────┬────▶ time
      since           upper          a read as of t is right when since <= t < upper

`since` and `upper` never move back, and `since <= upper`. A collection that is still being built has
neither: its frontier is (0, 0), and its first upper decides its first since.
"""

from collections.abc import Iterable

from holdfast.runtime.store.port import Frontier, Time

BUILDING = Frontier(Time(0), Time(0))


def is_building(frontier: Frontier) -> bool:
    return frontier.upper == 0


def is_readable(frontier: Frontier, at: Time) -> bool:
    return frontier.since <= at < frontier.upper


def implied_since(upper: Time, window_ms: int) -> Time:
    """Where since would be without holds: a window behind upper, the last final time always inside it."""
    return Time(max(0, upper - max(1, window_ms)))


def unheld_since(frontier: Frontier, wanted: Time, window_ms: int) -> Time:
    """Where since would be without pins and holds: where it was advanced to, or what the window implies."""
    return Time(max(frontier.since, min(max(wanted, implied_since(frontier.upper, window_ms)), frontier.upper)))


def is_holdable(frontier: Frontier, history_from: Time | None, at: Time) -> bool:
    """Whether a time, now or to come, can be held."""
    if is_building(frontier):
        return history_from is not None and at >= history_from
    return at >= frontier.since


def held_since(frontier: Frontier, wanted: Time, holds: Iterable[Time]) -> Time:
    """Since after an attempt to bring it to `wanted`: not back, not past a hold, not past upper."""
    return Time(max(frontier.since, min(wanted, frontier.upper, *holds)))


def raised_upper(frontier: Frontier, to: Time) -> Frontier:
    """The frontier of a readable collection after an attempt to raise upper to `to`."""
    return Frontier(frontier.since, Time(max(frontier.upper, to)))


def first_frontier(upper: Time, *, history_from: Time | None, written: Time) -> Frontier:
    """The frontier with which a built collection becomes readable.

    `history_from` is where its builder said that its history starts; without it only the time just below
    upper can be read. Upper is above every time at which the collection was written.
    """
    upper = Time(max(upper, written + 1))
    start = upper - 1 if history_from is None else min(history_from, upper)
    return Frontier(Time(start), upper)
