"""What all push queries have in common: an id, LIMIT, waiting, closing, and what is known of their clients."""

import re
import time as clock
from abc import ABC, abstractmethod
from collections.abc import Sequence
from threading import Event
from uuid import uuid4

from holdfast.errors import HoldfastError
from holdfast.names import ObjectName
from holdfast.runtime.store.port import Time
from holdfast.serving.meter import Meter
from holdfast.serving.results import PushBatch, ResultColumn
from holdfast.serving.rows import Chosen
from holdfast.serving.wakeup import Wakeup


class Pushing(ABC):
    """A query that goes on. For one reader; `ready`, `fail` and `close` may come from any thread."""

    def __init__(
        self, reads: Sequence[ObjectName], columns: Sequence[ResultColumn], wakeup: Wakeup, *, limit: int | None = None
    ) -> None:
        self._columns = tuple(columns)
        self._wakeup = wakeup
        self._left = limit
        self._closed = Event()
        self._failure: HoldfastError | None = None
        self._time: Time | None = None
        self.reads = tuple(reads)
        self.meter = Meter()
        name = re.sub(r"\W", "_", reads[0], flags=re.ASCII)
        self._id = f"PUSH_{name}_{uuid4().hex[:12]}".upper()

    @property
    def id(self) -> str:
        return self._id

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        return self._columns

    @property
    def time(self) -> Time | None:
        return self._time

    @property
    def held(self) -> Time | None:
        """The time from which on it keeps history readable; None when it keeps none."""
        return None

    def ready(self) -> bool:
        try:
            return self._closed.is_set() or self._left == 0 or self._pending()
        except HoldfastError:
            return True

    def next(self, timeout: float) -> PushBatch | None:
        deadline = clock.monotonic() + timeout
        while not self._closed.is_set() and self._left != 0 and not self._ended():
            seen = self._wakeup.count
            try:
                batch = self._read()
            except HoldfastError:
                if self._closed.is_set():  # whoever closed it has let go of what was being read
                    break
                raise
            if batch is not None:
                if batch.rows.num_rows or batch.snapshot is not None:
                    return self._limited(batch)
                continue
            left = deadline - clock.monotonic()
            if left <= 0:
                return None
            self._wakeup.wait(seen, min(left, 1.0))
        self.close()
        if self._failure is not None:
            raise self._failure
        raise StopIteration

    def fail(self, error: HoldfastError) -> None:
        """End it with an error, which its reader is told when it asks for more."""
        self._failure = error
        self.close()

    def close(self) -> None:
        self._closed.set()
        self._wakeup.ring()

    @abstractmethod
    def _pending(self) -> bool:
        """Whether there is something to read, as far as memory knows."""

    @abstractmethod
    def _read(self) -> PushBatch | None:
        """What has come since the last time, None when nothing has; sets `_time`."""

    def _ended(self) -> bool:
        """Whether nothing more can come."""
        return False

    def _batch(self, chosen: Chosen) -> PushBatch:
        return PushBatch(chosen.rows, self._time, encoded=chosen.encoded, shared=True)

    def _limited(self, batch: PushBatch) -> PushBatch:
        if self._left is None:
            return batch
        if batch.rows.num_rows > self._left:
            batch = PushBatch(batch.rows.slice(0, self._left), None)
        self._left -= batch.rows.num_rows
        return batch
