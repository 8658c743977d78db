"""Jobs that are planned once and run many times, over a few rows that are different each time.

Most of a small job is planning: 30 queries over two records took 380 ms planned anew, about 140 ms planned once. The
physical plan is kept; what it needs is a leaf that is read when it runs. `reflect` is one: it calls
a static method per run, here the one that reads a system property of the JVM, where the rows wait as JSON. So this
is for executors inside the driver's JVM, which is what `local` masters have.

The views are temporary views, which Spark expands where they are named. A CTE that calls `reflect` would be computed
once behind an exchange, and an exchange keeps its rows for the next run of the plan: a plan that has one is refused.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha1
from threading import Lock

import pyarrow as pa
from pyspark.sql import SparkSession

from holdfast.runtime.spark.driver_task import DriverTask
from holdfast.runtime.spark.functions import UserFunctions
from holdfast.runtime.spark.handover import rows_json, rows_sql

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


class NotRepeatable(Exception):
    """The plan of a job would give the rows of its first run again."""


@dataclass(frozen=True, slots=True)
class _Planned:
    task: DriverTask | None
    properties: Mapping[str, str]


class PreparedJobs:
    """The jobs of one session. Runs one at a time: the rows of a job lie in a place of its own."""

    def __init__(
        self, session: SparkSession, naming: "Lock | None" = None, functions: UserFunctions | None = None
    ) -> None:
        """`naming` is held while views of the session have names; `functions` are those of users."""
        self._session = session
        self._naming = naming or Lock()
        self._functions = functions or UserFunctions()
        jvm = session.sparkContext._jvm
        assert jvm is not None
        self._system = jvm.java.lang.System
        self._local = str(session.sparkContext.master).startswith("local")
        self._jobs: OrderedDict[Job, _Planned] = OrderedDict()
        self._lock = Lock()

    def takes(self, inputs: Mapping[str, object]) -> bool:
        """Whether rows can be handed over so."""
        return self._local and bool(inputs) and all(_is_small(rows) for rows in inputs.values())

    def run(self, job: Job, inputs: Mapping[str, pa.Table]) -> pa.Table:
        with self._lock:
            planned = self._planned(job)
            if planned.task is None:
                raise NotRepeatable
            for view, name in planned.properties.items():
                self._system.setProperty(name, rows_json(inputs[view]))
            return planned.task.run()

    def _planned(self, job: Job) -> _Planned:
        planned = self._jobs.get(job)
        if planned is None:
            planned = self._jobs[job] = self._plan(job)
            if len(self._jobs) > KEPT:
                self._forget(self._jobs.popitem(last=False)[1])
        self._jobs.move_to_end(job)
        return planned

    def _plan(self, job: Job) -> _Planned:
        digest = sha1(repr(job).encode(), usedforsecurity=False).hexdigest()[:16]
        properties = {view: f"holdfast.rows.{digest}.{view}" for view in job.views}
        views = {view: rows_sql(schema, _property(properties[view])) for view, schema in job.schemas}
        views |= dict(job.derived)
        self._functions.register(self._session, [job.sql])
        with self._naming:
            try:
                for view, sql in views.items():
                    self._session.sql(sql).createOrReplaceTempView(view)
                frame = self._session.sql(job.sql).coalesce(1)
            finally:
                for view in views:
                    self._session.catalog.dropTempView(view)
        plan = frame._jdf.queryExecution().executedPlan().toString()
        if any(word in plan for word in ONCE):
            return _Planned(None, properties)
        return _Planned(DriverTask(self._session, frame), properties)

    def _forget(self, planned: _Planned) -> None:
        for name in planned.properties.values():
            self._system.clearProperty(name)


def _property(name: str) -> str:
    return f"reflect('java.lang.System', 'getProperty', '{name}')"


def _is_small(rows: object) -> bool:
    return isinstance(rows, pa.Table) and rows.num_rows <= MOST_ROWS and rows.nbytes <= MOST_BYTES
