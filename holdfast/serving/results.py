"""What reads give: columns, and rows as Arrow, with the time they are of."""

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from holdfast.runtime.store.port import Time
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
    """Rows that became true, and keys that ceased to be, up to a time: everything before it has been sent.

    `rows` has the columns by position (`r0`, …) and, last, `tombstone` BOOLEAN. In a tombstone only the columns that
    are made of key columns have values.
    """

    rows: pa.Table
    time: Time


class Push(Protocol):
    """A push query. For one reader; `close` may come from any thread."""

    @property
    def id(self) -> str: ...

    @property
    def columns(self) -> tuple[ResultColumn, ...]: ...

    def next(self, timeout: float) -> PushBatch | None:
        """The next rows, or None when there were none within `timeout` seconds.

        Raises `StopIteration` when LIMIT is reached or the query was closed, and the error that ended it otherwise.
        """

    def close(self) -> None: ...
