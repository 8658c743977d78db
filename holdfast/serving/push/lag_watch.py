"""Metrics of the open push queries; ends those that fall too far behind, or whose objects were dropped."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta

from holdfast.errors import ObjectDropped, SubscriptionLagged
from holdfast.names import ObjectName
from holdfast.runtime.store.port import Time
from holdfast.serving.push.query import PushQuery
from holdfast.worker import Worker

CHECK_SECONDS = 1.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SubscriptionInfo:
    """An open push query. It keeps history from `pinned_at` on, and is `lag_ms` behind what it could read."""

    id: str
    reads: tuple[ObjectName, ...]
    created_ms: int
    pinned_at: Time | None
    lag_ms: int
    rows: int
    bytes: int
    buffered_bytes: int
    peak_buffered_bytes: int


def subscription_infos(pushes: Iterable[PushQuery], now: Time) -> list[SubscriptionInfo]:
    return [
        SubscriptionInfo(
            push.id,
            push.objects.names,
            push.meter.started_ms,
            push.pinned_at,
            push.lag_ms(now),
            push.meter.rows,
            push.meter.bytes,
            push.meter.buffered,
            push.meter.peak_buffered,
        )
        for push in pushes
    ]


def _lag_error(push: PushQuery, now: Time, max_lag: timedelta) -> SubscriptionLagged:
    """The error sent to the client. In the middle of a snapshot there is no time to resume from."""
    time = push.time
    detail = f"It has read up to {push.pinned_at}, and the latest time is {now}; history is no longer retained for it."
    if time is None:
        hint = "Start again, with a snapshot."
    else:
        hint = (
            f"Resume with SUBSCRIBE … WITH (SNAPSHOT = false) AS OF {time}, while that time is readable; "
            "otherwise start again, with a snapshot."
        )
    return SubscriptionLagged(f"the subscription fell more than {max_lag} behind", detail=detail, hint=hint)


def _dropped(push: PushQuery) -> ObjectDropped | None:
    try:
        push.objects.check()
    except ObjectDropped as error:
        return error
    return None


class LagWatch:
    """Ends push queries that are more than `max_lag` behind, and those whose objects were dropped.

    A client that does not read would pin the history of another object of the same name.
    """

    def __init__(self, pushes: Callable[[], Iterable[PushQuery]], now: Callable[[], Time], max_lag: timedelta) -> None:
        self._pushes, self._now, self._max_lag = pushes, now, max_lag
        self._worker = Worker("lag-watch", self.check, interval=CHECK_SECONDS)

    @property
    def problem(self) -> str | None:
        """Why the last check failed."""
        return self._worker.problem

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def check(self) -> None:
        now, max_lag_ms = self._now(), self._max_lag // timedelta(milliseconds=1)
        for push in self._pushes():
            lag_ms = push.lag_ms(now)
            if lag_ms > max_lag_ms:
                error = _lag_error(push, now, self._max_lag)
                log.warning("push query ended, too far behind: id=%s lag_ms=%d", push.id, lag_ms)
                push.fail(error)
            elif (gone := _dropped(push)) is not None:
                push.fail(gone)
