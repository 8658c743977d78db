"""A transaction is there as a whole or not at all, wherever the server dies."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from holdfast.crash import CrashPoint
from holdfast.kafka.broker import EmbeddedBroker

from .server import Refused, Server, servers, wait_for
from .topics import create_topics

SETUP = """
CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC = '{0}_t', VALUE_FORMAT = 'JSON');
INSERT INTO t (id, n) VALUES ('a', 1);
CREATE HOLD a ON t; CREATE HOLD b ON t;
"""
SWAP = "DROP HOLD a; ALTER HOLD b RENAME TO a;"
CREATE = "CREATE MATERIALIZED VIEW v AS SELECT id, n FROM t WHERE n > 0; CREATE HOLD h ON v;"


@pytest.fixture
def make_server(tmp_path: Path, broker: EmbeddedBroker) -> Iterator[Callable[..., Server]]:
    with servers(tmp_path, broker.bootstrap) as make:
        yield make


def holds(server: Server) -> dict[str, tuple[str, int]]:
    """The holds by name: what each is, and its time."""
    (told,) = server.sql("SHOW HOLDS;")
    return {hold["name"]: (hold["id"], hold["at"]) for hold in told["holds"]}


def views(server: Server) -> list[str]:
    return [row[0] for row in server.pull("SELECT name FROM mz_materialized_views;")]


def built(server: Server) -> bool:
    (told,) = server.sql("SHOW QUERIES;")
    return {query["state"] for query in told["queries"]} == {"RUNNING"}


def dies(server: Server, text: str) -> None:
    with pytest.raises((Refused, httpx.TransportError)):
        server.sql(text)
    wait_for("the server dies", lambda: not server.alive, 60)


@pytest.mark.timeout(1500)
def test_a_transaction_is_all_there_or_not_at_all(make_server: Callable[..., Server]) -> None:
    server = make_server("transactions")
    assert server.kafka is not None
    create_topics(server.kafka, f"{server.service_id}_t")
    server.start()
    server.sql(SETUP.format(server.service_id))
    was = holds(server)
    assert set(was) == {"A", "B"}

    # Between its statements, each in a request of its own.
    (opened,) = server.sql("BEGIN;")
    inside = {opened["property"]: opened["transactionId"]}
    for statement in SWAP.split("; "):
        assert server.sql(f"{statement.rstrip(';')};", inside)[0]["commandStatus"]["status"] == "QUEUED"
    assert holds(server) == was, "nothing is seen before COMMIT"
    server.kill()
    points: tuple[tuple[CrashPoint, bool], ...] = (("before_command_append", False), ("after_command_append", True))
    for point, happens in points:
        server.start(crash=f"{point}:1")
        assert holds(server) == was
        with pytest.raises(Refused, match="25P01"):
            server.sql("COMMIT;", inside)
        dies(server, f"BEGIN; {SWAP} COMMIT;")
        if happens:
            was = {"A": was["B"]}
    for point, happens in points:
        server.start(crash=f"{point}:1")
        assert (holds(server), views(server)) == (was, [])
        dies(server, f"BEGIN; {CREATE} COMMIT;")
        assert happens == (point == "after_command_append")

    server.start()
    assert (set(holds(server)), views(server)) == ({"A", "H"}, ["V"])
    at = holds(server)["H"][1]
    wait_for("the view is built", lambda: built(server), 120)
    assert server.pull("SELECT id, n FROM v;") == [["a", 1]]
    assert server.pull(f"SELECT id, n FROM v AS OF {at};") == [["a", 1]]
    with pytest.raises(Refused, match="25000"):
        server.sql("BEGIN; CREATE TABLE u AS SELECT id, n FROM t; COMMIT;")
