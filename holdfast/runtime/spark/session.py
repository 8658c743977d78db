"""One Spark context with two sessions: one tuned for ticks of a few records, one for catching up."""

import logging
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import TimeoutExpired

from pyspark import SparkContext
from pyspark.sql import SparkSession

from holdfast import class_archive
from holdfast.runtime.spark.warmup import WarmUp

JAVA_OPTIONS = "SPARK_SUBMIT_OPTS"
"""The variable with the options of Spark's JVM; what a user has set there stays."""
LOGGED = "-Dlog4j2.configurationFile="
ENDS_WITHOUT_MEMORY = "-XX:+ExitOnOutOfMemoryError"
"""A thread of Spark's that dies of it would leave its job waiting for ever."""
SHRINKING = ("-XX:MinHeapFreeRatio=20", "-XX:MaxHeapFreeRatio=40")
"""A heap that a catch-up made large becomes small again with the next full collection, of which there are some an
hour."""
ENDING_SECONDS = 2.0
BRIEF = "-XX:TieredStopAtLevel=1"
"""For runs of some minutes over ever other plans: none of them is worth the JVM's second compiler."""
PYTHON = "spark.sql.execution.pyspark.udf"
OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer"
COMMON = {
    # Builders put each filter where it belongs. Pushed below the decoding, it would parse every record again, and
    # once more for each column that it names.
    "spark.sql.optimizer.excludedRules": f"{OPTIMIZER}.PushDownPredicates,{OPTIMIZER}.PushPredicateThroughNonJoin",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    # A map keeps the last value of a key, as in Java; to fail would stop the tick.
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    # A user's function that does not come back fails its query; it must not stop the ticks.
    f"{PYTHON}.idleTimeoutSeconds": "120",
    f"{PYTHON}.killOnIdleTimeout": "true",
}
SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # A small input is in one partition, so that no join needs an exchange, which a prepared job cannot have.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.leafNodeDefaultParallelism": "1",
}
LARGE = {
    "spark.sql.adaptive.enabled": "true",
    # Rows that are given to Spark stay Arrow until a task reads them: as objects, a million took 600 MB.
    "spark.sql.execution.arrow.localRelationThreshold": "1MB",
    # What several queries read is kept for the length of one job: to pack and unpack it took a fifth of ten queries.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
}
CONTEXT = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.driver.maxResultSize": "0",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.sql.maxMetadataStringLength": "20",
    "spark.sql.debug.maxToStringFields": "5",
    "spark.cleaner.periodicGC.interval": "10min",
    # A user's regular expression can go too deep for its thread: that fails its job, and must not end the JVM.
    "spark.executor.killOnFatalError.depth": "0",
    # One join of streams has more than the 100 that are usual: all were generated and compiled again in each slice.
    "spark.sql.codegen.cache.maxEntries": "1000",
}


@dataclass(frozen=True, slots=True)
class Sessions:
    """The two sessions; they share the context and nothing else."""

    small: SparkSession
    large: SparkSession
    warming: WarmUp

    def apart(self) -> "Sessions":
        """Two more sessions: names of views in them are not those of the ticks."""
        large, small = self.large.newSession(), self.large.newSession()
        _tune(large, small)
        return Sessions(small=small, large=large, warming=self.warming)

    def await_end(self, seconds: float | None = None) -> bool:
        """Whether the process of Spark ends within a time."""
        context = self.large.sparkContext
        process = None if context._gateway is None else getattr(context._gateway, "proc", None)
        if process is None:
            return False
        with suppress(TimeoutExpired):
            process.wait(seconds)
        return process.poll() is not None

    def stop(self) -> None:
        self.warming.join()
        if not self.await_end(0):
            self.small.stop()

    def end(self, seconds: float) -> bool:
        """Stop, and have the process of Spark end, within a time."""
        gateway = self.large.sparkContext._gateway
        process = getattr(gateway, "proc", None)
        self.stop()
        if gateway is None or process is None:
            return False
        gateway.shutdown()
        process.stdin.close()
        SparkContext._gateway = SparkContext._jvm = None
        with suppress(TimeoutExpired):
            process.wait(seconds)
        return process.poll() is not None


