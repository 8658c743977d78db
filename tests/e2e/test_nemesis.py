"""Random faults under load: at the end, all that did not lose a topic runs, and equals the model.

A run is chosen by its seed, which a failure prints with the faults so far: HOLDFAST_NEMESIS_SEED=n repeats the choices
in `make soak`.
"""

import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread

import httpx
import pytest

from .copies import Copy
from .faults import Faults, authorizing_broker, small_disk
from .model import LATER
from .rig import CATCH_UP_SECONDS, Rig
from .server import Refused, Server, wait_for
from .topics import create_topics, topic_names

VICTIMS = """
CREATE STREAM sized WITH (KAFKA_TOPIC = '{0}_sized') AS SELECT k, n, xx FROM big WHERE xx > 4 EMIT CHANGES;
CREATE STREAM denied WITH (KAFKA_TOPIC = '{0}_denied') AS SELECT k, n, xx FROM big WHERE xx > 4 EMIT CHANGES;
CREATE STREAM doomed WITH (KAFKA_TOPIC = '{0}_doomed') AS SELECT k, n FROM events EMIT CHANGES;
CREATE STREAM spare (k STRING KEY, n BIGINT) WITH (KAFKA_TOPIC = '{0}_spare', VALUE_FORMAT = 'JSON');
CREATE TABLE truncated AS SELECT k, COUNT(*) AS c FROM spare GROUP BY k EMIT CHANGES;
CREATE STREAM gone (k STRING KEY, n BIGINT) WITH (KAFKA_TOPIC = '{0}_gone', VALUE_FORMAT = 'JSON');
CREATE TABLE orphaned AS SELECT k, COUNT(*) AS c FROM gone GROUP BY k EMIT CHANGES;
CREATE TABLE notes (id INT PRIMARY KEY, note STRING)
  WITH (KAFKA_TOPIC = '{0}_notes', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
"""
"""Queries whose topics are hit by faults, and a table for INSERTs."""

SHORT = [
    "kill_server", "deny_writes", "step_clock", "suspend_broker", "lower_size_limit", "kill_spark", "delete_sink",
    "delete_source",
]  # fmt: skip

PAUSED = ("BIG", "CHAINED", "TOTALS", "LOW_TOTALS", "BY_TAG", "GOOD_FACTS", "SIZED", "DENIED")
REBUILT = {"LOW_TOTALS", "GOOD_FACTS", "EXTRA_TOTALS", "EXTRA_FACTS"}
"""Tables over tables: RESUME rebuilds them."""
FULL_DISK = ("the disk of the data folder is full", "the store cannot be read or written")
"""In the log of a server that a full disk has ended: the store has failed for good."""
NO_ANSWER = (Refused, httpx.HTTPError)
"""A server that a fault ends may do so a moment after it, and refuses statements during one."""


@pytest.mark.timeout(1800)
def test_faults_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    """The short form: a few kinds of faults, each short."""
    with nemesis(tmp_path, seed=11, longest=6.0) as run:
        run.faults_of(SHORT)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_half_an_hour_of_faults_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    seed = int(os.environ.get("HOLDFAST_NEMESIS_SEED") or random.SystemRandom().randrange(1_000_000))
    minutes = float(os.environ.get("HOLDFAST_NEMESIS_MINUTES") or 30)
    with nemesis(tmp_path, seed=seed, longest=400.0) as run:
        run.faults_for(60 * minutes)


@contextmanager
def nemesis(folder: Path, *, seed: int, longest: float) -> Iterator["Nemesis"]:
    """A server under load, in the hands of the nemesis; compared with the model when the block ends."""
    choose, data = random.Random(seed), folder / "nemesis-data"
    with ExitStack() as opened:
        broker = opened.enter_context(authorizing_broker(folder / "broker"))
        disk = opened.enter_context(small_disk(data))
        server = Server(data, broker.bootstrap, "nemesis", clock=folder / "clock")
        opened.callback(server.clean_up)
        rig = opened.enter_context(Rig(server, seed=seed))
        run = Nemesis(rig, Faults(rig, broker, choose, disk=disk, longest=longest), choose, folder / "copy.db")
        opened.callback(run.close)
        try:
            run.begin()
            yield run
            run.finish()
        except Exception as error:
            raise AssertionError(f"seed {seed}, faults: {', '.join(run.history)}\n{error}") from error


