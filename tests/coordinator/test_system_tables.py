"""System tables on a running service: they list the objects, can be joined and followed, and outlive a restart."""

from typing import Any

import pytest

from holdfast.app import Service
from holdfast.errors import BindError, HoldfastError, NotSupported
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.read.subscribe import BoundSubscribe
from holdfast.sql.syntax.parse import parse

from .servers import Servers
from .service_calls import run

SETUP = """
CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC = '{0}_s', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE TABLE totals WITH (KAFKA_TOPIC = '{0}_totals', RETAIN HISTORY = FOR '1h') AS
  SELECT id, SUM(n) AS total FROM s GROUP BY id;
"""


def ask(service: Service, text: str) -> list[tuple[Any, ...]]:
    bound = bind(parse(text)[0].statement, service.catalog, {})
    assert isinstance(bound, BoundSelect | BoundRead)
    result = service.pull(bound)
    assert result.notice is None
    return [tuple(row.values()) for row in result.rows.to_pylist()]


def test_contents_of_the_system_tables(servers: Servers) -> None:
    service = servers.start()
    subscribe = bind(parse("SUBSCRIBE TO mz_catalog.mz_tables WITH (PROGRESS = false);")[0].statement, service.catalog)
    assert isinstance(subscribe, BoundSubscribe)
    following = service.push(subscribe, {})
    run(service, SETUP.format(servers.settings.service_id))
    changes = []
    while not changes:
        batch = following.next(60)
        assert batch is not None
        changes = [row for row in batch.rows.to_pylist() if row.get("r2") == "TOTALS" or "TOTALS" in row.values()]
    assert ask(service, "SELECT id FROM mz_subscriptions;") == [(following.id,)]
    service.close_push(following.id)

    (query,) = service.catalog.queries
    assert ask(service, "SELECT name, type FROM mz_objects WHERE name <> 'PROCESSING_LOG' ORDER BY name;") == [
        ("S", "stream"), ("TOTALS", "table"),
    ]  # fmt: skip
    assert ask(service, "SELECT name, query_id, retain_history_ms FROM MZ_CATALOG.mz_tables;") == [
        ("TOTALS", query, 3_600_000)
    ]
    columns = "SELECT c.name, c.type, c.role FROM mz_columns c JOIN mz_tables t ON c.id = t.id ORDER BY c.position;"
    assert ask(service, columns) == [("ID", "STRING", "KEY"), ("TOTAL", "INTEGER", "VALUE")]
    servers.let_pass()
    assert ask(service, "SELECT id, state FROM mz_internal.mz_queries;") == [(query, "RUNNING")]
    ((name, since, upper),) = ask(service, "SELECT id, since, upper FROM mz_internal.mz_frontiers;")
    assert name == "TOTALS"
    assert 0 < since < upper

    run(service, "CREATE HOLD kept ON totals;")
    assert ask(service, "SELECT h.name, o.on_id, s.automatic_advances FROM mz_holds h"
               " JOIN mz_hold_objects o ON o.hold_id = h.id JOIN mz_hold_status s ON s.id = h.id;") == [
        ("KEPT", "TOTALS", 0)
    ]  # fmt: skip
    assert ask(service, "SELECT pinned_rows, pinned_bytes FROM mz_internal.mz_hold_status;") == [(0, 0)]
    (at,) = ask(service, "SELECT `AT` FROM mz_holds;")[0]
    assert since <= at
    with pytest.raises(HoldfastError):
        run(service, "CREATE HOLD wrong ON mz_tables;")
    run(service, "DROP HOLD kept;")
    assert ask(service, "SELECT COUNT(*) FROM mz_holds;") == [(0,)]

    with pytest.raises(NotSupported, match="cannot read the system table"):
        run(service, "CREATE TABLE copy AS SELECT id, name FROM mz_tables;")
    with pytest.raises(BindError):
        run(service, "DROP TABLE mz_tables;")
    with pytest.raises(HoldfastError):
        run(service, "INSERT INTO mz_tables (id) VALUES ('x');")

    service = servers.start()
    assert ask(service, "SELECT COUNT(*) FROM mz_tables;") == [(1,)]
    run(service, "DROP TABLE totals;")
    assert ask(service, "SELECT COUNT(*) FROM mz_tables;") == [(0,)]
    assert ask(service, "SELECT COUNT(*) FROM mz_queries;") == [(0,)]
