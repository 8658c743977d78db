"""Computes a planned frame on the calling thread of the driver, with different rows each time.

Most of the time of a Spark job of a few rows is overhead: listeners are notified of the plan, closures are cleaned, the
task is serialised, broadcast, scheduled and deserialised, and a server is opened for its result. Spark computes local
relations without any of that; this does the same for a frame of one partition, with the same operators, under a task
context like an executor's.

`DriverTask.java` runs in the JVM, compiled there by the compiler that Spark uses for its own code: driven from Python,
a run took fifty calls, each waiting for the interpreter's lock. It uses internal methods of the pinned Spark version.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from threading import Lock
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

SOURCE = "DriverTask.java"
COMPILE_LOCK = Lock()


class DriverTasks:
    """Creates the tasks of one session."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._jvm: Any = session.sparkContext._jvm
        with COMPILE_LOCK:
            self._class = _compiled(self._jvm)
        self._settings = _settings(session)

    def task(self) -> "DriverTask":
        """A new task, without inputs and result."""
        arguments = self._jvm.java.util.ArrayList()
        arguments.add(self._settings)
        return DriverTask(self._session, self._class.getConstructors()[0].newInstance(arguments.toArray()))


class DriverTask:
    """Computes a frame repeatedly without a Spark job. For one thread at a time."""

    def __init__(self, session: SparkSession, task: Any) -> None:
        self._session, self._task = session, task
        self._inputs: list[pa.Schema] = []
        self._result: pa.Schema | None = None

    def input(self, schema: pa.Schema) -> DataFrame:
        """Add an input; returns the frame to plan with. `run` takes the rows of the inputs in this order."""
        spark_schema = from_arrow_schema(schema)
        self._inputs.append(to_arrow_schema(spark_schema))
        return DataFrame(self._task.input(self._session._jsparkSession, spark_schema.json()), self._session)

    def in_one_partition(self, frame: DataFrame) -> DataFrame:
        """The same frame without exchanges between its unions and what groups, sorts or joins their rows."""
        return DataFrame(self._task.inOnePartition(self._session._jsparkSession, frame._jdf), self._session)

    def share(self, frame: DataFrame) -> DataFrame:
        """The frame to use instead of `frame` so that its rows are computed once per run."""
        return DataFrame(self._task.share(self._session._jsparkSession, frame._jdf), self._session)

    def result(self, frame: DataFrame) -> None:
        """Set the frame to compute."""
        self._task.result(frame._jdf.toArrowBatchRdd())
        self._result = to_arrow_schema(frame.schema)

    def run(self, inputs: Sequence[pa.Table]) -> pa.Table:
        """The result for these rows. Raises Spark's own errors."""
        assert self._result is not None
        batches = b"".join(map(_encode_batch, inputs, self._inputs))
        return pa.Table.from_batches(_decode_batches(self._task.run(batches), self._result), self._result)

    def cancel(self) -> None:
        """Cancel the run, from another thread. A run that is over is not affected."""
        self._task.cancel()


@cache
def _compiled(jvm: Any) -> Any:
    """The class of `DriverTask.java`, compiled once per JVM: py4j identifies classes by name."""
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(resources.files(__package__).joinpath(SOURCE).read_text())
    return compiler.getClassLoader().loadClass("DriverTask")


def _settings(session: SparkSession) -> Any:
    """The session's settings in the form that a task takes."""
    jvm: Any = session.sparkContext._jvm
    settings = jvm.java.util.Properties()
    pairs = session._jsparkSession.sessionState().conf().getAllConfs().iterator()
    while pairs.hasNext():
        pair = pairs.next()
        settings.setProperty(pair._1(), pair._2())
    return settings


def _encode_batch(rows: pa.Table, schema: pa.Schema) -> bytes:
    """The rows as one record batch, with its length before it."""
    batches = (rows if rows.schema == schema else rows.cast(schema)).combine_chunks().to_batches()
    batch = batches[0] if batches else pa.RecordBatch.from_pylist([], schema)
    message = bytes(batch.serialize())
    return len(message).to_bytes(4, "big") + message


def _decode_batches(encoded: bytes, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Record batches that each have their length before them. Each is copied: Arrow wants aligned buffers."""
    offset = 0
    while offset < len(encoded):
        start = offset + 4
        offset = start + int.from_bytes(encoded[offset:start], "big")
        yield pa.ipc.read_record_batch(pa.py_buffer(encoded[start:offset]), schema)
