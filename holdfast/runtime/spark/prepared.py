"""Jobs that are planned once and run many times, each time over a few different rows.

Most of a small job is planning: 30 queries over two records took 380 ms when planned every time, and about 140 ms when
planned once. The physical plan is cached, and its leaves get different rows before each run. It runs on the driver,
also where Spark is a cluster.

A view that several branches read is computed once per run. The others are temporary views, which Spark inlines. A plan
with an exchange is refused: an exchange would return the rows of the first run again.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from threading import Lock

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from holdfast.runtime.spark.deadlines import JobDeadlines
from holdfast.runtime.spark.driver_task import DriverTask, DriverTasks
from holdfast.runtime.spark.functions import UserFunctions

MAX_ROWS, MAX_BYTES = 1_000, 4_000_000
"""A job over a larger view is worth a plan of its own."""
NOT_REPEATABLE = ("Exchange", "InMemory", "Subquery", "EvalPython")
"""Operators that return the rows of the first run again, or that need a Spark job."""
CACHED_JOBS = 64
"""Planned jobs that are cached; the least recently used one is dropped first."""


@dataclass(frozen=True, slots=True)
class Job:
    """A SELECT over input views, `schemas`, and over views derived from them by SELECTs."""

    sql: str
    derived: tuple[tuple[str, str], ...]
    schemas: tuple[tuple[str, pa.Schema], ...]

    @property
    def views(self) -> tuple[str, ...]:
        return tuple(view for view, _ in self.schemas)

    def uses(self, view: str) -> int:
        """The number of references to a view."""
        texts = (self.sql, *(sql for _, sql in self.derived))
        return sum(len(re.findall(rf"\b{re.escape(view)}\b", text)) for text in texts)


class NotRepeatable(Exception):
    """The plan of a job would return the rows of its first run again."""


class PreparedJobs:
    """The prepared jobs of one session. Runs one job at a time, because a plan holds its input rows."""

    def __init__(
        self,
        session: SparkSession,
        view_lock: "Lock | None" = None,
        functions: UserFunctions | None = None,
        deadlines: JobDeadlines | None = None,
    ) -> None:
        """`view_lock` is held while the session has temporary views. Without `deadlines`, jobs have no time limit."""
        self._session, self._deadlines = session, deadlines
        self._view_lock = view_lock or Lock()
        self._functions = functions or UserFunctions()
        self._tasks = DriverTasks(session)
        self._jobs: OrderedDict[Job, DriverTask | None] = OrderedDict()
        self._running: DriverTask | None = None
        self._lock = Lock()

    def accepts(self, inputs: Mapping[str, object]) -> bool:
        """Whether a prepared job can run over these inputs."""
        return bool(inputs) and all(_is_small(rows) for rows in inputs.values())

    def run(self, job: Job, inputs: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of a job; `JobTimeout` when it takes too long."""
        with self._lock, nullcontext() if self._deadlines is None else self._deadlines.over(self._cancel):
            task = self._planned(job)
            if task is None:
                raise NotRepeatable
            self._running = task
            try:
                return task.run([inputs[view] for view in job.views])
            finally:
                self._running = None

    def runs_in(self, session: SparkSession) -> bool:
        """Whether the jobs are those of a session."""
        return self._session is session

    def _cancel(self) -> None:
        if (running := self._running) is not None:
            running.cancel()

    def _planned(self, job: Job) -> DriverTask | None:
        if job not in self._jobs:
            self._jobs[job] = self._plan(job)
            if len(self._jobs) > CACHED_JOBS:
                self._jobs.popitem(last=False)
        self._jobs.move_to_end(job)
        return self._jobs[job]

    def _plan(self, job: Job) -> DriverTask | None:
        task = self._tasks.task()
        self._functions.register(self._session, [job.sql])
        with self._view_lock:
            try:
                for view, schema in job.schemas:
                    task.input(schema).createOrReplaceTempView(view)
                for view, sql in job.derived:
                    frame = self._session.sql(sql)
                    if job.uses(view) > 1:
                        shared = _repeatable(task, frame)
                        if shared is None:
                            return None
                        frame = task.share(shared)
                    frame.createOrReplaceTempView(view)
                result = _repeatable(task, self._session.sql(job.sql).coalesce(1))
            finally:
                for view in (*job.views, *(view for view, _ in job.derived)):
                    self._session.catalog.dropTempView(view)
        if result is None:
            return None
        task.result(result)
        return task


def _repeatable(task: DriverTask, frame: DataFrame) -> DataFrame | None:
    """The frame, changed if that removes its exchanges; None if its plan is not repeatable.

    Not changed without need: planning takes longer with each union that is put into one partition.
    """
    if _is_repeatable(frame):
        return frame
    changed = task.in_one_partition(frame)
    return changed if _is_repeatable(changed) else None


def _is_repeatable(frame: DataFrame) -> bool:
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return not any(operator in plan for operator in NOT_REPEATABLE)


def _is_small(rows: object) -> bool:
    return isinstance(rows, pa.Table) and rows.num_rows <= MAX_ROWS and rows.nbytes <= MAX_BYTES
