"""Materialized views on real Kafka: a server that is killed gives the same answers for the same times."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.kafka.broker import EmbeddedBroker

from .server import Server, servers, wait_for
from .topics import create_topics, write

SETUP = """
CREATE STREAM mv_events (id STRING KEY, k STRING, n INT) WITH (KAFKA_TOPIC = 'mv_events', VALUE_FORMAT = 'JSON');
CREATE TABLE mv_names (k STRING PRIMARY KEY, name STRING) WITH (KAFKA_TOPIC = 'mv_names', VALUE_FORMAT = 'JSON');
CREATE MATERIALIZED VIEW sums WITH (RETAIN HISTORY FOR '1h') AS
  SELECT k, COUNT(*) AS c, SUM(n) AS s FROM mv_events GROUP BY k;
CREATE VIEW large AS SELECT k, s FROM sums WHERE s > 10;
CREATE MATERIALIZED VIEW named WITH (RETAIN HISTORY FOR '1h') AS
  SELECT l.k AS k, name, s FROM large l JOIN mv_names n ON l.k = n.k;
"""
KILLS = 3
Rows = list[list[Any]]
Reading = tuple[int, str, Rows]


@pytest.fixture
def make_server(tmp_path: Path, broker: EmbeddedBroker) -> Iterator[Callable[..., Server]]:
    with servers(tmp_path, broker.bootstrap) as make:
        yield make


def as_of(server: Server, at: int, name: str) -> Rows:
    return server.pull(f"SELECT * FROM {name} ORDER BY k AS OF {at};")


def rows(server: Server, name: str) -> Rows:
    return server.pull(f"SELECT * FROM {name} ORDER BY k;")


def counted(server: Server) -> int:
    return sum(row[1] for row in rows(server, "sums"))


@pytest.mark.timeout(900)
def test_every_time_that_was_promised_is_there_after_kills(
    make_server: Callable[..., Server], broker: EmbeddedBroker
) -> None:
    kafka = broker.bootstrap
    create_topics(kafka, "mv_events", "mv_names", partitions=2)
    names = {f"k{i}": f"name {i}" for i in range(7)}
    write(kafka, "mv_names", [(k, json.dumps({"name": name}).encode()) for k, name in names.items()])
    server = make_server("materialized")
    server.start()
    server.sql(SETUP)
    wait_for("the views are built", lambda: server.queries()["NAMED"]["state"] == "RUNNING", seconds=60)
    counts: dict[str, tuple[int, int]] = {}
    # A time that was answered stays, also when nothing has happened since.
    at = int(time.time() * 1000)
    readings: list[Reading] = [(at, name, as_of(server, at, name)) for name in ("sums", "named")]
    server.kill()
    server.start()
    number = 0
    for _ in range(KILLS):
        for _ in range(4):
            records = []
            for _ in range(25):
                k, n = f"k{number * 5 % 7}", number % 11
                c, s = counts.get(k, (0, 0))
                counts[k] = (c + 1, s + n)
                records.append((f"e{number}", json.dumps({"k": k, "n": n}).encode()))
                number += 1
            write(kafka, "mv_events", records)
            at = int(time.time() * 1000)
            readings += [(at, name, as_of(server, at, name)) for name in ("sums", "named")]
        wait_for("the round is counted", lambda all_=number: counted(server) == all_, seconds=60)
        at = int(time.time() * 1000)
        readings += [(at, name, as_of(server, at, name)) for name in ("sums", "named")]
        write(kafka, "mv_names", [(k, json.dumps({"name": name}).encode()) for k, name in names.items()])
        server.kill()
        server.start()
        for at, name, found in readings:
            assert as_of(server, at, name) == found, f"{name} as of {at} is not what it was"
    summed = [[k, c, s] for k, (c, s) in sorted(counts.items())]
    wait_for("all events are counted", lambda: rows(server, "sums") == summed, seconds=60)
    shown = [[k, names[k], s] for k, (_, s) in sorted(counts.items()) if s > 10]
    wait_for("the join is as far", lambda: rows(server, "named") == shown, seconds=60)
    assert len({json.dumps(found) for _, name, found in readings if name == "sums"}) > 2
