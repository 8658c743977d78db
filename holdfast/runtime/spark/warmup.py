"""Makes the JVM load and compile the code that ticks need, while a new server is idle.

A tick's job takes hundreds of milliseconds in a cold JVM and tens in a warm one. The warm-up both plans and runs jobs:
most jobs of ticks are prepared, but every new one has to be planned.
"""

import logging
import time
from threading import Event, Thread

import pyarrow as pa
from pyspark.sql import SparkSession

from holdfast.runtime import physical_columns as col
from holdfast.runtime.expressions.physical import arrow_type
from holdfast.runtime.plan.formats import FormatInfo, Formats
from holdfast.runtime.serdes.decoder import Decoder
from holdfast.runtime.spark.prepared import Job, PreparedJobs
from holdfast.types import HEADERS, Column, Role, Scalar, Schema

log = logging.getLogger(__name__)

ROUNDS, SECONDS, RUNS = 60, 30.0, 6
"""The maximum number of jobs to plan, the maximum time, and the runs of each job."""

SCHEMA = Schema((Column("K", Scalar.STRING, Role.KEY), Column("N", Scalar.BIGINT), Column("S", Scalar.STRING)))
FORMATS = Formats(key_format=FormatInfo(format="KAFKA"), value_format=FormatInfo(format="JSON"))


class WarmUp:
    """A thread that runs small jobs until there is real work, or enough of them have run."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="spark-warm-up", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Start no further job, because there is real work. Costs nothing if the warm-up has ended."""
        self._stopped.set()

    def join(self) -> None:
        self.end()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._warm_up()
        except Exception as error:  # Spark's process may end meanwhile.
            log.info("warm-up ended: error=%s", error)

    def _warm_up(self) -> None:
        started, jobs = time.monotonic(), PreparedJobs(self._session)
        for n in range(ROUNDS):
            planned = job(n)
            for run in range(RUNS):
                if self._stopped.is_set() or time.monotonic() - started > SECONDS:
                    return
                jobs.run(planned, {"warm_records": records(n * RUNS + run)})


def records(n: int) -> pa.Table:
    """One raw record, as read from a topic."""
    value = f'{{"N":{n},"S":"x"}}'.encode()
    return pa.table(
        {
            col.PARTITION: pa.array([0], pa.int32()),
            col.OFFSET: pa.array([n], pa.int64()),
            col.ROW_TIME: pa.array([0], pa.int64()),
            "key": pa.array([b"k"], pa.binary()),
            "value": pa.array([value], pa.binary()),
            col.HEADERS: pa.nulls(1, arrow_type(HEADERS)),
        }
    )


def job(n: int) -> Job:
    """The job of a tick with one filtered stream and one aggregated table; a different one for each `n`."""
    decoded = Decoder(SCHEMA, FORMATS).sql("warm_records")
    filtered = f"SELECT *, NOT tombstone AS present FROM warm_decoded WHERE bad > 0 OR (coalesce(c0 > -{n}, false))"
    rows = f"SELECT 0 AS tag, k0, c0, ts, bad FROM ({filtered})"
    groups = f"SELECT 1 AS tag, k0, count(*) AS n, max(ts) AS ts, max(bad) AS bad FROM ({filtered}) GROUP BY k0"
    return Job(f"{rows} UNION ALL {groups}", (("warm_decoded", decoded),), (("warm_records", records(n).schema),))
