"""What a tick reports besides what it staged: failed queries, and records that it could not decode or had to skip."""

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.names import ObjectName, QueryId, TopicName
from holdfast.runtime import physical_columns as col
from holdfast.runtime.fragment import Fragment
from holdfast.runtime.spark.functions import FunctionProblem
from holdfast.runtime.spark.skips import Skip


@dataclass(frozen=True, slots=True)
class Undecodable:
    """Undecodable records of a topic: `part, off, ts, key, value, reason` of the first ones, and the total number."""

    topic: TopicName
    object: ObjectName
    records: pa.Table
    total: int


@dataclass(frozen=True, slots=True)
class Late:
    """The number of records too late for their windows or their join, and the stream time when they arrived."""

    total: int
    stream_time: int


@dataclass
class Outcome:
    """`late` is by object and, if known, partition; `skipped` counts rows by object and reason."""

    failed: dict[QueryId, str] = field(default_factory=dict)
    undecodable: list[Undecodable] = field(default_factory=list)
    problems: list[FunctionProblem] = field(default_factory=list)
    touched: set[QueryId] = field(default_factory=set)
    late: dict[tuple[ObjectName, int | None], Late] = field(default_factory=dict)
    skipped: dict[tuple[ObjectName, Skip], int] = field(default_factory=dict)

    def count_skipped(self, name: ObjectName, fragment: Fragment, rows: pa.Table) -> None:
        """Count the rows that a fragment skips, by reason."""
        for skip in Skip if fragment.reports_skips else ():
            found = rows.filter(pc.equal(rows.column(col.BAD), skip.value))
            total = pc.sum(found.column(col.SKIPPED)).as_py() if col.SKIPPED in found.column_names else found.num_rows
            if total:
                self.skipped[name, skip] = self.skipped.get((name, skip), 0) + total

    def count_late(self, name: ObjectName, fragment: Fragment, rows: pa.Table) -> None:
        """Count the late rows of a fragment."""
        if not pc.sum(rows.column(col.LATE)).as_py():
            return
        part, time = fragment.late_by
        found = rows.filter(pc.greater(rows.column(col.LATE), 0))
        parts = pa.nulls(found.num_rows, pa.int32()) if part is None else found.column(part)
        counts = pa.table({"partition": parts, "late": found.column(col.LATE), "time": found.column(time)})
        for row in counts.group_by("partition").aggregate([("late", "sum"), ("time", "max")]).to_pylist():
            previous = self.late.get((name, row["partition"]), Late(0, row["time_max"]))
            stream_time = max(previous.stream_time, row["time_max"])
            self.late[name, row["partition"]] = Late(previous.total + row["late_sum"], stream_time)
