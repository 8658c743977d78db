"""A standalone Spark cluster on this machine, started from the installed PySpark package."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from holdfast.jars import find_java

from .server import free_port, wait_for

WORKERS = 2
START_SECONDS = 60.0


@dataclass(frozen=True)
class SparkCluster:
    """A master and its workers, each of one core."""

    port: int
    workers: list[subprocess.Popen[bytes]]
    log: Path

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def kill_worker(self) -> None:
        """The worker's executors end with it."""
        worker = self.workers.pop()
        os.killpg(worker.pid, 9)
        worker.wait(30)


@contextmanager
def spark_cluster(folder: Path) -> Iterator[SparkCluster]:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    home = Path(spec.origin).parent
    port, log = free_port(), folder / "cluster.log"
    environment = {
        **os.environ, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13", "SPARK_NO_DAEMONIZE": "1",
        "SPARK_WORKER_DIR": str(folder / "work"),
    }  # fmt: skip

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        java = [str(find_java()), "-Xmx256m", "-cp", f"{home}/jars/*", f"org.apache.spark.deploy.{name}"]
        command = [*java, "--host", "127.0.0.1", "--webui-port", "0", *arguments]
        with log.open("ab") as file:
            return subprocess.Popen(command, env=environment, stdout=file, stderr=file, start_new_session=True)

    master = start("master.Master", "--port", str(port))
    cluster = SparkCluster(port, [], log)
    try:
        for _ in range(WORKERS):
            cluster.workers.append(
                start("worker.Worker", "--cores", "1", "--memory", "1g", f"spark://127.0.0.1:{port}")
            )
        registered = "Registering worker"
        wait_for(
            "the workers are registered", lambda: log.read_text("utf-8").count(registered) == WORKERS, START_SECONDS
        )
        yield cluster
    finally:
        for process in (*cluster.workers, master):
            os.killpg(process.pid, 9)
            process.wait(30)
