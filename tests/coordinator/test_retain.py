"""On a running service: history is kept as long as is said, also over a restart, and a transaction keeps its time."""

from contextlib import suppress
from typing import Any

import pytest

from holdfast.app import Service
from holdfast.errors import UnreadableTime
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.parse import parse

from .servers import Servers
from .service_calls import rows, run

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


def forgotten(servers: Servers, service: Service, text: str) -> UnreadableTime:
    """Why something cannot be read once enough time has passed; each read moves the upper of what it reads."""
    servers.let_pass()
    with suppress(UnreadableTime):
        ask(service, text)
    servers.let_pass()
    with pytest.raises(UnreadableTime) as gone:
        ask(service, text)
    return gone.value


def test_the_past_of_a_table_is_kept_as_long_as_is_said(servers: Servers) -> None:
    service = servers.start()
    run(service, SETUP.format(servers.settings.service_id))
    assert (rows(service, "kept"), rows(service, "plain")) == ({("a", 1)}, {("a", 1)})
    transaction = service.begin_transaction()
    both = "SELECT k.n, p.n AS m FROM kept k JOIN plain p ON k.id = p.id"
    found, at = ask(service, f"{both};", transaction)
    assert found == [(1, 1)]
    run(service, "INSERT INTO kept (id, n) VALUES ('a', 2); INSERT INTO plain (id, n) VALUES ('a', 2);")
    assert (rows(service, "kept"), rows(service, "plain")) == ({("a", 2)}, {("a", 2)})
    servers.let_pass(2)
    assert rows(service, "plain") == {("a", 2)}
    servers.let_pass(2)
    assert ask(service, f"{both};", transaction) == ([(1, 1)], at)
    service.end_transaction(transaction, commits=False)
    gone = forgotten(servers, service, f"SELECT n FROM plain AS OF {at};")
    assert gone.message == "could not find a valid timestamp for the query"
    assert ask(service, f"SELECT n FROM kept AS OF {at};") == ([(1,)], at)
    with pytest.raises(UnreadableTime):
        ask(service, f"{both} AS OF {at};")

    service = servers.start()
    assert rows(service, "kept") == {("a", 2)}
    servers.let_pass(2)
    assert ask(service, f"SELECT n FROM kept AS OF {at};") == ([(1,)], at)
    run(service, "ALTER TABLE kept RESET (RETAIN HISTORY);")
    forgotten(servers, service, f"SELECT n FROM kept AS OF {at};")
