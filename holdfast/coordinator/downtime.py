"""How long the server was down: time in which no client could advance its hold."""

import json
from datetime import timedelta

from holdfast.runtime.store.port import Store
from holdfast.wall_clock import WallClock

KEY = "downtime"


class Downtime:
    """Forgives the time before a start until clients had a moment to connect again: the grace.

    A server that ends during the grace of one start forgives the same time after the next.
    """

    def __init__(self, store: Store, clock: WallClock, grace: timedelta) -> None:
        self._store, self._clock = store, clock
        self._grace_ends = clock.monotonic() + grace.total_seconds()
        text, now, last = store.get(KEY), clock.now_ms(), store.last_time()
        stored = json.loads(text) if text is not None else {"forgiven_ms": 0, "until": 0}
        # A start that has failed has counted the time before it, and committed nothing.
        counted = max(last, int(stored["until"]))
        self._forgiven_ms = int(stored["forgiven_ms"]) + (max(0, now - counted) if last else 0)
        if self._forgiven_ms and grace:
            store.put(KEY, json.dumps({"forgiven_ms": self._forgiven_ms, "until": now}))

    def forgiven_ms(self) -> int:
        """How much of a hold's lag does not count now."""
        if self._forgiven_ms and self._clock.monotonic() >= self._grace_ends:
            self._store.put(KEY, None)
            self._forgiven_ms = 0
        return self._forgiven_ms
