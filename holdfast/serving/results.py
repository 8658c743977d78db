"""What reads give: columns, and rows as Arrow, with the time they are of."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from holdfast.runtime.store.port import Time
from holdfast.serving.meter import Meter
from holdfast.types import SqlType


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result."""

    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class PullResult:
    """The rows of a table as of a time. `rows` has the columns by position: `r0`, `r1`, …"""

    columns: tuple[ResultColumn, ...]
    rows: pa.Table
    time: Time
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class PushBatch:
    """Rows that became true, and keys that ceased to be.

    `rows` has the columns by position (`r0`, …) and, last, `tombstone` BOOLEAN. In a tombstone only the columns that
    are made of key columns have values. `time` is the time up to which, with these rows, everything was given; None
    while more of the same time is to come. `snapshot` is the time of a snapshot that was given whole with these rows.
    Readers at the same place share a batch, and what was made of it.
    """

    rows: pa.Table
    time: Time | None
    snapshot: Time | None = None
    encoded: dict[Hashable, bytes] = field(default_factory=dict, compare=False, repr=False)
    shared: bool = False


class Push(Protocol):
    """A push query. For one reader; `ready` and `close` may come from any thread."""

    @property
    def id(self) -> str: ...

    @property
    def columns(self) -> tuple[ResultColumn, ...]: ...

    @property
    def meter(self) -> Meter:
        """What it has cost and sent; who sends its rows counts."""

    @property
    def time(self) -> Time | None:
        """The time up to which everything was given, as of the last `next`; None while it is in the middle of one."""

    def ready(self) -> bool:
        """Whether `next` may have something to give or to raise at once. Never waits, and asks no disk."""

    def next(self, timeout: float) -> PushBatch | None:
        """The next rows, or None when there were none within `timeout` seconds.

        Raises `StopIteration` when LIMIT is reached or the query was closed, and the error that ended it otherwise.
        """

    def close(self) -> None: ...
