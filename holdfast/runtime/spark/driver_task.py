"""The one partition of a planned frame, computed on the calling thread of the driver.

A Spark job of a few rows is mostly its own handling: listeners are told of the plan, closures are cleaned, the task is
serialised, broadcast, scheduled and read again, and a server is opened for its result. Spark computes what it knows to
be local without any of that; here the same is done for a frame of one partition, through the same operators, under a
task context as an executor would make it. Half to a third of a job's time is left.

These are methods that Spark has for itself: they are those of the version of Spark that is pinned.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

ATTEMPTS = count(1)


class DriverTask:
    """Gives the rows of a frame again each time, without a job. For one thread at a time."""

    def __init__(self, session: SparkSession, frame: DataFrame) -> None:
        self._jvm: Any = session.sparkContext._jvm
        self._batches = frame._jdf.toArrowBatchRdd()
        (self._partition,) = self._batches.partitions()
        self._schema = to_arrow_schema(frame.schema)
        self._settings = _settings(session)

    def run(self) -> pa.Table:
        """An error of the computation is Spark's own."""
        written = self._jvm.java.io.ByteArrayOutputStream()
        stream = self._jvm.java.io.DataOutputStream(written)
        with self._context() as context:
            batches = self._batches.iterator(self._partition, context)
            self._jvm.org.apache.spark.api.python.PythonRDD.writeIteratorToStream(batches, stream)
        return pa.Table.from_batches(_read(written.toByteArray(), self._schema), self._schema)

    @contextmanager
    def _context(self) -> Iterator[Any]:
        """A task context that has memory and settings; what the task took is given back."""
        spark, attempt = self._jvm.org.apache.spark, -next(ATTEMPTS)
        memory = spark.memory.TaskMemoryManager(spark.SparkEnv.get().memoryManager(), attempt)
        metrics, resources = spark.executor.TaskMetrics(), _object(self._jvm.scala.collection.immutable, "Map").empty()
        context = spark.TaskContextImpl(0, 0, 0, attempt, 0, 1, memory, self._settings, None, metrics, 1, resources)
        current = _object(spark, "TaskContext")
        current.setTaskContext(context)
        try:
            yield context
        finally:
            try:
                context.markTaskCompleted(_object(self._jvm.scala, "None"))
            finally:
                memory.cleanUpAllAllocatedMemory()
                current.unset()


def _settings(session: SparkSession) -> Any:
    """The session's settings as a task has them."""
    jvm: Any = session.sparkContext._jvm
    settings = jvm.java.util.Properties()
    pairs = session._jsparkSession.sessionState().conf().getAllConfs().iterator()
    while pairs.hasNext():
        pair = pairs.next()
        settings.setProperty(pair._1(), pair._2())
    return settings


def _object(package: Any, name: str) -> Any:
    """A Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def _read(written: bytes, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Record batches, each behind its length."""
    buffer, at = pa.py_buffer(written), 0
    while at < len(written):
        size = int.from_bytes(written[at : at + 4], "big")
        yield pa.ipc.read_record_batch(buffer.slice(at + 4, size), schema)
        at += 4 + size