class Nemesis:
    """Chooses faults and statements, and keeps the server running as a supervisor of the system would."""

    def __init__(self, rig: Rig, faults: Faults, choose: random.Random, copy: Path) -> None:
        self._rig, self._server, self._faults, self._choose = rig, rig.server, faults, choose
        self._copy = Copy(rig.server, copy, ("id", "v", "n"))
        self.history: list[str] = []
        self._notes, self._attempts = set[int](), 0

    def begin(self) -> None:
        rig = self._rig
        rig.rebuilt, rig.backfilled = REBUILT, True
        create_topics(rig.kafka, f"{rig.prefix}_spare", f"{rig.prefix}_gone")
        rig.begin()
        self._server.sql(VICTIMS.format(rig.prefix))
        rig.objects |= {"SIZED", "DENIED"}
        self._copy.create_hold()
        self._copy.start()

    def close(self) -> None:
        self._copy.kill()

    def faults_for(self, seconds: float) -> None:
        """Every fault once, in a random order, again and again."""
        names = [fault.__name__ for fault in self._faults.all()]
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._choose.shuffle(names)
            self.faults_of(names, until=until)

    def faults_of(self, names: list[str], *, until: float = float("inf")) -> None:
        for name in names:
            if time.monotonic() < until:
                self._fault(name)

    def _fault(self, name: str) -> None:
        self.history.append(name)
        statement = Thread(target=self._statement, args=[self._choose.random(), self._choose.choice(PAUSED)])
        statement.start()
        time.sleep(self._choose.uniform(0, 2))
        with suppress(*NO_ANSWER):
            getattr(self._faults, name)()
        statement.join()
        self._revive(name)
        if self._choose.random() < 0.5:
            self._faults.heal()
            with suppress(*NO_ANSWER):
                self._resume()
        time.sleep(self._choose.uniform(0, 4))

    def _statement(self, which: float, name: str) -> None:
        """A statement during the fault, which may fail or not be answered."""
        try:
            if which < 0.4:
                self._attempts += 1
                note = self._attempts
                self._server.sql(f"INSERT INTO notes (id, note) VALUES ({note}, 'note {note}');")
                self._notes.add(note)
            elif which < 0.7:
                self._server.sql(f"PAUSE {self._server.queries()[name]['id']};")
            else:
                self._rig.ensure(list(LATER)[: int(which * 10) - 5])
        except (*NO_ANSWER, KeyError, AssertionError):
            pass

    def _revive(self, fault: str) -> None:
        """Start the server if it was killed or its disk was full, and the client of the copy."""
        if not self._server.alive:
            self._start_again(fault)
        wait_for("the server answers", self._answers, CATCH_UP_SECONDS)
        self._copy.start()

    def _start_again(self, fault: str) -> None:
        """Start the server; no other fault may end it. A fatal error of the store may be found with the next one."""
        assert self._server.process is not None
        status, log = self._server.process.poll(), self._server.log()
        killed = status == -9 and fault == "kill_server"
        full = "fill_disk" in self.history[-2:] and any(text in log for text in FULL_DISK)
        assert killed or full, f"the server ended with status {status} after {fault}:\n{log}"
        assert self._rig.start(after=fault), self._server.log()

    def _answers(self) -> bool:
        if not self._server.alive:
            self._start_again(self.history[-1])
        try:
            return bool(self._server.queries())
        except NO_ANSWER:
            return False

    def _resume(self) -> None:
        """Resume what is paused, and what a fault has failed that is over."""
        for sink, query in self._server.queries().items():
            if query["state"] == "RUNNING" or (query["state"] == "ERROR" and sink in self._faults.lasting):
                continue
            if query["state"] == "ERROR":
                self._server.sql(f"PAUSE {query['id']};")
            self._server.sql(f"RESUME {query['id']};")

    def finish(self) -> None:
        self._faults.heal()
        self._revive("the last fault")
        for name in LATER:
            assert self._rig.ensure([name])
        try:
            wait_for("every query runs that lost no topic", self._all_run, CATCH_UP_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._rig.query_states()}\n{self._server.log()}") from None
        self._rig.finish()
        self._copy.finish()
        wait_for("every INSERT that was answered is there", self._notes_are_there, CATCH_UP_SECONDS)
        for name in sorted(self._faults.lasting):
            wait_for(f"{name} says what it lost", lambda name=name: self._is_reported(name), CATCH_UP_SECONDS)

    def _is_reported(self, name: str) -> bool:
        """A query that lost its topic says so; a sink topic comes back with the next statement, and its query runs."""
        query = self._server.queries()[name]
        is_back = query["state"] == "RUNNING" and self._rig.sink(name) in topic_names(self._rig.kafka)
        return is_back or (query["state"] == "ERROR" and bool(query["reason"]))

    def _all_run(self) -> bool:
        if not self._answers():
            return False
        self._resume()
        queries = self._server.queries()
        return all(query["state"] == "RUNNING" for name, query in queries.items() if name not in self._faults.lasting)

    def _notes_are_there(self) -> bool:
        found = [row[0] for row in self._server.pull("SELECT id FROM notes;")]
        assert len(found) == len(set(found))
        return self._notes <= set(found)
