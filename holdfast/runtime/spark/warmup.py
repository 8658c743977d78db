"""Has the JVM load and compile what ticks need, while a new server has nothing else to do.

A tick's job is hundreds of milliseconds in a cold JVM and tens in a warm one; most of it is Spark's planner, which
is warmed by any query of the same kind.
"""

import time
from threading import Event, Thread

from pyspark.sql import SparkSession

from holdfast.runtime.plan.formats import FormatInfo, Formats
from holdfast.runtime.serdes.decoding import Decoder
from holdfast.types import Column, Role, Scalar, Schema

ROUNDS, SECONDS = 200, 30.0

SCHEMA = Schema((Column("K", Scalar.STRING, Role.KEY), Column("N", Scalar.BIGINT), Column("S", Scalar.STRING)))
FORMATS = Formats(key_format=FormatInfo(format="KAFKA"), value_format=FormatInfo(format="JSON"))


class WarmUp:
    """A thread that runs small jobs until there is real work, or enough of them have run."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._enough = Event()
        self._thread = Thread(target=self._run, name="spark-warm-up", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """No further job: there is real work. Costs nothing when it has ended."""
        self._enough.set()

    def join(self) -> None:
        self.end()
        self._thread.join()

    def _run(self) -> None:
        started = time.monotonic()
        for n in range(ROUNDS):
            if self._enough.is_set() or time.monotonic() - started > SECONDS:
                return
            self._session.sql(job(n)).toArrow()


def job(n: int) -> str:
    """A job as a tick with one filtered stream and one aggregated table has it."""
    key, value = b"k".hex(), f'{{"N":{n},"S":"x"}}'.encode().hex()
    records = f"SELECT * FROM VALUES (0,{n}L,0L,X'{key}',X'{value}') AS records(part, off, ts, key, value)"
    decoded = Decoder(SCHEMA, FORMATS).sql("warm_records", frozenset())
    kept = "SELECT * FROM (SELECT * FROM warm_decoded WHERE NOT tombstone) WHERE bad > 0 OR (coalesce(c0 > 0, false))"
    rows = f"SELECT 0 AS tag, k0, c0, ts, bad FROM ({kept})"
    groups = f"SELECT 1 AS tag, k0, count(*) AS n, max(ts) AS ts, max(bad) AS bad FROM ({kept}) GROUP BY k0"
    return f"WITH warm_records AS ({records}), warm_decoded AS ({decoded}) {rows} UNION ALL {groups}"
