"""Runs fragments on Spark: inputs become views, and all fragments of a round one job."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from threading import Lock
from typing import TypeAlias

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from holdfast.errors import JobTimeout, KafkaError, SparkRestarted
from holdfast.metrics import SPARK_SECONDS
from holdfast.names import TopicName
from holdfast.runtime import physical_columns as col
from holdfast.runtime.expressions.physical import arrow_type, spark_type
from holdfast.runtime.fragment import Fragment, union
from holdfast.runtime.spark.deadlines import JobDeadlines, tasks_end
from holdfast.runtime.spark.functions import NAMED, FunctionProblem, UserFunctions
from holdfast.runtime.spark.prepared import Job, NotRepeatable, PreparedJobs
from holdfast.runtime.spark.session import EXIT_SECONDS, Sessions, has_exited
from holdfast.types import HEADERS

PREPARED = SPARK_SECONDS.labels("prepared")
RECORDS = pa.schema(
    [
        (col.PARTITION, pa.int32()),
        (col.OFFSET, pa.int64()),
        (col.ROW_TIME, pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        (col.HEADERS, arrow_type(HEADERS)),
    ]
)
"""The columns of raw records, however they were read."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets `start` to `end`, exclusive, of one partition."""

    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TopicRange:
    """A range of a topic that Spark reads itself; `headers` says whether the headers of records are needed."""

    topic: TopicName
    ranges: tuple[OffsetRange, ...]
    headers: bool = True


LOCAL_ROWS = 10_000
"""With more input rows than this, generated code is worth compiling."""

FETCH = {
    # Without it, a read at the end of a topic takes half a second.
    "kafka.fetch.max.wait.ms": "5",
    # With Kafka's defaults, reading a million short records takes twice as long.
    "kafka.max.poll.records": "5000",
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.receive.buffer.bytes": str(2 << 20),
}
SLOW_FETCH = re.compile(r"java\.util\.concurrent\.TimeoutException: Cannot fetch record .* in \d+ milliseconds")
"""Spark's own error when a broker takes longer than its poll timeout."""
TRANSIENT_ERRORS = ("TimeoutException", "DisconnectException", "NetworkException", "CoordinatorNotAvailableException")

QUERY_TIMEOUT = timedelta(minutes=10)
"""The longest that one job may take, unless another limit is set."""
JOB_ERRORS = (PySparkException, Py4JError, OSError, EOFError, pa.ArrowException)
"""What a failed job raises; the latter ones if Spark's process ends while its rows are read."""

