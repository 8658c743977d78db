"""Materialized views of a running service: filled from what was there, read at their times, there after a restart."""

from typing import Any

import pytest

from holdfast.app import Service
from holdfast.errors import DependentObjects, UnknownObject
from holdfast.names import TopicName
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.parse import parse
from holdfast.sql.syntax.statements import Print

from .servers import Servers
from .service_calls import followed, rows, run, states

SETUP = """
CREATE STREAM orders (id STRING KEY, city STRING, n INT)
  WITH (KAFKA_TOPIC = '{0}_orders', VALUE_FORMAT = 'JSON', PARTITIONS = 2);
CREATE TABLE cities (city STRING PRIMARY KEY, country STRING)
  WITH (KAFKA_TOPIC = '{0}_cities', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
INSERT INTO cities (city, country) VALUES ('Oslo', 'NO');
INSERT INTO cities (city, country) VALUES ('Rome', 'IT');
INSERT INTO orders (id, city, n) VALUES ('a', 'Oslo', 1);
INSERT INTO orders (id, city, n) VALUES ('b', 'Rome', 5);
"""
VIEWS = """
CREATE MATERIALIZED VIEW totals WITH (RETAIN HISTORY FOR '1h') AS
  SELECT city, COUNT(*) AS orders, SUM(n) AS n FROM orders GROUP BY city;
CREATE MATERIALIZED VIEW placed AS
  SELECT t.city AS city, country, n FROM totals t JOIN cities c ON t.city = c.city;
CREATE TABLE written WITH (KAFKA_TOPIC = '{0}_written') AS SELECT city, n FROM placed WHERE n > 1;
"""


def ask(service: Service, text: str) -> tuple[set[tuple[Any, ...]], int]:
    bound = bind(parse(text)[0].statement, service.catalog, {})
    assert isinstance(bound, BoundSelect | BoundRead)
    result = service.pull(bound)
    return {tuple(row.values()) for row in result.rows.to_pylist()}, result.time


