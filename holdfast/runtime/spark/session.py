"""One Spark context with two sessions: one tuned for ticks of a few records, one for backfills."""

import logging
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from threading import Lock

from pyspark import SparkContext
from pyspark.sql import SparkSession

from holdfast import class_archive
from holdfast.config import SPARK_SUBMIT_OPTIONS, spark_submit_options
from holdfast.errors import SparkEnded
from holdfast.runtime.serdes.native import CATALOG
from holdfast.runtime.spark.client_reads import ClientReads
from holdfast.runtime.spark.warmup import WarmUp

log = logging.getLogger(__name__)

LOG_CONFIGURATION = "-Dlog4j2.configurationFile="
EXIT_WITHOUT_MEMORY = "-XX:+ExitOnOutOfMemoryError"
"""Without it, a Spark thread that runs out of memory dies and its job waits forever."""
SHRINK_HEAP = ("-XX:MinHeapFreeRatio=20", "-XX:MaxHeapFreeRatio=40")
"""A heap that has grown in a backfill shrinks with the next full collection, of which there are several per hour."""
EXIT_SECONDS = 2.0
BRIEF = "-XX:TieredStopAtLevel=1"
"""For runs of a few minutes in which plans rarely repeat: the JVM's second compiler does not pay off."""
PYTHON = "spark.sql.execution.pyspark.udf"
OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer"
COMMON = {
    # Builders put each filter where it belongs. Pushed below the decoding, it would parse every record again, and
    # once more for each column that it names.
    "spark.sql.optimizer.excludedRules": f"{OPTIMIZER}.PushDownPredicates,{OPTIMIZER}.PushPredicateThroughNonJoin",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    # A map keeps the last value of a key, as in Java; failing would stop the tick.
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    # A user function that hangs fails its query; it must not stop the ticks.
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
    # Spark's estimate of the size of a join is the product of its inputs; it would add an exchange for that.
    "spark.sql.maxSinglePartitionBytes": str(2**62),
    "spark.sql.leafNodeDefaultParallelism": "1",
}
LARGE = {
    "spark.sql.adaptive.enabled": "true",
    # Rows passed to Spark stay in Arrow format until a task reads them: as objects, a million took 600 MB.
    "spark.sql.execution.arrow.localRelationThreshold": "1MB",
    # Shared views are cached for one job only: compression took a fifth of the time of ten queries.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
}
CONTEXT = {
    f"spark.sql.catalog.{CATALOG}": "holdfast.functions.Functions",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.driver.maxResultSize": "0",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.sql.maxMetadataStringLength": "20",
    "spark.sql.debug.maxToStringFields": "5",
    "spark.cleaner.periodicGC.interval": "10min",
    # A user's regular expression can overflow the stack: that fails its job, and must not end the JVM.
    "spark.executor.killOnFatalError.depth": "0",
    # A task on another machine that cannot be cancelled ends with its executor, as ours does with this process.
    "spark.task.reaper.enabled": "true",
    "spark.task.reaper.killTimeout": "10s",
    # A stream-stream join has more than the default of 100: all were generated and compiled again in each slice.
    "spark.sql.codegen.cache.maxEntries": "1000",
}


class Sessions:
    """The two sessions; they share the context and nothing else. `restart` replaces them.

    Thread-safe. `isolated` sessions follow those that they were created from.
    """

    small: SparkSession
    large: SparkSession
    warming: WarmUp

    def __init__(self, open_: Callable[[], SparkSession] | None, parent: "Sessions | None" = None) -> None:
        self._open, self._parent = open_, parent
        self._followers: list[Sessions] = []
        self.reads: ClientReads = ClientReads() if parent is None else parent.reads
        self._lock = Lock()
        self._killed = self._stopped = self._lost = False
        self._started: Popen[bytes] | None = None
        """The process of the last JVM that has started, also after its end."""
        self._adopt()

    def isolated(self) -> "Sessions":
        """Two more sessions of the same context, whose views are separate from those of the ticks."""
        follower = Sessions(None, self)
        self._followers.append(follower)
        return follower

    @property
    def process(self) -> "Popen[bytes] | None":
        """Spark's process; None if it is not ours."""
        return self._root._started

    @property
    def is_lost(self) -> bool:
        """Whether Spark's process has ended and could not be started again."""
        return self._root._lost

    def await_end(self) -> None:
        """Wait until Spark's process has exited."""
        if self.process is not None:
            self.process.wait()

    def kill(self) -> None:
        """End Spark's process; `restart` has to follow."""
        root = self._root
        if root.process is not None:
            root._killed = True
            root.process.kill()

    def restart(self) -> None:
        """Start Spark again if its process has ended; `SparkEnded` if it does not start.

        Does nothing if another thread has done so, or after `stop`.
        """
        root = self._root
        with root._lock:
            if root._lost:
                raise SparkEnded
            if root._stopped or not (root._killed or has_exited(root.process)):
                return
            log.warning("starting Spark again: its process has ended")
            root.await_end()
            _forget(root.large)
            try:
                root._adopt()
            except Exception as error:
                root._lost = True
                raise SparkEnded from error
            root._killed = False

    def stop(self) -> None:
        self._root._stopped = True
        self.warming.join()
        if not has_exited(self.process):
            self.small.stop()

    def end(self, seconds: float) -> bool:
        """Stop Spark and end its process; returns whether it has exited within some seconds."""
        gateway = self.large.sparkContext._gateway
        process = getattr(gateway, "proc", None)
        self.stop()
        if gateway is None or process is None:
            return False
        gateway.shutdown()
        process.stdin.close()
        SparkContext._gateway = SparkContext._jvm = None
        return has_exited(process, seconds)

    @property
    def _root(self) -> "Sessions":
        return self if self._parent is None else self._parent._root

    def _adopt(self) -> None:
        if self._parent is not None:
            large, small = self._parent.large.newSession(), self._parent.large.newSession()
            _tune(large, small)
            self.small, self.large, self.warming = small, large, self._parent.warming
            return
        assert self._open is not None
        large = self._open()
        self._started = getattr(large.sparkContext._gateway, "proc", None)
        _open_code_cache(large)
        small = large.newSession()
        _tune(large, small)
        self.small, self.large, self.warming = small, large, WarmUp(small)
        for follower in self._followers:
            follower._adopt()


