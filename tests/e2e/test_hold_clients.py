"""A client with a hold is killed together with the server, again and again: its copy ends as the table is."""

import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from holdfast.crash import CrashPoint
from holdfast.kafka.broker import EmbeddedBroker

from .hold_client import MISFIT
from .server import Server, servers, wait_for
from .test_subscribers import Writing
from .topics import create_topics

TABLE = """
CREATE TABLE facts (k STRING PRIMARY KEY, n BIGINT, s STRING) WITH (KAFKA_TOPIC = '{0}_facts', VALUE_FORMAT = 'JSON');
"""
OF_HOLDS: tuple[CrashPoint, ...] = ("before_hold_advance", "after_hold_advance")
POINTS: tuple[CrashPoint, ...] = (
    *OF_HOLDS,
    "before_store_commit",
    "after_store_commit",
    "before_compaction_slice",
    "after_compaction_slice",
    "before_time_reservation",
    "after_time_reservation",
)


@pytest.fixture
def make_server(tmp_path: Path, broker: EmbeddedBroker) -> Iterator[Callable[..., Server]]:
    with servers(tmp_path, broker.bootstrap) as make:
        yield make


@pytest.mark.timeout(1500)
def test_a_copy_survives_kills_of_both(make_server: Callable[..., Server], tmp_path: Path) -> None:
    copy_and_kill(make_server("copied"), tmp_path / "copy.db", rounds=3)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_copy_survives_a_hundred_kills_of_both(make_server: Callable[..., Server], tmp_path: Path) -> None:
    copy_and_kill(make_server("copied_long"), tmp_path / "copy.db", rounds=100)


def copy_and_kill(server: Server, copy: Path, *, rounds: int) -> None:
    assert server.kafka is not None
    create_topics(server.kafka, f"{server.service_id}_facts", f"{server.service_id}_events")
    server.start()
    writing, chances = Writing(server.kafka, server.service_id), random.Random(11)
    writing.some(500, gone=0)
    server.sql(TABLE.format(server.service_id))
    # Waits until the table is built.
    server.sql("CREATE HOLD copied ON facts;")
    writing.start()
    armed, places = False, set[int | None]()
    for round_ in range(rounds):
        with following(server, copy) as client:
            if armed:
                # It dies by itself, in the middle of what it does.
                wait_for("the server dies", lambda: not server.alive, 180)
            else:
                time.sleep(chances.uniform(0.2, 4.0))
            # Which of both goes first is a matter of chance.
            for die in chances.sample([server.kill, client.kill], 2):
                die()
        places.add(place(copy))
        arm = f"{chances.choice(POINTS)}:{chances.randint(1, 5)}" if round_ % 2 == 0 and round_ + 1 < rounds else None
        server.launch(crash=arm)
        armed = server.wait_ready() and arm is not None
        if not server.alive:
            server.start()
    writing.stopping.set()
    writing.join(120)
    with following(server, copy) as client:
        wait_for("the copy is as the table", lambda: alive(client) and same(server, copy), 300)
    (hold,) = server.sql("SHOW HOLDS;")[0]["holds"]
    assert hold["advanced"] == 0, "the client moved the hold on, and nobody else"
    assert len(places - {None}) > rounds // 4, "the client got on between the kills"


@contextmanager
def following(server: Server, copy: Path) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "tests.e2e.hold_client", server.url, str(copy)]
    with copy.with_suffix(".log").open("ab") as log:
        client = subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=log, stderr=subprocess.STDOUT)
    try:
        yield client
    finally:
        client.kill()
        client.wait(30)
    assert client.returncode != MISFIT, copy.with_suffix(".log").read_text()


def place(copy: Path) -> int | None:
    """Up to which time the copy is whole."""
    with closing(sqlite3.connect(copy, timeout=30)) as opened:
        if not opened.execute("SELECT 1 FROM sqlite_master WHERE name = 'place'").fetchall():
            return None
        (whole,) = opened.execute("SELECT max(whole) FROM place").fetchone()
        return whole


def alive(client: "subprocess.Popen[bytes]") -> bool:
    assert client.poll() is None, f"the client ended with {client.returncode}"
    return True


def same(server: Server, copy: Path) -> bool:
    """Whether the copy is as the table, and still is when all that was on its way has come."""
    for _ in range(2):
        rows = set(map(tuple, server.pull("SELECT k, n, s FROM facts;")))
        with sqlite3.connect(copy, timeout=30) as opened:
            if rows != set(opened.execute("SELECT k, n, s FROM facts").fetchall()):
                return False
        time.sleep(2)
    return True
