"""A real server as a child process: started, asked over HTTP, killed, and started again in its folder."""

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
"""Spark takes some 10 s to start on a quiet machine; the machines of tests are not quiet."""
ANSWER_SECONDS = 120.0
MARK = "\n==== "
"""What begins each start in the log."""
SMALL = {"spark_driver_memory": "1g", "store_memory": "512MB"}
"""Settings that let several servers share a machine."""

T = TypeVar("T")


class Refused(Exception):
    """The server's answer to a request that it did not take."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(what: str, found: Callable[[], T | None], seconds: float = 60.0, every: float = 0.2) -> T:
    """What `found` gives once it is true; an error that says `what` when it never is."""
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
    """One data folder and the process that serves it, now or again later."""

    data_dir: Path
    kafka: str | None
    service_id: str
    settings: Mapping[str, str] = field(default_factory=dict)
    """More settings, each given as an environment variable."""
    broker_port: int | None = None
    """Of a server with a broker of its own, when `kafka` is that broker's address."""
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    family: list[psutil.Process] = field(default_factory=list)
    """What the last process had started, as of the last look."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log_file(self) -> Path:
        return self.data_dir.with_name(f"{self.data_dir.name}.log")

    def log(self) -> str:
        """The end of what the processes of this folder have said."""
        return self.log_file.read_text("utf-8", errors="replace")[-6000:] if self.log_file.exists() else ""

    def log_of_last_start(self) -> str:
        return self.log().rpartition(MARK)[2]

    # -- life ----------------------------------------------------------------------------------------

    def launch(self, *flags: str, crash: str | None = None) -> subprocess.Popen[bytes]:
        """Start the process and do not wait for it."""
        assert not self.alive, "the server is running"
        command = [str(Path(sys.executable).with_name("holdfast")), "start", "--data-dir", str(self.data_dir)]
        command += ["--service-id", self.service_id, "--http-port", str(self.port), *flags]
        if self.broker_port is not None:
            command += ["--broker-port", str(self.broker_port)]
        elif self.kafka is not None:
            command += ["--kafka", self.kafka]
        told = {f"HOLDFAST_{name.upper()}": value for name, value in {**SMALL, **self.settings}.items()}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        armed = {"HOLDFAST_CRASH": crash} if crash else {}
        with self.log_file.open("ab") as log:
            log.write(f"{MARK}{' '.join(command)} {armed}\n".encode())
            log.flush()
            self.process = subprocess.Popen(
                command,
                env={**kept, **told, **armed},
                cwd=self.log_file.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.family = []
        return self.process

    def start(self, *flags: str, crash: str | None = None) -> None:
        """Start, and return once requests are answered."""
        process = self.launch(*flags, crash=crash)
        assert self.wait_ready(), f"the server ended with status {process.poll()}:\n{self.log()}"

    def wait_ready(self) -> bool:
        """Wait until requests are answered; False when the process ends before."""
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
            return httpx.get(f"{self.url}/info", timeout=5.0).status_code == 200
        except httpx.TransportError:
            return False

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def look_at_family(self) -> list[psutil.Process]:
        """Note every process below the server's, to tell later whether they are gone."""
        if self.process is not None and self.alive:
            with suppress(psutil.NoSuchProcess):
                self.family = psutil.Process(self.process.pid).children(recursive=True)
        return self.family

    def left_behind(self) -> list[psutil.Process]:
        """What the server had started and still runs."""
        return [p for p in self.family if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]

    def kill(self) -> None:
        """SIGKILL, as a failing machine does it."""
        if self.process is not None and self.alive:
            self.look_at_family()
            self.process.kill()
            self.process.wait(30)

    def wait_ended(self, seconds: float) -> int:
        """The exit status of a process that is to end by itself; a signal's number is negative."""
        assert self.process is not None
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the server still runs after {seconds:.0f} s:\n{self.log()}") from None

    def terminate(self, seconds: float = 60.0) -> int:
        """SIGTERM; gives the exit status."""
        assert self.process is not None
        self.look_at_family()
        self.process.send_signal(signal.SIGTERM)
        return self.wait_ended(seconds)

    def clean_up(self) -> None:
        """End everything that was started here, whatever the test left."""
        self.kill()
        for process in self.left_behind():
            try:
                process.wait(10)
            except psutil.TimeoutExpired:
                process.kill()

    # -- requests ------------------------------------------------------------------------------------

    def sql(self, text: str, properties: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """Run statements on /ksql."""
        body = {"ksql": text, "streamsProperties": properties or {}}
        answer = httpx.post(f"{self.url}/ksql", json=body, timeout=ANSWER_SECONDS)
        if answer.status_code != 200:
            raise Refused(f"{text}\n{answer.text}")
        return list(answer.json())

    def pull(self, text: str) -> list[list[Any]]:
        """The rows of a pull query."""
        answer = httpx.post(f"{self.url}/query-stream", json={"sql": text}, timeout=ANSWER_SECONDS)
        if answer.status_code != 200:
            raise Refused(f"{text}\n{answer.text}")
        return [json.loads(line) for line in answer.text.splitlines()[1:]]

    def push(self, text: str, enough: Callable[[list[Any]], bool], seconds: float = 60.0) -> list[Any]:
        """The rows of a push query from the earliest on, until there are enough of them."""
        rows: list[Any] = []
        deadline = time.monotonic() + seconds
        body = {"sql": text, "properties": {"auto.offset.reset": "earliest"}}
        try:
            with httpx.stream("POST", f"{self.url}/query-stream", json=body, timeout=seconds) as answer:
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
        """What SHOW QUERIES tells, by the name of the sink."""
        (told,) = self.sql("SHOW QUERIES;")
        return {sink: query for query in told["queries"] for sink in query["sinks"]}


@contextmanager
def servers(folder: Path, kafka: str | None) -> Iterator[Callable[..., Server]]:
    """Makes servers below a folder; all are ended with the block."""
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
    """For messages: which processes these are."""
    return [" ".join(process.cmdline())[:120] for process in processes if process.is_running()]
