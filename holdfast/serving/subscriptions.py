"""The open push queries and their figures, and the end of those that fell too far behind."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from threading import Event, Thread
from typing import Protocol

from holdfast.errors import SubscriptionLagged
from holdfast.names import ObjectName
from holdfast.runtime.store.port import Time
from holdfast.serving.meter import Meter

LOOK_SECONDS = 1.0

log = logging.getLogger(__name__)


class Follows(Protocol):
    """What is known of an open push query."""

    @property
    def id(self) -> str: ...

    @property
    def reads(self) -> tuple[ObjectName, ...]: ...

    @property
    def time(self) -> Time | None: ...

    @property
    def held(self) -> Time | None:
        """The time from which on it keeps history readable; None when it keeps none."""

    @property
    def meter(self) -> Meter: ...

    def fail(self, error: SubscriptionLagged) -> None: ...


@dataclass(frozen=True, slots=True)
class Subscription:
    """An open push query. `held` is the time from which on it keeps history, `lag_ms` how far that is behind."""

    id: str
    reads: tuple[ObjectName, ...]
    created_ms: int
    held: Time | None
    lag_ms: int
    rows: int
    bytes: int
    buffered_bytes: int
    peak_buffered_bytes: int


def listed(pushes: Iterable[Follows], now: Time) -> list[Subscription]:
    return [
        Subscription(
            push.id,
            push.reads,
            push.meter.started_ms,
            held := push.held,
            max(0, now - held) if held is not None else 0,
            push.meter.rows,
            push.meter.bytes,
            push.meter.buffered,
            push.meter.peak_buffered,
        )
        for push in pushes
    ]


def lagged(push: Follows, now: Time, most: timedelta) -> SubscriptionLagged:
    """What its client is told. Where it was in the middle of a snapshot, there is no time to go on from."""
    known = push.time
    detail = f"The present is {now}, and it has read up to {push.held}; history is kept for it no longer."
    if known is None:
        hint = "Begin again, with a snapshot."
    else:
        hint = (
            f"Go on with SUBSCRIBE … WITH (SNAPSHOT = false) AS OF {known}, while that time is readable; "
            "else begin again, with a snapshot."
        )
    return SubscriptionLagged(f"the subscription fell more than {most} behind", detail=detail, hint=hint)


class LagWatch:
    """Ends push queries that keep history back for longer than is allowed."""

    def __init__(self, pushes: Callable[[], Iterable[Follows]], now: Callable[[], Time], most: timedelta) -> None:
        self._pushes, self._now, self._most = pushes, now, most
        self._stop = Event()
        self._thread = Thread(target=self._run, name="lag-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> None:
        now, most = self._now(), self._most // timedelta(milliseconds=1)
        for push in self._pushes():
            held = push.held
            if held is not None and now - held > most:
                error = lagged(push, now, self._most)
                log.warning("push query %s: %s", push.id, error.message)
                push.fail(error)

    def _run(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            self.look()
