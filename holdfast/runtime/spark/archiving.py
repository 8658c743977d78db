"""Makes the archive of Spark's classes, by running it once as a server does."""

import os
import shlex
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa

from holdfast.class_archive import END_SECONDS, archive_path, making
from holdfast.errors import StartError
from holdfast.runtime.spark import warmup
from holdfast.runtime.spark.prepared import PreparedJobs
from holdfast.runtime.spark.session import BRIEF, JAVA_OPTIONS, Sessions, open_sessions

LOADED = (
    "org.apache.kafka.clients.consumer.KafkaConsumer",
    "org.apache.kafka.clients.admin.KafkaAdminClient",
    "org.apache.spark.sql.kafka010.KafkaSourceProvider",
    "org.apache.spark.sql.kafka010.KafkaBatchPartitionReader",
)
STATEMENTS = (
    "SELECT k0, count(*) AS n, sum(c0) AS s FROM warm_decoded GROUP BY k0",
    "SELECT a.k0, a.c0, b.c1 FROM warm_decoded a JOIN warm_decoded b ON a.k0 = b.k0 AND a.ts < b.ts + 1",
    "SELECT k0, row_number() OVER (PARTITION BY k0 ORDER BY off) AS n, to_json(struct(c0, c1)) AS v FROM warm_decoded",
)
"""Of the kinds that catching up runs."""


def spark_archive(folder: Path, java: Path, jars: Sequence[Path]) -> Path:
    """Where the archive is, or would be; `jars` are those beside Spark's own."""
    spec = find_spec("pyspark")
    own = sorted(Path(spec.origin).parent.glob("jars/*.jar")) if spec and spec.origin else []
    return archive_path(folder, "spark", java, [*jars, *own])


def make_archive(archive: Path, *, java: Path, jars: Sequence[Path], work_dir: Path) -> None:
    """Not in a process that has a session: the JVM of this one ends here."""
    before = os.environ.get(JAVA_OPTIONS, "")
    try:
        with making(archive) as options:
            os.environ[JAVA_OPTIONS] = shlex.join([*shlex.split(before), *options, BRIEF])
            sessions = open_sessions(master="local[1]", java=java, jars=jars, work_dir=work_dir)
            _load_classes(sessions)
            if not sessions.end(END_SECONDS):
                raise StartError(f"Spark's JVM did not end within {END_SECONDS:.0f} s")
    finally:
        os.environ[JAVA_OPTIONS] = before


def _load_classes(sessions: Sessions) -> None:
    sessions.warming.join()
    jobs, large = PreparedJobs(sessions.small), sessions.large
    for n in range(3):
        jobs.run(warmup.job(n), {"warm_records": warmup.records(n)})
    large.createDataFrame(pa.concat_tables(warmup.records(n) for n in range(10))).createTempView("warm_records")
    for name, sql in warmup.job(0).derived:
        large.sql(sql).createTempView(name)
    for statement in STATEMENTS:
        large.sql(statement).toArrow()
    jvm = large.sparkContext._jvm
    assert jvm is not None
    for name in LOADED:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)