def open_sessions(
    *,
    master: str,
    jars: Sequence[Path],
    work_dir: Path,
    properties: Mapping[str, str] | None = None,
    java: Path | None = None,
    archive: Path | None = None,
) -> Sessions:
    """Start Spark, with the first `java` on the path unless another is told. `properties` override the settings of the
    context, not those that keep results right; an `archive` of classes is used if it is there."""
    work_dir.mkdir(parents=True, exist_ok=True)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Users' functions run in this Python, not in whichever is first on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if java is not None:
        os.environ["JAVA_HOME"] = str(java.resolve().parent.parent)
    log_settings = _quiet_log(work_dir)
    os.environ[JAVA_OPTIONS] = java_options(os.environ.get(JAVA_OPTIONS, ""), log_settings, archive)
    builder = SparkSession.builder.master(master).appName("holdfast")
    settings = {
        **CONTEXT,
        "spark.jars": ",".join(map(str, jars)),
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
        "spark.local.dir": str(work_dir),
        "spark.sql.warehouse.dir": str(work_dir / "warehouse"),
        **(properties or {}),
        **COMMON,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _stderr_to(work_dir / "jvm.log"):
        large = builder.getOrCreate()
    large.sparkContext.setLogLevel("ERROR")
    _open_code_cache(large)
    small = large.newSession()
    _tune(large, small)
    return Sessions(small=small, large=large, warming=WarmUp(small))


def _open_code_cache(session: SparkSession) -> None:
    """Have the cache of generated code made here: a thread without a session would make it of the usual size."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    jvm.org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator.compileTime()


def java_options(given: str, log_settings: Path, archive: Path | None = None) -> str:
    """Options of the JVM: those that were given, where its log is set, and its archive of classes."""
    ours = (ENDS_WITHOUT_MEMORY, *SHRINKING, *class_archive.options(archive))
    kept = [option for option in shlex.split(given) if not option.startswith(LOGGED) and option not in ours]
    shrinking = () if any("HeapFreeRatio=" in option for option in kept) else SHRINKING
    archived = class_archive.options(archive, kept)
    return shlex.join([*kept, *shrinking, *archived, ENDS_WITHOUT_MEMORY, f"{LOGGED}{log_settings}"])


def _tune(large: SparkSession, small: SparkSession) -> None:
    cores = large.sparkContext.defaultParallelism
    for session, tuned in ((large, {**LARGE, "spark.sql.shuffle.partitions": str(cores)}), (small, SMALL)):
        for name, value in {**COMMON, **tuned}.items():
            session.conf.set(name, value)


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """The JVM inherits this process's stderr when it is launched: its remarks on itself go to a file instead."""
    sys.stderr.flush()
    kept = os.dup(2)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _quiet_log(work_dir: Path) -> Path:
    """Spark's own log goes to a file beside its work; a terminal is for people."""
    path = work_dir / "log4j2.properties"
    path.write_text(
        "rootLogger.level = warn\n"
        "rootLogger.appenderRef.file.ref = file\n"
        "appender.file.type = RollingFile\n"
        "appender.file.name = file\n"
        f"appender.file.fileName = {work_dir}/spark.log\n"
        f"appender.file.filePattern = {work_dir}/spark.log.%i\n"
        "appender.file.layout.type = PatternLayout\n"
        "appender.file.layout.pattern = %d{yyyy-MM-dd HH:mm:ss} %p %c{1}: %m%n%ex\n"
        "appender.file.policies.type = Policies\n"
        "appender.file.policies.size.type = SizeBasedTriggeringPolicy\n"
        "appender.file.policies.size.size = 10MB\n"
        "appender.file.strategy.type = DefaultRolloverStrategy\n"
        "appender.file.strategy.max = 2\n"
    )
    return path
