"""Jobs that are planned once and run many times, over a few rows that are different each time.

Most of a small job is planning: 30 queries over two records took 380 ms planned anew, about 140 ms planned once. The
physical plan is kept; its leaves get other rows before each run. So this is for executors inside the driver's JVM,
which is what `local` masters have.

What several branches read is computed once a run. The other views are temporary views, which Spark expands where they
are named. An exchange keeps its rows for the next run of the plan: a plan that has one is refused.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from holdfast.runtime.spark.driver_task import DriverTask, DriverTasks
from holdfast.runtime.spark.functions import UserFunctions

MOST_ROWS, MOST_BYTES = 1_000, 4_000_000
"""More than this in a view is worth planning for."""
ONCE = ("Exchange", "InMemory", "Subquery", "EvalPython")
"""Operators that keep their rows for the next run of the plan, or that need a job of their own."""
KEPT = 64
"""Jobs that are kept; the one that ran longest ago goes first."""


@dataclass(frozen=True, slots=True)
class Job:
    """A SELECT over views of rows, `schemas`, and over the SELECTs that are derived from them."""

    sql: str
    derived: tuple[tuple[str, str], ...]
    schemas: tuple[tuple[str, pa.Schema], ...]

    @property
    def views(self) -> tuple[str, ...]:
        return tuple(view for view, _ in self.schemas)

    def uses(self, view: str) -> int:
        """How often a view is named."""
        texts = (self.sql, *(sql for _, sql in self.derived))
        return sum(len(re.findall(rf"\b{re.escape(view)}\b", text)) for text in texts)


class NotRepeatable(Exception):
    """The plan of a job would give the rows of its first run again."""


class PreparedJobs:
    """The jobs of one session. Runs one at a time: the rows of a job lie in a place of its own."""

    def __init__(
        self, session: SparkSession, naming: "Lock | None" = None, functions: UserFunctions | None = None
    ) -> None:
        """`naming` is held while views of the session have names; `functions` are those of users."""
        self._session = session
        self._naming = naming or Lock()
        self._functions = functions or UserFunctions()
        self._local = str(session.sparkContext.master).startswith("local")
        self._tasks = DriverTasks(session)
        self._jobs: OrderedDict[Job, DriverTask | None] = OrderedDict()
        self._lock = Lock()

    def takes(self, inputs: Mapping[str, object]) -> bool:
        """Whether rows can be handed over so."""
        return self._local and bool(inputs) and all(_is_small(rows) for rows in inputs.values())

    def run(self, job: Job, inputs: Mapping[str, pa.Table]) -> pa.Table:
        with self._lock:
            task = self._planned(job)
            if task is None:
                raise NotRepeatable
            return task.run([inputs[view] for view in job.views])

    def _planned(self, job: Job) -> DriverTask | None:
        if job not in self._jobs:
            self._jobs[job] = self._plan(job)
            if len(self._jobs) > KEPT:
                self._jobs.popitem(last=False)
        self._jobs.move_to_end(job)
        return self._jobs[job]

    def _plan(self, job: Job) -> DriverTask | None:
        task = self._tasks.task()
        self._functions.register(self._session, [job.sql])
        with self._naming:
            try:
                for view, schema in job.schemas:
                    task.input(schema).createOrReplaceTempView(view)
                for view, sql in job.derived:
                    frame = self._session.sql(sql)
                    if job.uses(view) > 1:
                        if not _is_repeatable(frame):
                            return None
                        frame = task.keep(frame)
                    frame.createOrReplaceTempView(view)
                frame = self._session.sql(job.sql).coalesce(1)
            finally:
                for view in (*job.views, *(view for view, _ in job.derived)):
                    self._session.catalog.dropTempView(view)
        if not _is_repeatable(frame):
            return None
        task.result(frame)
        return task


def _is_repeatable(frame: DataFrame) -> bool:
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return not any(word in plan for word in ONCE)


def _is_small(rows: object) -> bool:
    return isinstance(rows, pa.Table) and rows.num_rows <= MOST_ROWS and rows.nbytes <= MOST_BYTES
