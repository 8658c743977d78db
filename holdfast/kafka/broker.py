"""The embedded broker: a real Kafka in one process, for loopback only.

Its folder, `<data_dir>/kafka`, holds the log (`log`), its identity and ports (`broker.json`) and the configuration
written at each start. The broker ends with the server, even when the server is killed: the shell that becomes the JVM
starts a watcher on a pipe, which the system closes when this process ends.
"""

import base64
import fcntl
import json
import logging
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from holdfast import class_archive
from holdfast.config import Settings
from holdfast.errors import KafkaError, StartError
from holdfast.jars import JarSet, Progress, fetch_jars, find_java, silent
from holdfast.kafka.log_links import link_log

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
FOLDER, LOG_FOLDER, IDENTITY = "kafka", "log", "broker.json"
"""The broker's folder below the data folder, and what is in it."""
START_SECONDS = 60.0
STOP_SECONDS = 15.0
SUSPEND_SECONDS = 2.0
RELEASE_SECONDS = 20.0
"""How long the broker of a killed server may take to release its folder and port."""

PORTS = range(20_000, 30_000)
"""Below the range of outgoing connections, so that the port is still free at the next start."""

WATCHED = """
exec 3<&0
( read -r line <&3
  kill -TERM $$ || exit 0
  for half_second in 1 2 3 4 5 6; do sleep 0.5; kill -0 $$ || exit 0; done
  kill -KILL $$ ) 2>/dev/null &
exec "$@" </dev/null 3<&-
"""
"""`$$` is the shell that becomes the JVM. The watcher reads until the server closes the pipe or dies."""

