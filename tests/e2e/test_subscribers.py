"""Clients follow a table while it is written, lose their connections, and resume: each ends with the current table."""

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import pytest

from holdfast.client import Change, Client, Progress, Row
from holdfast.errors import HoldfastError

from .cuts import Cuts, CuttingTransport
from .server import Refused, Server, wait_for
from .topics import create_topics, producer

KEYS = [f"k{n:03}" for n in range(400)]
TABLES = """
CREATE TABLE facts (k STRING PRIMARY KEY, n BIGINT, s STRING)
  WITH (KAFKA_TOPIC = '{0}_facts', VALUE_FORMAT = 'JSON', RETAIN HISTORY FOR '1 hour');
CREATE STREAM events (k STRING KEY, n BIGINT) WITH (KAFKA_TOPIC = '{0}_events', VALUE_FORMAT = 'JSON');
CREATE TABLE totals WITH (RETAIN HISTORY FOR '1 hour') AS
  SELECT k, COUNT(*) AS n, SUM(n) AS total FROM events GROUP BY k;
"""
ALL = ["SELECT k, n, s FROM facts EMIT ALL;", "SELECT k, total * 2 AS twice FROM totals WHERE n > 1 EMIT ALL;"]
SUBSCRIBED = [
    "facts",
    "SELECT k, total FROM totals WHERE n > 1",
    "SELECT s, COUNT(*) AS c, SUM(n) AS n FROM facts GROUP BY s",
]
FINAL = {
    ALL[0]: "SELECT k, n, s FROM facts;",
    ALL[1]: "SELECT k, total * 2 AS twice FROM totals WHERE n > 1;",
    SUBSCRIBED[0]: "SELECT * FROM facts;",
    SUBSCRIBED[1]: "SELECT k, total FROM totals WHERE n > 1;",
    SUBSCRIBED[2]: "SELECT s, COUNT(*) AS c, SUM(n) AS n FROM facts GROUP BY s;",
}
CLIENTS, CHANCE = 20, 0.3
AWAY_SECONDS = 600.0

Rows = Counter[tuple[Any, ...]]


class Writing(Thread):
    """Writes to both topics until it is stopped."""

    def __init__(self, kafka: str, prefix: str) -> None:
        super().__init__(daemon=True)
        self._producer, self._prefix, self._random = producer(kafka), prefix, random.Random(7)
        self.stopping = Event()

    def some(self, count: int, *, gone: float = 0.1) -> None:
        for _ in range(count):
            key, n = self._random.choice(KEYS), self._random.randrange(1000)
            value = None if self._random.random() < gone else {"n": n, "s": "abcd"[n % 4]}
            self._producer.produce(f"{self._prefix}_facts", json.dumps(value) if value else None, key)
            self._producer.produce(f"{self._prefix}_events", json.dumps({"n": n}), key)
        assert self._producer.flush(60) == 0

    def run(self) -> None:
        while not self.stopping.wait(0.2):
            self.some(5)


class Following(Thread):
    """A client that applies the changes it receives. `rows` is its copy of the result."""

    def __init__(self, url: str, what: str, cuts: Cuts, number: int) -> None:
        super().__init__(daemon=True)
        self.what, self.rows, self.error = what, Counter[tuple[Any, ...]](), None
        self.stopping = Event()
        self._client = Client(url, transport=CuttingTransport(cuts, number, CHANCE))
        self.times: list[int] = []

    def run(self) -> None:
        try:
            self._follow()
        except Exception as error:
            self.error = error

    def _follow(self) -> None:
        raise NotImplementedError


class Subscriber(Following):
    """All that a user has to write is the `for`."""

    error: Exception | None

    def _follow(self) -> None:
        for received in self._client.subscribe(self.what, retry_seconds=AWAY_SECONDS):
            match received:
                case Change(time=at, diff=diff, row=row):
                    self.rows[tuple(row)] += diff
                    assert 0 <= self.rows[tuple(row)] <= 1, f"{row} at {at} came twice, or went and was not there"
                    self.rows += Counter()
                case Progress(time=at):
                    assert not self.times or at > self.times[-1], "times increase"
                    self.times.append(at)
            if self.stopping.is_set():
                return


class Emitted(Following):
    """EMIT ALL has no time to resume from: it begins again."""

    error: Exception | None

    def _follow(self) -> None:
        while not self.stopping.is_set():
            try:
                self._once()
            except HoldfastError:
                time.sleep(0.2)

    def _once(self) -> None:
        found: dict[Any, tuple[Any, ...]] = {}
        with self._client.stream(self.what) as stream:
            for part in stream.parts():
                match part:
                    case Row(tombstone=True) as row:
                        assert found.pop(row[0], None) is not None, f"{row} was not there"
                    case Row() as row:
                        assert stream.snapshot is not None or row[0] not in found, "a key comes once in a snapshot"
                        found[row[0]] = tuple(row)
                    case Progress():
                        self.rows = Counter(found.values())
                if self.stopping.is_set():
                    return


@pytest.mark.timeout(1500)
def test_clients_that_are_cut_end_with_the_table(make_server: Callable[..., Server]) -> None:
    follow_and_cut(make_server("subscribers"), least_cuts=10, kills=1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_clients_that_are_cut_often_end_with_the_table(make_server: Callable[..., Server]) -> None:
    follow_and_cut(make_server("subscribers_long"), least_cuts=50, kills=4)


def follow_and_cut(server: Server, *, least_cuts: int, kills: int) -> None:
    assert server.kafka is not None
    create_topics(server.kafka, f"{server.service_id}_facts", f"{server.service_id}_events")
    server.start()
    writing = Writing(server.kafka, server.service_id)
    writing.some(2_000, gone=0)
    server.sql(TABLES.format(server.service_id))
    wait_for("the tables are full", lambda: full(server), 300)
    cuts = Cuts()
    clients = [
        (Emitted if n % 2 else Subscriber)(server.url, (ALL if n % 2 else SUBSCRIBED)[n % (2 + (n + 1) % 2)], cuts, n)
        for n in range(CLIENTS)
    ]
    for thread in (writing, *clients):
        thread.start()
    for kill in range(kills + 1):
        part = least_cuts * (kill + 1) // (kills + 1)
        wait_for(
            f"{part} cuts of each kind",
            lambda part=part: all_well(clients, server) and min(cuts.in_snapshot, cuts.before_progress) >= part,
            600,
        )
        if kill < kills:
            server.kill()
            server.start()
    writing.stopping.set()
    writing.join(120)
    cuts.enabled = False
    for client in clients:
        wait_for(
            f"{client.what} is as the table",
            lambda client=client: all_well(clients, server) and client.rows == final(server, client.what),
            180,
        )
    assert min(cuts.in_snapshot, cuts.before_progress) >= least_cuts
    assert all(client.times for client in clients if isinstance(client, Subscriber))
    for client in clients:
        client.stopping.set()


def full(server: Server) -> bool:
    try:
        return all(len(server.pull(f"SELECT k FROM {name};")) > len(KEYS) * 0.9 for name in ("facts", "totals"))
    except Refused:  # they are still being built
        return False


def all_well(clients: list[Following], server: Server) -> bool:
    for client in clients:
        assert client.error is None, f"{client.what}: {client.error!r}\n{server.log()}"
    return True


def final(server: Server, what: str) -> Rows:
    return Counter(map(tuple, server.pull(FINAL[what])))
