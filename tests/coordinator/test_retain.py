"""On a running service: history is kept as long as is said, also over a restart, and a transaction keeps its time."""

import time
from typing import Any

import pytest

from holdfast.app import Service
from holdfast.config import Settings
from holdfast.errors import UnreadableTime
from holdfast.runtime.spark.session import Sessions
from holdfast.runtime.store.duckdb.store import open_store
from holdfast.sql.bind import bind
from holdfast.sql.bound import BoundSelect
from holdfast.sql.bound_read import BoundRead
from holdfast.sql.parse import parse

from .running import rows, run, wait

SETUP = """
CREATE TABLE kept (id STRING PRIMARY KEY, n INT)
  WITH (KAFKA_TOPIC = '{0}_kept', VALUE_FORMAT = 'JSON', PARTITIONS = 1, RETAIN HISTORY = FOR '1h');
CREATE TABLE plain (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC = '{0}_plain', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
INSERT INTO kept (id, n) VALUES ('a', 1);
INSERT INTO plain (id, n) VALUES ('a', 1);
"""  # noqa: E501


def ask(service: Service, text: str, transaction: str | None = None) -> tuple[list[tuple[Any, ...]], int]:
    bound = bind(parse(text)[0].statement, service.catalog, {})
    assert isinstance(bound, BoundSelect | BoundRead)
    result = service.pull(bound, transaction)
    return [tuple(row.values()) for row in result.rows.to_pylist()], result.time


def wait_forgotten(service: Service, text: str) -> UnreadableTime:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            ask(service, text)
        except UnreadableTime as gone:
            return gone
        time.sleep(0.1)
    raise AssertionError(f"still readable: {text}")


def test_the_past_of_a_table_is_kept_as_long_as_is_said(settings: Settings, sessions: Sessions) -> None:
    folder = settings.data_dir / "store"
    service = Service(settings, sessions, open_store(folder))
    try:
        run(service, SETUP.format(settings.service_id))
        wait(lambda: (rows(service, "kept"), rows(service, "plain")), ({("a", 1)}, {("a", 1)}))
        transaction = service.begin_transaction()
        both = "SELECT k.n, p.n AS m FROM kept k JOIN plain p ON k.id = p.id"
        found, at = ask(service, f"{both};", transaction)
        assert found == [(1, 1)]
        run(service, "INSERT INTO kept (id, n) VALUES ('a', 2); INSERT INTO plain (id, n) VALUES ('a', 2);")
        wait(lambda: (rows(service, "kept"), rows(service, "plain")), ({("a", 2)}, {("a", 2)}))
        time.sleep(2)
        assert ask(service, f"{both};", transaction) == ([(1, 1)], at)
        service.end_transaction(transaction, commits=False)
        gone = wait_forgotten(service, f"SELECT n FROM plain AS OF {at};")
        assert gone.message == "could not find a valid timestamp for the query"
        assert ask(service, f"SELECT n FROM kept AS OF {at};") == ([(1,)], at)
        with pytest.raises(UnreadableTime):
            ask(service, f"{both} AS OF {at};")
    finally:
        service.stop()

    service = Service(settings, sessions, open_store(folder))
    try:
        wait(lambda: rows(service, "kept"), {("a", 2)})
        time.sleep(2)
        assert ask(service, f"SELECT n FROM kept AS OF {at};") == ([(1,)], at)
        run(service, "ALTER TABLE kept RESET (RETAIN HISTORY);")
        wait_forgotten(service, f"SELECT n FROM kept AS OF {at};")
    finally:
        service.stop()