HEAP = ("-Xms64m", "-Xmx512m", "-XX:MaxDirectMemorySize=256m", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError")

# After a kill the controller refuses the new broker until the old one's session has run out: 9 s by default.
PROPERTIES = """\
process.roles=broker,controller
node.id=1
listeners=CLIENTS://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=CLIENTS://{host}:{port}
listener.security.protocol.map=CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=CLIENTS
controller.listener.names=CONTROLLER
controller.quorum.voters=1@{host}:{controller_port}
log.dirs={log_dir}
num.partitions=1
default.replication.factor=1
min.insync.replicas=1
auto.create.topics.enable=false
delete.topic.enable=true
log.retention.ms=-1
log.retention.bytes=-1
log.cleaner.dedupe.buffer.size=16777216
log.cleaner.io.buffer.size=262144
log.cleaner.threads=1
message.max.bytes=16777216
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.max.timeout.ms=3600000
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
num.network.threads=2
num.io.threads=4
background.threads=2
num.recovery.threads.per.data.dir=2
"""

LOGGING = """\
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {file}
appender.file.filePattern = {file}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss.SSSXXX}} %-5p %c{{1}} %m%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
"""


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a broker, stored in its folder."""

    cluster_id: str
    port: int
    controller_port: int


def broker_archive(folder: Path, java: Path, jars: Sequence[Path]) -> Path:
    """The path of the class archive of the broker, whether it exists or not."""
    return class_archive.archive_path(folder, "broker", java, jars)


def stored_identity(data_dir: Path) -> Identity | None:
    """The identity that the broker of a data folder had at its last start."""
    file = data_dir / FOLDER / IDENTITY
    return Identity(**json.loads(file.read_text("utf-8"))) if file.exists() else None


def stored_bootstrap(data_dir: Path) -> str | None:
    """The address of the broker of a data folder, if it runs."""
    stored = stored_identity(data_dir)
    return f"{LOOPBACK}:{stored.port}" if stored else None


class EmbeddedBroker:
    """A Kafka broker that runs as long as this process. Its data stays."""

    def __init__(
        self, settings: Settings, *, progress: Progress = silent, java_options: Sequence[str] | None = None
    ) -> None:
        """`java_options` replace the options that load the class archive."""
        self._settings = settings
        self._java_options = java_options
        self._progress = progress
        self._home = settings.data_dir / FOLDER
        self._log_dir = self._home / LOG_FOLDER
        self.log_file = settings.data_dir / "logs" / "kafka.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._identity: Identity | None = None

    @property
    def bootstrap(self) -> str:
        """The address for clients; known once started."""
        assert self._identity is not None, "the broker has not been started"
        return f"{LOOPBACK}:{self._identity.port}"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start and return once clients are answered. Waits for the broker of a killed server to end."""
        java = find_java(self._settings.java_home)
        jars = fetch_jars(
            JarSet.BROKER,
            self._settings.jar_dir,
            java=java,
            ivy_settings=self._settings.ivy_settings,
            progress=self._progress,
        )
        self._make_folders()
        wait_released(self._log_dir / ".lock", RELEASE_SECONDS)
        self._identity = self._choose_identity()
        self._write_configuration(self._identity)
        command = [str(java), *HEAP, f"-Dlog4j2.configurationFile={self._home / 'log4j2.properties'}"]
        command += ["-Dlog4j2.disableJmx=true", "-cp", ":".join(map(str, jars))]
        archived = class_archive.options(broker_archive(self._settings.jar_dir, java, jars))
        if not (self._log_dir / "meta.properties").exists():
            self._format([*command, *archived, "-XX:TieredStopAtLevel=1"], self._identity)
        command += archived if self._java_options is None else self._java_options
        self._process = self._spawn([*command, "kafka.Kafka", str(self._home / "server.properties")])
        try:
            self._wait_ready(self._process)
        except BaseException:
            self.stop()
            raise

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Stop all threads of the broker during the block, which must be shorter than clients' timeouts."""
        process = self._process
        assert process is not None, "the broker has not been started"
        process.send_signal(signal.SIGSTOP)
        try:
            wait_stopped(process.pid, SUSPEND_SECONDS)
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    def link_files(self, into: Path) -> Mapping[Path, int]:
        """Hard links to the broker's files, all as of one moment, and the size of each at that moment.

        A broker that starts on them finds what a kill at that moment would have left.
        """
        with self.suspended():
            return link_log(self._log_dir, into)

    def stop(self) -> None:
        """Shut the broker down, by force when it takes too long. A second call does nothing."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            log.warning("embedded broker did not stop in time, and is killed: seconds=%.0f", STOP_SECONDS)
            process.kill()
            process.wait()
        assert process.stdin is not None
        process.stdin.close()

    def _make_folders(self) -> None:
        try:
            self._log_dir.mkdir(parents=True, exist_ok=True)
            self.log_file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as cause:
            raise StartError(
                f'the data folder "{self._settings.data_dir}" cannot be written',
                detail=f"{cause}.",
                hint="Choose another with --data-dir.",
            ) from cause

    def _choose_identity(self) -> Identity:
        file = self._home / IDENTITY
        stored = stored_identity(self._settings.data_dir)
        port = self._choose_port(stored)
        controller_port = (
            stored.controller_port if stored and is_free(stored.controller_port) else free_port(other_than=port)
        )
        chosen = Identity(stored.cluster_id if stored else new_cluster_id(), port, controller_port)
        if chosen != stored:
            write_whole(file, json.dumps(asdict(chosen)))
        return chosen

    def _choose_port(self, stored: Identity | None) -> int:
        configured = self._settings.broker_port
        port = configured or (stored.port if stored else free_port())
        if is_free(port):
            return port
        if configured:
            raise StartError(
                f"port {port} of the embedded Kafka broker is in use",
                hint=f"Choose another with --broker-port, or use the Kafka that runs there: --kafka {LOOPBACK}:{port}.",
            )
        log.warning("embedded broker uses another port: in_use=%d", port)
        return free_port()

    def _write_configuration(self, identity: Identity) -> None:
        ports = {"host": LOOPBACK, "port": identity.port, "controller_port": identity.controller_port}
        write_whole(self._home / "server.properties", PROPERTIES.format(log_dir=escaped(self._log_dir), **ports))
        write_whole(self._home / "log4j2.properties", LOGGING.format(file=escaped(self.log_file)))

    def _format(self, command: Sequence[str], identity: Identity) -> None:
        storage_tool = ["kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", identity.cluster_id]
        done = subprocess.run(
            [*command, *storage_tool, "-c", str(self._home / "server.properties")], capture_output=True, text=True
        )
        if done.returncode != 0:
            raise StartError(
                "the folder of the embedded Kafka broker cannot be formatted",
                detail="\n".join((done.stdout + done.stderr).strip().splitlines()[-10:]),
            )

    def _spawn(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        output = self.log_file.with_suffix(".out").open("wb")
        with output:
            # A session of its own: an interrupt from the terminal is for the server, which then stops the broker.
            return subprocess.Popen(
                ["/bin/sh", "-c", WATCHED, "holdfast-kafka", *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._home,
                start_new_session=True,
            )

    def _wait_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS
        assert self._identity is not None
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise self._failed(f"ended with status {process.returncode}")
            if answers(self._identity.port) and serves(self.bootstrap):
                return
            time.sleep(0.05)
        raise self._failed(f"did not answer within {START_SECONDS:.0f} s")

    def _failed(self, how: str) -> StartError:
        last_lines = tail(self.log_file, 15) + tail(self.log_file.with_suffix(".out"), 5)
        return StartError(
            f"the embedded Kafka broker {how}",
            detail=f'The end of "{self.log_file}":\n{last_lines}',
            hint="To use another Kafka instead, start with --kafka host:port.",
        )


def serves(bootstrap: str) -> bool:
    """Whether a broker answers and is registered with its controller."""
    quiet = logging.getLogger(f"{__name__}.probe")
    quiet.setLevel(logging.CRITICAL)
    client = AdminClient({"bootstrap.servers": bootstrap, "socket.timeout.ms": 2000}, logger=quiet)
    try:
        return bool(client.list_topics(timeout=2).brokers)
    except KafkaException:
        return False


def answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex((LOOPBACK, port)) == 0


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def free_port(*, other_than: int = 0) -> int:
    for _ in range(1000):
        port = PORTS.start + secrets.randbelow(len(PORTS))
        if port != other_than and is_free(port):
            return port
    raise StartError(f"no port from {PORTS.start} to {PORTS.stop - 1} is free on {LOOPBACK}")


def new_cluster_id() -> str:
    """A random UUID in Kafka's base64 form; a leading dash would be read as an option."""
    while (text := base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")).startswith("-"):
        pass
    return text


def wait_released(lock: Path, seconds: float) -> None:
    """Wait until no broker locks its folder."""
    deadline = time.monotonic() + seconds
    while not unlocked(lock):
        if time.monotonic() > deadline:
            raise StartError(
                f'a Kafka broker still uses the folder "{lock.parent}"',
                detail=f"It holds the lock {lock}, and did not end within {seconds:.0f} s.",
                hint="Stop the server that started it, or choose another folder with --data-dir.",
            )
        time.sleep(0.1)


def wait_stopped(pid: int, seconds: float) -> None:
    """Wait until every thread of a child that got SIGSTOP has stopped."""
    deadline = time.monotonic() + seconds
    while os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG) is None:
        if time.monotonic() > deadline:
            raise KafkaError(f"the embedded Kafka broker could not be suspended within {seconds:.0f} s")
        time.sleep(0.001)


def unlocked(lock: Path) -> bool:
    if not lock.exists():
        return True
    with lock.open("rb+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


def write_whole(path: Path, contents: str) -> None:
    """Replace a file atomically: a crash leaves the old contents or the new."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(contents, encoding="utf-8")
    os.replace(new, path)


def escaped(path: Path) -> str:
    return str(path).replace("\\", "\\\\")


def tail(path: Path, lines: int) -> str:
    try:
        return "".join(f"{line}\n" for line in path.read_text("utf-8", errors="replace").splitlines()[-lines:])
    except OSError:
        return ""