def has_exited(process: "Popen[bytes] | None", seconds: float = 0) -> bool:
    """Whether a process exits within some seconds."""
    if process is None:
        return False
    with suppress(TimeoutExpired):
        process.wait(seconds)
    return process.poll() is not None


def _forget(session: SparkSession) -> None:
    """Remove what PySpark knows of a JVM that has ended, so that it starts another."""
    gateway = session.sparkContext._gateway
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        session.sparkContext.stop()
    with suppress(Exception):
        if gateway is not None:
            gateway.shutdown()
    with suppress(OSError):
        if (process := getattr(gateway, "proc", None)) is not None:
            process.stdin.close()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def open_sessions(
    *,
    master: str,
    jars: Sequence[Path],
    work_dir: Path,
    properties: Mapping[str, str] | None = None,
    java: Path | None = None,
    archive: Path | None = None,
) -> Sessions:
    """Start Spark, with the first `java` on the path unless `java` is set. `properties` override the settings of the
    context, except those that results depend on; a class `archive` is used if it exists."""
    work_dir.mkdir(parents=True, exist_ok=True)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # User functions run in this Python, not in the first one on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if java is not None:
        os.environ["JAVA_HOME"] = str(java.resolve().parent.parent)
    log_settings = _quiet_log(work_dir)
    os.environ[SPARK_SUBMIT_OPTIONS] = java_options(spark_submit_options(), log_settings, archive)
    settings = {
        **CONTEXT,
        "spark.jars": ",".join(map(str, jars)),
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
        "spark.local.dir": str(work_dir),
        "spark.sql.warehouse.dir": str(work_dir / "warehouse"),
        **(properties or {}),
        **COMMON,
    }

    def open_context() -> SparkSession:
        builder = SparkSession.builder.master(master).appName("holdfast")
        for name, value in settings.items():
            builder = builder.config(name, value)
        with _stderr_to(work_dir / "jvm.log"):
            large = builder.getOrCreate()
        large.sparkContext.setLogLevel("ERROR")
        return large

    return Sessions(open_context)


def _open_code_cache(session: SparkSession) -> None:
    """Create the cache of generated code here: a thread without a session would create it with the default size."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    jvm.org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator.compileTime()


def java_options(set_by_user: str, log_settings: Path, archive: Path | None = None) -> str:
    """Options of the JVM: those that the user has set, those for logging and memory, and its class archive."""
    ours = (EXIT_WITHOUT_MEMORY, *SHRINK_HEAP, *class_archive.options(archive))
    users = [
        option for option in shlex.split(set_by_user) if not option.startswith(LOG_CONFIGURATION) and option not in ours
    ]
    shrink = () if any("HeapFreeRatio=" in option for option in users) else SHRINK_HEAP
    archived = class_archive.options(archive, users)
    return shlex.join([*users, *shrink, *archived, EXIT_WITHOUT_MEMORY, f"{LOG_CONFIGURATION}{log_settings}"])


def _tune(large: SparkSession, small: SparkSession) -> None:
    cores = large.sparkContext.defaultParallelism
    for session, tuned in ((large, {**LARGE, "spark.sql.shuffle.partitions": str(cores)}), (small, SMALL)):
        for name, value in {**COMMON, **tuned}.items():
            session.conf.set(name, value)


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Redirect stderr to a file while the JVM is launched: it inherits stderr and writes messages to it."""
    sys.stderr.flush()
    original = os.dup(2)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(original, 2)
        os.close(original)


def _quiet_log(work_dir: Path) -> Path:
    """Write a log configuration that sends Spark's log to a file in its work directory, not to the terminal."""
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
