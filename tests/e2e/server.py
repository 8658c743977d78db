"""A real server as a child process: started, queried over HTTP, killed, and restarted in its folder."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil

START_SECONDS = 150.0
"""Spark takes about 10 s to start on an idle machine; test machines are not idle."""
ANSWER_SECONDS = 120.0
GONE_SECONDS = 20.0
MARK = "\n==== "
"""Marks each start in the log."""
SMALL = {"spark_driver_memory": "1g", "store_memory": "512MB"}
"""Settings that let several servers share a machine."""

T = TypeVar("T")


def client() -> httpx.Client:
    """A client that connects for each request, as servers die, and has no TLS, whose set-up takes 30 ms."""
    return httpx.Client(verify=False, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))


class Refused(Exception):
    """The server rejected a request."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(what: str, found: Callable[[], T | None], seconds: float = 60.0, every: float = 0.2) -> T:
    """Poll `found` until it returns something true, and return that; fail with `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = found()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds:.0f} s")
        time.sleep(every)


@dataclass
class Server:
    """A data folder and the process that serves it, across restarts."""

    data_dir: Path
    kafka: str | None
    service_id: str
    settings: Mapping[str, str] = field(default_factory=dict)
    """More settings, each passed as an environment variable."""
    clock: Path | None = None
    """The file by which its clock is stepped."""
    broker_port: int | None = None
    """Set for a server with an embedded broker, whose address is `kafka`."""
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    family: list[psutil.Process] = field(default_factory=list)
    """The child processes of the last process, as of the last `look_at_family`."""
    http: httpx.Client = field(default_factory=client)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log_file(self) -> Path:
        return self.data_dir.with_name(f"{self.data_dir.name}.log")

    def log(self) -> str:
        """The last lines that the processes of this folder have written."""
        return self.log_file.read_text("utf-8", errors="replace")[-6000:] if self.log_file.exists() else ""

    def log_of_last_start(self) -> str:
        return self.log().rpartition(MARK)[2]

    # -- processes -----------------------------------------------------------------------------------

    def launch(self, *flags: str, crash: str | None = None) -> subprocess.Popen[bytes]:
        """Start the process without waiting for it."""
        assert not self.alive, "the server is running"
        command = [str(Path(sys.executable).with_name("holdfast")), "start", "--data-dir", str(self.data_dir)]
        command += ["--service-id", self.service_id, "--http-port", str(self.port), *flags]
        if self.broker_port is not None:
            command += ["--broker-port", str(self.broker_port)]
        elif self.kafka is not None:
            command += ["--kafka", self.kafka]
        settings = {f"HOLDFAST_{name.upper()}": value for name, value in {**SMALL, **self.settings}.items()}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        armed = {"HOLDFAST_CRASH": crash} if crash else {}
        armed |= {"HOLDFAST_CLOCK": str(self.clock)} if self.clock else {}
        with self.log_file.open("ab") as log:
            log.write(f"{MARK}{' '.join(command)} {armed}\n".encode())
            log.flush()
            self.process = subprocess.Popen(
                command,
                env={**inherited, **settings, **armed},
                cwd=self.log_file.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.family = []
        return self.process

    def start(self, *flags: str, crash: str | None = None) -> None:
        """Start, and return once the server responds."""
        process = self.launch(*flags, crash=crash)
        assert self.wait_ready(), f"the server ended with status {process.poll()}:\n{self.log()}"

    def wait_ready(self) -> bool:
        """Wait until the server responds; False if the process ends first."""
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if not self.alive:
                return False
            if time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"the server did not answer within {START_SECONDS:.0f} s:\n{self.log()}")
            time.sleep(0.1)
        self.look_at_family()
        return True

    def _answers(self) -> bool:
        try:
            return self.http.get(f"{self.url}/info", timeout=5.0).status_code == 200
        except httpx.TransportError:
            return False

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def look_at_family(self) -> list[psutil.Process]:
        """Record all child processes, to check later whether they have ended."""
        if self.process is not None and self.alive:
            with suppress(psutil.NoSuchProcess):
                self.family = psutil.Process(self.process.pid).children(recursive=True)
        return self.family

    def survivors(self) -> list[psutil.Process]:
        """The child processes of the server that are still running."""
        return [p for p in self.family if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]

    def check_nothing_left(self, when: str) -> None:
        """Fail if a child process of the server, which has ended, goes on."""
        psutil.wait_procs(self.family, timeout=GONE_SECONDS)
        assert not self.survivors(), f"{when}: {names_of(self.survivors())}"

    def kill(self) -> None:
        """Send SIGKILL, which simulates a crash."""
        if self.process is not None and self.alive:
            self.look_at_family()
            self.process.kill()
            self.process.wait(30)

    def wait_ended(self, seconds: float) -> int:
        """Wait for a process to end by itself; returns its exit status, negative for a signal."""
        assert self.process is not None
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the server still runs after {seconds:.0f} s:\n{self.log()}") from None

    def terminate(self, seconds: float = 60.0) -> int:
        """SIGTERM; returns the exit status."""
        assert self.process is not None
        self.look_at_family()
        self.process.send_signal(signal.SIGTERM)
        return self.wait_ended(seconds)

    def clean_up(self) -> None:
        """Stop everything that was started, whatever the test left running."""
        self.kill()
        self.http.close()
        for process in self.survivors():
            try:
                process.wait(10)
            except psutil.TimeoutExpired:
                process.kill()

    # -- requests ------------------------------------------------------------------------------------

    def sql(self, text: str, properties: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """Run statements on /ksql."""
        body = {"ksql": text, "streamsProperties": properties or {}}
        answer = self.http.post(f"{self.url}/ksql", json=body, timeout=ANSWER_SECONDS)
        if answer.status_code != 200:
            raise Refused(f"{text}\n{answer.text}")
        return list(answer.json())

    def pull(self, text: str) -> list[list[Any]]:
        """The rows of a pull query."""
        answer = self.http.post(f"{self.url}/query-stream", json={"sql": text}, timeout=ANSWER_SECONDS)
        if answer.status_code != 200:
            raise Refused(f"{text}\n{answer.text}")
        return [json.loads(line) for line in answer.text.splitlines()[1:]]

    def push(self, text: str, enough: Callable[[list[Any]], bool], seconds: float = 60.0) -> list[Any]:
        """The rows of a push query with `earliest`, until there are enough of them."""
        rows: list[Any] = []
        deadline = time.monotonic() + seconds
        body = {"sql": text, "properties": {"auto.offset.reset": "earliest"}}
        try:
            with self.http.stream("POST", f"{self.url}/query-stream", json=body, timeout=seconds) as answer:
                lines = answer.iter_lines()
                if answer.status_code != 200:
                    raise Refused(f"{text}\n{''.join(lines)}")
                next(lines)
                while not enough(rows) and time.monotonic() < deadline:
                    rows.append(json.loads(next(lines)))
        except httpx.ReadTimeout:
            pass
        assert enough(rows), f"{text}: only {rows} within {seconds:.0f} s"
        return rows

    def objects(self) -> set[str]:
        """The names of all streams and tables."""
        streams, tables = self.sql("SHOW STREAMS; SHOW TABLES;")
        return {found["name"] for found in (*streams["streams"], *tables["tables"])}

    def queries(self) -> dict[str, dict[str, Any]]:
        """The rows of SHOW QUERIES, by the name of the sink."""
        (shown,) = self.sql("SHOW QUERIES;")
        return {sink: query for query in shown["queries"] for sink in query["sinks"]}


@contextmanager
def servers(folder: Path, kafka: str | None) -> Iterator[Callable[..., Server]]:
    """Creates servers below a folder; all are stopped when the block ends."""
    made: list[Server] = []

    def make(service_id: str, name: str = "data", **settings: str) -> Server:
        server = Server(folder / f"{service_id}-{name}", kafka, service_id, settings)
        made.append(server)
        return server

    try:
        yield make
    finally:
        for server in made:
            server.clean_up()


def names_of(processes: Sequence[psutil.Process]) -> list[str]:
    """The command lines of processes, for messages."""
    return [" ".join(process.cmdline())[:120] for process in processes if process.is_running()]
