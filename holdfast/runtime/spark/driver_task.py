"""A planned frame computed on the calling thread of the driver, over rows that are others each time.

A Spark job of a few rows is mostly its own handling: listeners are told of the plan, closures are cleaned, the task is
serialised, broadcast, scheduled and read again, and a server is opened for its result. Spark computes what it knows to
be local without any of that; here the same is done for a frame of one partition, through the same operators, under a
task context as an executor would make it.

`DriverTask.java` is what runs in the JVM, compiled there by the compiler that Spark has for its own code: from Python
it was fifty calls a run, each a wait for the interpreter's lock. It uses methods that Spark has for itself: they are
those of the version of Spark that is pinned.
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
COMPILING = Lock()


class DriverTasks:
    """Makes the tasks of one session."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._jvm: Any = session.sparkContext._jvm
        with COMPILING:
            self._class = _compiled(self._jvm)
        self._settings = _settings(session)

    def task(self) -> "DriverTask":
        """A task without inputs and result yet."""
        arguments = self._jvm.java.util.ArrayList()
        arguments.add(self._settings)
        return DriverTask(self._session, self._class.getConstructors()[0].newInstance(arguments.toArray()))


class DriverTask:
    """Computes a frame again and again, without a job. For one thread at a time."""

    def __init__(self, session: SparkSession, task: Any) -> None:
        self._session, self._task = session, task
        self._inputs: list[pa.Schema] = []
        self._result: pa.Schema | None = None

    def input(self, schema: pa.Schema) -> DataFrame:
        """The frame to plan with, of rows that are given to each run in the order of the inputs."""
        spark_schema = from_arrow_schema(schema)
        self._inputs.append(to_arrow_schema(spark_schema))
        return DataFrame(self._task.input(self._session._jsparkSession, spark_schema.json()), self._session)

    def keep(self, frame: DataFrame) -> DataFrame:
        """A frame to use instead of another: its rows are computed once a run."""
        return DataFrame(self._task.keep(self._session._jsparkSession, frame._jdf), self._session)

    def result(self, frame: DataFrame) -> None:
        """What is computed."""
        self._task.result(frame._jdf.toArrowBatchRdd())
        self._result = to_arrow_schema(frame.schema)

    def run(self, inputs: Sequence[pa.Table]) -> pa.Table:
        """The result for these rows. An error of the computation is Spark's own."""
        assert self._result is not None
        given = b"".join(map(_written, inputs, self._inputs))
        return pa.Table.from_batches(_read(self._task.run(given), self._result), self._result)


@cache
def _compiled(jvm: Any) -> Any:
    """The class of `DriverTask.java`, one for the JVM: py4j knows classes by their names."""
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(resources.files(__package__).joinpath(SOURCE).read_text())
    return compiler.getClassLoader().loadClass("DriverTask")


def _settings(session: SparkSession) -> Any:
    """The session's settings as a task has them."""
    jvm: Any = session.sparkContext._jvm
    settings = jvm.java.util.Properties()
    pairs = session._jsparkSession.sessionState().conf().getAllConfs().iterator()
    while pairs.hasNext():
        pair = pairs.next()
        settings.setProperty(pair._1(), pair._2())
    return settings


def _written(rows: pa.Table, schema: pa.Schema) -> bytes:
    """Rows as one record batch behind its length."""
    batches = (rows if rows.schema == schema else rows.cast(schema)).combine_chunks().to_batches()
    batch = batches[0] if batches else pa.RecordBatch.from_pylist([], schema)
    message = bytes(batch.serialize())
    return len(message).to_bytes(4, "big") + message


def _read(written: bytes, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Record batches, each behind its length."""
    buffer, at = pa.py_buffer(written), 0
    while at < len(written):
        size = int.from_bytes(written[at : at + 4], "big")
        yield pa.ipc.read_record_batch(buffer.slice(at + 4, size), schema)
        at += 4 + size