def test_a_materialized_view_from_its_creation_to_its_end(servers: Servers) -> None:
    name = str(servers.settings.service_id)
    service = servers.start()
    others = set(service.topics())
    run(service, SETUP.format(name))
    assert rows(service, "cities") == {("Oslo", "NO"), ("Rome", "IT")}
    run(service, VIEWS.format(name))
    assert rows(service, "totals") == {("Oslo", 1, 1), ("Rome", 1, 5)}
    assert rows(service, "placed") == {("Oslo", "NO", 1), ("Rome", "IT", 5)}
    assert rows(service, "written") == {("Rome", 5)}
    before, at = ask(service, "SELECT city, n FROM totals;")
    run(service, "CREATE HOLD h ON placed;")
    (held,) = service.holds()
    run(service, "INSERT INTO orders (id, city, n) VALUES ('c', 'Oslo', 2);")
    run(service, "INSERT INTO cities (city, country) VALUES ('Rome', 'Italy');")
    now = {("Oslo", "NO", 3), ("Rome", "Italy", 5)}
    assert rows(service, "placed") == now
    assert rows(service, "written") == {("Oslo", 3), ("Rome", 5)}
    assert ask(service, f"SELECT city, n FROM totals AS OF {at};")[0] == before
    assert ask(service, "SELECT country FROM placed WHERE city = 'Rome';")[0] == {("Italy",)}
    joined = "SELECT p.country, t.orders FROM placed p JOIN totals t ON p.city = t.city WHERE t.orders > 1;"
    assert ask(service, joined)[0] == {("NO", 2)}
    shown = {row[-4:-1] for row in followed(service, "SELECT city, orders, n FROM totals EMIT ALL;", 2)}
    assert shown >= {("Oslo", 2, 3), ("Rome", 1, 5)}
    changes = [row[1:] for row in followed(service, "SUBSCRIBE placed WITH (HOLD = h);", 6)]
    assert sorted(changes[:2]) == [(1, "Oslo", "NO", 1), (1, "Rome", "IT", 5)]
    assert sorted(changes[2:]) == sorted(
        [(-1, "Oslo", "NO", 1), (1, "Oslo", "NO", 3), (-1, "Rome", "IT", 5), (1, "Rome", "Italy", 5)]
    )
    topics = set(service.topics())
    assert TopicName(f"{name}_written") in topics
    assert not {topic for topic in topics - others if "TOTALS" in topic.upper() or "PLACED" in topic.upper()}
    with pytest.raises(UnknownObject) as raised:
        service.print_topic(Print(topic="totals"))
    assert (raised.value.detail, raised.value.hint) == (
        'Materialized view "TOTALS" has no topic.',
        "Follow it with SELECT * FROM TOTALS EMIT CHANGES;",
    )
    with pytest.raises(DependentObjects, match='cannot drop materialized view "TOTALS" because queries depend on'):
        run(service, "DROP MATERIALIZED VIEW totals;")
    with pytest.raises(DependentObjects, match='cannot drop stream "ORDERS" because queries depend on it'):
        run(service, "DROP STREAM orders;")
    servers.let_pass(2.5)  # longer than the default window: what is not held or retained is forgotten

    service = servers.start()
    assert rows(service, "placed") == now
    assert ask(service, f"SELECT city, n FROM totals AS OF {at};")[0] == before
    assert ask(service, f"SELECT country FROM placed AS OF {held.at};")[0] == {("NO",), ("IT",)}
    run(service, "INSERT INTO orders (id, city, n) VALUES ('d', 'Rome', 1);")
    assert rows(service, "placed") == {("Oslo", "NO", 3), ("Rome", "Italy", 6)}

    listed = "SELECT name, reads, retain_history_ms FROM mz_materialized_views;"
    assert ask(service, listed)[0] == {("TOTALS", "ORDERS", 3_600_000), ("PLACED", "CITIES, TOTALS", 1_000)}
    assert ask(service, "SELECT name FROM mz_tables WHERE name <> 'PROCESSING_LOG';")[0] == {
        ("CITIES",),
        ("WRITTEN",),
    }
    assert ask(service, "SELECT COUNT(*) FROM mz_frontiers WHERE id IN ('TOTALS', 'PLACED');")[0] == {(2,)}
    run(service, "ALTER MATERIALIZED VIEW placed SET (RETAIN HISTORY FOR '2h');")
    assert ask(service, listed)[0] >= {("PLACED", "CITIES, TOTALS", 7_200_000)}
    run(service, "ALTER MATERIALIZED VIEW placed RESET (RETAIN HISTORY);")
    assert ask(service, listed)[0] >= {("PLACED", "CITIES, TOTALS", 1_000)}

    (query,) = (id_ for id_ in states(service) if id_.startswith("CMVAS_TOTALS"))
    run(service, f"PAUSE {query};")
    assert states(service)[query] == "PAUSED"
    run(service, "INSERT INTO orders (id, city, n) VALUES ('e', 'Rome', 1);")
    assert ("Rome", 2, 6) in rows(service, "totals")
    run(service, f"RESUME {query};")
    assert ("Rome", 3, 7) in rows(service, "totals")
    assert rows(service, "placed") == {("Oslo", "NO", 3), ("Rome", "Italy", 7)}

    (last,) = (id_ for id_ in states(service) if id_.startswith("CTAS_WRITTEN"))
    run(service, f"TERMINATE {last};")
    with pytest.raises(DependentObjects, match="because holds depend on it"):
        run(service, "DROP MATERIALIZED VIEW placed;")
    run(service, "DROP MATERIALIZED VIEW placed CASCADE; DROP MATERIALIZED VIEW totals;")
    assert (service.holds(), [view.name for view in service.catalog.materialized_views]) == ([], [])
    assert not {id_ for id_ in service._store.collections() if id_ in ("TOTALS", "PLACED")}


def test_a_materialized_view_with_a_new_definition_keeps_its_rows(servers: Servers) -> None:
    service = servers.start()
    run(service, SETUP.format(servers.settings.service_id))
    assert len(rows(service, "cities")) == 2
    run(service, "CREATE MATERIALIZED VIEW v AS SELECT city, country FROM cities;")
    assert rows(service, "v") == {("Oslo", "NO"), ("Rome", "IT")}
    run(
        service,
        "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT city, country, LCASE(country) AS low FROM cities;"
        "INSERT INTO cities (city, country) VALUES ('Paris', 'FR');",
    )
    assert rows(service, "v") == {("Oslo", "NO", None), ("Rome", "IT", None), ("Paris", "FR", "fr")}