ViewInput: TypeAlias = pa.Table | TopicRange


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a fragment failed."""

    reason: str


ENDS_SPARK = Failure(
    "Spark's process ended several times in a row while it ran this query, at last alone and with less to read. The "
    "usual cause is a lack of memory: change the query with CREATE OR REPLACE, or give Spark more memory "
    "(-s spark.driver.memory=4g). Then PAUSE and RESUME the query."
)


def took_too_long(error: JobTimeout) -> Failure:
    """Of a query whose job alone took longer than the limit."""
    return Failure(f"{error}. {error.hint} Then PAUSE and RESUME the query.")


@dataclass
class Round:
    """The views that one job can read.

    `derived` are SELECTs over other views, by view name. Those in `shared` are computed once and cached for the round.
    """

    inputs: Mapping[str, ViewInput]
    derived: Mapping[str, str]
    shared: frozenset[str] = frozenset()
    _cached: list[DataFrame] = field(default_factory=list)


class Engine:
    """Runs all Spark jobs of its sessions. `run` is for one thread at a time, `select` for any number.

    A job that takes longer than `timeout` is cancelled. If its tasks do not end, Spark's process is replaced.
    """

    def __init__(
        self, sessions: Sessions, kafka_options: Mapping[str, str], timeout: timedelta = QUERY_TIMEOUT
    ) -> None:
        self.sessions = sessions
        self._kafka_options = dict(kafka_options)
        self._deadlines = JobDeadlines(timeout, sessions.kill)
        self._groups = count()
        self._view_lock = Lock()
        self._attach()

    def _attach(self) -> None:
        """Start without what was prepared and registered in a JVM that has ended."""
        self._process = self.sessions.process
        self._functions = UserFunctions()
        self._prepared = PreparedJobs(self.sessions.small, self._view_lock, self._functions, self._deadlines)

    def run(self, fragments: Sequence[Fragment], inputs: Round) -> list[pa.Table | Failure]:
        """The rows of each fragment. If the job fails, each fragment runs alone, so that only the faulty one fails.

        `SparkRestarted` if Spark's process ends: any of the fragments may be the cause, or something else.
        """
        self._follow_restart()
        self.sessions.warming.end()
        if self.prepares(inputs) and len(groups := _by_user_functions(fragments)) > 1:
            # A job with user functions cannot be prepared; the other fragments still can.
            found = [(index, rows) for group in groups for index, rows in self._run_some(fragments, group, inputs)]
            return [rows for _, rows in sorted(found, key=lambda each: each[0])]
        try:
            return self._run_all(fragments, inputs)
        except JobTimeout as error:
            if len(fragments) == 1:
                return [took_too_long(error)]
        except JOB_ERRORS as error:
            self._raise_if_ended(error)
            raise
        return [self.run([fragment], inputs)[0] for fragment in fragments]

    def run_isolated(self, fragments: Sequence[Fragment], inputs: Round) -> list[pa.Table | Failure]:
        """The rows of each fragment, each from a job of its own. One during which Spark's process ends fails."""
        found: list[pa.Table | Failure] = []
        for fragment in fragments:
            try:
                found += self.run([fragment], inputs)
            except SparkRestarted as error:
                if error.beside_read:
                    raise
                found.append(ENDS_SPARK)
        return found

    def _run_all(self, fragments: Sequence[Fragment], inputs: Round) -> list[pa.Table | Failure]:
        prepared = self._run_prepared(fragments, inputs)
        if prepared is not None:
            return list(prepared)
        session = self._session(inputs)
        with self._timed(session):
            try:
                with self._cancellable(session):
                    prefix = self._open(session, inputs)
                try:
                    return list(self._run_together(session, prefix, fragments))
                except JOB_ERRORS as error:
                    self._raise_if_transient(error)
                    return [self._run_alone(session, prefix, fragment) for fragment in fragments]
            finally:
                self._close(session, inputs)

    def _follow_restart(self) -> None:
        """Use the sessions of the JVM that runs now; starts one if it was ended."""
        self.sessions.restart()
        if not self._prepared.runs_in(self.sessions.small):
            self._attach()

    @contextmanager
    def _cancellable(self, session: SparkSession) -> Iterator[None]:
        """Cancel the jobs of the block when they take too long; `JobTimeout` if so."""
        context, group = session.sparkContext, f"holdfast-{next(self._groups)}"
        try:
            with self._deadlines.over(lambda: context.cancelJobGroup(group)):
                context.setJobGroup(group, "", interruptOnCancel=True)
                yield
        except JobTimeout:
            with suppress(PySparkException, Py4JError, OSError):
                if not tasks_end(context, group):
                    self._deadlines.kill()
            raise

    def _run_some(
        self, fragments: Sequence[Fragment], indexes: Sequence[int], inputs: Round
    ) -> "zip[tuple[int, pa.Table | Failure]]":
        return zip(indexes, self.run([fragments[index] for index in indexes], inputs), strict=True)

    def function_problems(self) -> list[FunctionProblem]:
        """The rows for which user functions failed since the last call."""
        return self._functions.problems()

    def select(self, sql: str, inputs: Round) -> pa.Table:
        """The rows of one SELECT over the views."""
        self._follow_restart()
        try:
            return self._select(sql, inputs)
        except JOB_ERRORS as error:
            self._raise_if_ended(error)
            raise

    def read(self, sql: str, inputs: Round) -> pa.Table:
        """The same for a statement of a client; `ReadError` for a while after such reads have ended Spark's process."""
        self._follow_restart()
        with self.sessions.reads.one(self._process, lambda process: has_exited(process, EXIT_SECONDS)):
            return self.select(sql, inputs)

    def _select(self, sql: str, inputs: Round) -> pa.Table:
        if self.prepares(inputs):
            with suppress(NotRepeatable), PREPARED.time():
                return self._prepared.run(_job(sql, inputs), inputs.inputs)
        session = self._session(inputs)
        # The views are needed until the statement is analysed; the running job does not use their names.
        with self._view_lock:
            try:
                self._functions.register(session, [sql])
                frame = session.sql(self._open(session, inputs) + sql)
            finally:
                self._close(session, inputs)
        with self._timed(session), self._cancellable(session):
            return frame.toArrow()

    def _timed(self, session: SparkSession) -> AbstractContextManager[object]:
        return SPARK_SECONDS.labels("small" if session is self.sessions.small else "large").time()

    def prepares(self, inputs: Round) -> bool:
        """Whether a round with these inputs can run as a prepared job."""
        return not inputs.shared and self._prepared.accepts(inputs.inputs)

    def _run_prepared(self, fragments: Sequence[Fragment], inputs: Round) -> list[pa.Table] | None:
        """The rows from a prepared job; None if there cannot be one, or if it failed."""
        if not self.prepares(inputs):
            return None
        combined = union(fragments)
        try:
            with PREPARED.time():
                return combined.split(self._prepared.run(_job(combined.sql, inputs), inputs.inputs))
        except NotRepeatable:
            return None
        except JOB_ERRORS as error:
            self._raise_if_ended(error)
            return None

    def _session(self, inputs: Round) -> SparkSession:
        large = any(isinstance(source, TopicRange) for source in inputs.inputs.values())
        large = large or sum(t.num_rows for t in inputs.inputs.values() if isinstance(t, pa.Table)) > LOCAL_ROWS
        return self.sessions.large if large else self.sessions.small

    def _run_together(self, session: SparkSession, prefix: str, fragments: Sequence[Fragment]) -> list[pa.Table]:
        combined = union(fragments)
        with self._cancellable(session):
            self._functions.register(session, [combined.sql])
            rows = session.sql(prefix + combined.sql).toArrow()
        return combined.split(rows)

    def _run_alone(self, session: SparkSession, prefix: str, fragment: Fragment) -> pa.Table | Failure:
        try:
            return self._run_together(session, prefix, [fragment])[0]
        except JOB_ERRORS as error:
            self._raise_if_transient(error)
            return Failure(_reason(error))

    def _raise_if_transient(self, error: Exception) -> None:
        """Raise if no query is at fault: Kafka does not answer Spark, or Spark has exited. The tick is retried."""
        self._raise_if_ended(error)
        text = str(error)
        if SLOW_FETCH.search(text) or any(
            f"org.apache.kafka.common.errors.{name}" in text for name in TRANSIENT_ERRORS
        ):
            raise KafkaError("Kafka did not answer Spark", detail=_reason(error)) from error

    def _raise_if_ended(self, error: Exception) -> None:
        """Raise if an error is due to the end of Spark's process."""
        answered = isinstance(error, PySparkException | Py4JJavaError)
        if has_exited(self._process, 0 if answered else EXIT_SECONDS):
            raise SparkRestarted(beside_read=self.sessions.reads.ran_in(self._process)) from error

    def _open(self, session: SparkSession, inputs: Round) -> str:
        """Create the views; returns the WITH clause of those that are inlined."""
        inlined = []
        for view, source in inputs.inputs.items():
            frame = self._read(source) if isinstance(source, TopicRange) else self._local(session, source)
            frame.createOrReplaceTempView(view)
        for view, sql in inputs.derived.items():
            if view in inputs.shared:
                frame = session.sql(sql).cache()
                inputs._cached.append(frame)
                frame.createOrReplaceTempView(view)
            else:
                inlined.append(f"{view} AS ({sql})")
        return f"WITH {', '.join(inlined)} " if inlined else ""

    def _close(self, session: SparkSession, inputs: Round) -> None:
        cached = list(inputs._cached)
        inputs._cached.clear()
        if has_exited(self._process):
            return
        for frame in cached:
            frame.unpersist()
        for view in (*inputs.inputs, *inputs.shared):
            session.catalog.dropTempView(view)

    def _local(self, session: SparkSession, rows: pa.Table) -> DataFrame:
        # Spark cannot create a frame from columns without chunks.
        frame = session.createDataFrame(rows if rows.num_rows else _empty(rows.schema))
        return frame.coalesce(1) if session is self.sessions.small else frame

    def _read(self, source: TopicRange) -> DataFrame:
        starts = {str(r.partition): r.start for r in source.ranges}
        ends = {str(r.partition): r.end for r in source.ranges}
        parts = [r.partition for r in source.ranges]
        reader = self.sessions.large.read.format("kafka").options(**self._kafka_options)
        headers = f"CAST({'headers' if source.headers else 'NULL'} AS {spark_type(HEADERS)}) AS hdr"
        frame = (
            reader.option("includeHeaders", str(source.headers).lower())
            .option("assign", json.dumps({source.topic: parts}))
            .option("startingOffsets", json.dumps({source.topic: starts}))
            .option("endingOffsets", json.dumps({source.topic: ends}))
            .option("kafka.group.id", "holdfast-spark")
            .option("kafka.isolation.level", "read_committed")
            .options(**FETCH)
            .option("failOnDataLoss", "true")
            .load()
        )
        return frame.selectExpr(
            "partition AS part", "offset AS off", "unix_millis(timestamp) AS ts", "key", "value", headers
        )


def _by_user_functions(fragments: Sequence[Fragment]) -> list[list[int]]:
    """The indexes of the fragments without user functions, and of those with; without empty groups."""
    uses = [bool(NAMED.search(fragment.sql)) for fragment in fragments]
    groups = ([i for i, used in enumerate(uses) if used is wanted] for wanted in (False, True))
    return [group for group in groups if group]


def _empty(schema: pa.Schema) -> pa.Table:
    return pa.Table.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _job(sql: str, inputs: Round) -> Job:
    schemas = ((view, rows.schema) for view, rows in inputs.inputs.items() if isinstance(rows, pa.Table))
    return Job(sql, tuple(inputs.derived.items()), tuple(schemas))


def _reason(error: Exception) -> str:
    """The first line of the error message; for an error in the JVM, of its root cause."""
    text = str(error)
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        text = cause.toString()
    return text.strip().splitlines()[0][:500]
