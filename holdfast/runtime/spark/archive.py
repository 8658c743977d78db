"""Creates the class archive of Spark by running Spark once, as a server does."""

import os
import shlex
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa

from holdfast.class_archive import END_SECONDS, archive_path, making
from holdfast.config import SPARK_SUBMIT_OPTIONS, spark_submit_options
from holdfast.errors import StartError
from holdfast.runtime.spark import warmup
from holdfast.runtime.spark.prepared import PreparedJobs
from holdfast.runtime.spark.session import BRIEF, Sessions, open_sessions

CLASSES = (
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
"""Statements like those of a backfill."""


def spark_archive(folder: Path, java: Path, jars: Sequence[Path]) -> Path:
    """The path of the archive; it may not exist. `jars` are those besides Spark's own."""
    spec = find_spec("pyspark")
    bundled = sorted(Path(spec.origin).parent.glob("jars/*.jar")) if spec and spec.origin else []
    return archive_path(folder, "spark", java, [*jars, *bundled])


def make_archive(archive: Path, *, java: Path, jars: Sequence[Path], work_dir: Path) -> None:
    """Create the archive. Not for a process that has a session: it ends the JVM of the process."""
    before = spark_submit_options()
    try:
        with making(archive) as options:
            os.environ[SPARK_SUBMIT_OPTIONS] = shlex.join([*shlex.split(before), *options, BRIEF])
            sessions = open_sessions(master="local[1]", java=java, jars=jars, work_dir=work_dir)
            _load_classes(sessions)
            if not sessions.end(END_SECONDS):
                raise StartError(f"Spark's JVM did not exit within {END_SECONDS:.0f} s")
    finally:
        os.environ[SPARK_SUBMIT_OPTIONS] = before


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
    for name in CLASSES:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)
