"""What a tick did beside what it staged: what failed, and what it could not read, place or compute."""

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.names import ObjectName, QueryId, TopicName
from holdfast.runtime.spark.fragment import Fragment
from holdfast.runtime.spark.functions import FunctionProblem
from holdfast.runtime.spark.skipping import Skip


@dataclass(frozen=True, slots=True)
class Undecodable:
    """Records of a topic that could not be decoded: `part, off, ts, key, value, reason` of the first, and how many."""

    topic: TopicName
    object: ObjectName
    records: pa.Table
    total: int


@dataclass(frozen=True, slots=True)
class Late:
    """How many records came too late for their windows, or to be kept for a join, and the stream time by then."""

    total: int
    stream_time: int


@dataclass
class Outcome:
    """`late` is by object and, where it is known, partition; `skipped` are rows of a query by object and reason."""

    failed: dict[QueryId, str] = field(default_factory=dict)
    undecodable: list[Undecodable] = field(default_factory=list)
    problems: list[FunctionProblem] = field(default_factory=list)
    touched: set[QueryId] = field(default_factory=set)
    late: dict[tuple[ObjectName, int | None], Late] = field(default_factory=dict)
    skipped: dict[tuple[ObjectName, Skip], int] = field(default_factory=dict)

    def count_skipped(self, name: ObjectName, fragment: Fragment, rows: pa.Table) -> None:
        """Count the rows of a fragment that have a reason to be skipped."""
        for skip in Skip if fragment.tells else ():
            found = rows.filter(pc.equal(rows.column("bad"), skip.value))
            total = pc.sum(found.column("skipped")).as_py() if "skipped" in found.column_names else found.num_rows
            if total:
                self.skipped[name, skip] = self.skipped.get((name, skip), 0) + total

    def count_late(self, name: ObjectName, fragment: Fragment, rows: pa.Table) -> None:
        """Count the rows of a fragment that came late."""
        if not pc.sum(rows.column("late")).as_py():
            return
        part, time = fragment.late_by
        found = rows.filter(pc.greater(rows.column("late"), 0))
        parts = pa.nulls(found.num_rows, pa.int32()) if part is None else found.column(part)
        counts = pa.table({"part": parts, "late": found.column("late"), "time": found.column(time)})
        for row in counts.group_by("part").aggregate([("late", "sum"), ("time", "max")]).to_pylist():
            known = self.late.get((name, row["part"]), Late(0, row["time_max"]))
            stream_time = max(known.stream_time, row["time_max"])
            self.late[name, row["part"]] = Late(known.total + row["late_sum"], stream_time)
