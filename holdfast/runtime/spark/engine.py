"""Runs fragments on Spark: the inputs as views, everything of a round as one job."""

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeAlias

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from holdfast.errors import KafkaError, SparkEnded
from holdfast.metrics import SPARK_SECONDS
from holdfast.names import TopicName
from holdfast.runtime.expressions.physical import arrow_type, spark_type
from holdfast.runtime.spark.fragment import Fragment, union
from holdfast.runtime.spark.functions import NAMED, FunctionProblem, UserFunctions
from holdfast.runtime.spark.prepared import Job, NotRepeatable, PreparedJobs
from holdfast.runtime.spark.session import ENDING_SECONDS, Sessions
from holdfast.types import HEADERS

PREPARED = SPARK_SECONDS.labels("prepared")
RECORDS = pa.schema(
    [
        ("part", pa.int32()),
        ("off", pa.int64()),
        ("ts", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("hdr", arrow_type(HEADERS)),
    ]
)
"""The columns of raw records, whichever way they came in."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets `start` to `end`, the end not included, of one partition."""

    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TopicRange:
    """A stretch of a topic that Spark reads itself; headers of records only when someone wants them."""

    topic: TopicName
    ranges: tuple[OffsetRange, ...]
    headers: bool = True


LOCAL_ROWS = 10_000
"""More rows than this are worth compiled code."""

PASSING = ("TimeoutException", "DisconnectException", "NetworkException", "CoordinatorNotAvailableException")

ViewInput: TypeAlias = pa.Table | TopicRange


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a fragment gave no rows."""

    reason: str


@dataclass
class Round:
    """The views that one job can name.

    `derived` are SELECTs over the views by name; with `shared`, those read by several fragments are computed once
    and kept for the length of the round.
    """

    inputs: Mapping[str, ViewInput]
    derived: Mapping[str, str]
    shared: frozenset[str] = frozenset()
    _cached: list[DataFrame] = field(default_factory=list)


class Engine:
    """The only way to a Spark job. `run` is for one thread, `select` for any: each has sessions of its own."""

    def __init__(self, sessions: Sessions, kafka_options: Mapping[str, str]) -> None:
        self._sessions = sessions
        self._kafka_options = dict(kafka_options)
        self._naming = Lock()
        self._functions = UserFunctions()
        self._prepared = PreparedJobs(sessions.small, self._naming, self._functions)

    def run(self, fragments: Sequence[Fragment], inputs: Round) -> list[pa.Table | Failure]:
        """The rows of each fragment. When the whole fails, each is tried alone, so that only the culprit is lost."""
        self._sessions.warming.end()
        if self.prepares(inputs) and len(apart := _by_user_functions(fragments)) > 1:
            # A job with users' functions cannot be prepared; the others need not wait for it.
            found = [(place, rows) for places in apart for place, rows in self._some(fragments, places, inputs)]
            return [rows for _, rows in sorted(found, key=lambda each: each[0])]
        quick = self._quickly(fragments, inputs)
        if quick is not None:
            return list(quick)
        session = self._session(inputs)
        with self._timed(session):
            try:
                prefix = self._open(session, inputs)
                try:
                    return list(self._together(session, prefix, fragments))
                except (PySparkException, Py4JError) as error:
                    self._raise_if_passing(error)
                    return [self._alone(session, prefix, fragment) for fragment in fragments]
            finally:
                self._close(session, inputs)

    def _some(
        self, fragments: Sequence[Fragment], places: Sequence[int], inputs: Round
    ) -> "zip[tuple[int, pa.Table | Failure]]":
        return zip(places, self.run([fragments[place] for place in places], inputs), strict=True)

    def function_problems(self) -> list[FunctionProblem]:
        """The rows for which users' functions raised since this was last asked."""
        return self._functions.problems()

    def select(self, sql: str, inputs: Round) -> pa.Table:
        """The rows of one SELECT over the views."""
        if self.prepares(inputs):
            with suppress(NotRepeatable), PREPARED.time():
                return self._prepared.run(_job(sql, inputs), inputs.inputs)
        session = self._session(inputs)
        # Views have names until the statement is analysed; a job that runs needs them no more.
        with self._naming:
            try:
                self._functions.register(session, [sql])
                frame = session.sql(self._open(session, inputs) + sql)
            finally:
                self._close(session, inputs)
        with self._timed(session):
            return frame.toArrow()

    def _timed(self, session: SparkSession) -> AbstractContextManager[object]:
        return SPARK_SECONDS.labels("small" if session is self._sessions.small else "large").time()

    def prepares(self, inputs: Round) -> bool:
        """Whether a round with such inputs is planned once for all rounds of its kind."""
        return not inputs.shared and self._prepared.takes(inputs.inputs)

    def _quickly(self, fragments: Sequence[Fragment], inputs: Round) -> list[pa.Table] | None:
        """The rows by a prepared job; None where none fits, or it failed and the culprit is to be found."""
        if not self.prepares(inputs):
            return None
        whole = union(fragments)
        try:
            with PREPARED.time():
                return whole.split(self._prepared.run(_job(whole.sql, inputs), inputs.inputs))
        except (NotRepeatable, PySparkException, Py4JError):
            return None

    def _session(self, inputs: Round) -> SparkSession:
        large = any(isinstance(source, TopicRange) for source in inputs.inputs.values())
        large = large or sum(t.num_rows for t in inputs.inputs.values() if isinstance(t, pa.Table)) > LOCAL_ROWS
        return self._sessions.large if large else self._sessions.small

    def _together(self, session: SparkSession, prefix: str, fragments: Sequence[Fragment]) -> list[pa.Table]:
        whole = union(fragments)
        self._functions.register(session, [whole.sql])
        return whole.split(session.sql(prefix + whole.sql).toArrow())

    def _alone(self, session: SparkSession, prefix: str, fragment: Fragment) -> pa.Table | Failure:
        try:
            return self._together(session, prefix, [fragment])[0]
        except (PySparkException, Py4JError) as error:
            self._raise_if_passing(error)
            return Failure(_reason(error))

    def _raise_if_passing(self, error: Exception) -> None:
        """What is no fault of a query: Kafka does not answer Spark, or Spark is gone. The whole tick is tried again."""
        told_by_java = isinstance(error, PySparkException | Py4JJavaError)
        if not told_by_java and self._sessions.await_end(ENDING_SECONDS):
            raise SparkEnded from error
        text = str(error)
        if any(f"org.apache.kafka.common.errors.{name}" in text for name in PASSING):
            raise KafkaError("Kafka did not answer Spark", detail=_reason(error)) from error

    def _open(self, session: SparkSession, inputs: Round) -> str:
        """Create the views; gives the WITH clause of those that are inlined."""
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
        for frame in inputs._cached:
            frame.unpersist()
        inputs._cached.clear()
        for view in (*inputs.inputs, *inputs.shared):
            session.catalog.dropTempView(view)

    def _local(self, session: SparkSession, rows: pa.Table) -> DataFrame:
        # Spark cannot make a frame of columns that have no chunk at all.
        frame = session.createDataFrame(rows if rows.num_rows else _empty(rows.schema))
        return frame.coalesce(1) if session is self._sessions.small else frame

    def _read(self, source: TopicRange) -> DataFrame:
        starts = {str(r.partition): r.start for r in source.ranges}
        ends = {str(r.partition): r.end for r in source.ranges}
        parts = [r.partition for r in source.ranges]
        reader = self._sessions.large.read.format("kafka").options(**self._kafka_options)
        headers = f"CAST({'headers' if source.headers else 'NULL'} AS {spark_type(HEADERS)}) AS hdr"
        frame = (
            reader.option("includeHeaders", str(source.headers).lower())
            .option("assign", json.dumps({source.topic: parts}))
            .option("startingOffsets", json.dumps({source.topic: starts}))
            .option("endingOffsets", json.dumps({source.topic: ends}))
            .option("kafka.group.id", "holdfast-spark")
            .option("kafka.isolation.level", "read_committed")
            .option("kafka.fetch.max.wait.ms", "5")
            .option("failOnDataLoss", "true")
            .load()
        )
        return frame.selectExpr(
            "partition AS part", "offset AS off", "unix_millis(timestamp) AS ts", "key", "value", headers
        )


def _by_user_functions(fragments: Sequence[Fragment]) -> list[list[int]]:
    """The places of the fragments without users' functions, and of those with some; only where there are any."""
    some = [bool(NAMED.search(fragment.sql)) for fragment in fragments]
    groups = ([i for i, named in enumerate(some) if named is wanted] for wanted in (False, True))
    return [group for group in groups if group]


def _empty(schema: pa.Schema) -> pa.Table:
    return pa.Table.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _job(sql: str, inputs: Round) -> Job:
    schemas = ((view, rows.schema) for view, rows in inputs.inputs.items() if isinstance(rows, pa.Table))
    return Job(sql, tuple(inputs.derived.items()), tuple(schemas))


def _reason(error: Exception) -> str:
    """The first line of what went wrong; for an error in the JVM, of its cause."""
    text = str(error)
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        text = cause.toString()
    return text.strip().splitlines()[0][:500]
