"""Results of pull and push queries: columns, rows as Arrow, and their time."""

from collections.abc import Hashable
from dataclasses import dataclass, field

import pyarrow as pa

from holdfast.runtime.store.port import Time
from holdfast.types import SqlType


@dataclass(frozen=True, slots=True)
class ResultColumn:
    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class Notice:
    """Why a push query receives nothing more for now, or that it is `current` again."""

    message: str
    current: bool


@dataclass(frozen=True, slots=True)
class PullResult:
    """The rows of a table as of a time. `rows` has the columns by position: `r0`, `r1`, …"""

    columns: tuple[ResultColumn, ...]
    rows: pa.Table
    time: Time
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class PushBatch:
    """New and changed rows, and tombstones of deleted keys.

    `rows` has the columns by position (`r0`, …) and, last, `tombstone` BOOLEAN. In a tombstone only columns that are
    computed from key columns have values. `time` is the time up to which the reader has everything after this batch;
    None while more rows of the same time follow. `snapshot` is the time of the snapshot that this batch completes.
    Readers at the same position share a batch and its encoded forms.
    """

    rows: pa.Table
    time: Time | None
    snapshot: Time | None = None
    encoded: dict[Hashable, bytes] = field(default_factory=dict, compare=False, repr=False)
    shared: bool = False
