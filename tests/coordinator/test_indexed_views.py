"""Indexes on plain views: they keep what the view's query gives, and never change an answer."""

from dataclasses import replace

from holdfast.app import Service
from holdfast.sql.bind.statement import bind
from holdfast.sql.literals.moment import BoundAsOf, Moment
from holdfast.sql.syntax.parse import parse

from .servers import Servers
from .service_calls import run, states
from .test_indexes import ask, current, path

SETUP = """
CREATE TABLE orders (id STRING PRIMARY KEY, city STRING, total INT)
  WITH (KAFKA_TOPIC = '{0}_orders', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE TABLE cities (name STRING PRIMARY KEY, country STRING)
  WITH (KAFKA_TOPIC = '{0}_cities', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE STREAM calls (id STRING KEY, ship STRING)
  WITH (KAFKA_TOPIC = '{0}_calls', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
INSERT INTO cities (name, country) VALUES ('oslo', 'NO');
INSERT INTO orders (id, city, total) VALUES ('a', 'oslo', 1);
INSERT INTO orders (id, city, total) VALUES ('b', 'rome', 2);
INSERT INTO orders (id, city, total) VALUES ('c', 'rome', 30);
INSERT INTO orders (id, city, total) VALUES ('d', NULL, 4);
INSERT INTO calls (id, ship) VALUES ('1', 'Ada');
INSERT INTO calls (id, ship) VALUES ('2', 'Ada');
"""
VIEWS = {
    "large": "SELECT city, total * 10 AS tenfold FROM orders WHERE total > 1",
    "per_city": "SELECT SUM(total) AS total, city, COUNT(*) AS n FROM orders GROUP BY city",
    "placed": "SELECT o.id AS id, country, total FROM orders o LEFT JOIN cities c ON o.city = c.name",
}
QUERIES = (
    "SELECT * FROM {large} WHERE city = 'rome'",
    "SELECT * FROM {large}",
    "SELECT COUNT(*) AS n FROM {large} WHERE tenfold > 30",
    "SELECT * FROM {per_city} WHERE city = 'rome'",
    "SELECT * FROM {per_city} WHERE city IN ('oslo', 'bern')",
    "SELECT * FROM {per_city}",
    "SELECT * FROM {per_city} WHERE n = 1",
    "SELECT * FROM {placed} WHERE country = 'NO'",
    "SELECT o.id AS id, ROWTIME > 0 AS since FROM {large} l JOIN orders o ON l.tenfold = o.total * 10",
    "SELECT p.id AS id, n FROM {placed} p JOIN {per_city} x ON p.total = x.total WHERE x.city = 'rome'",
)
INDEXES = "CREATE INDEX l ON large (city); CREATE INDEX p ON per_city (city); CREATE INDEX c ON placed (country);"


def same_answers(service: Service) -> None:
    """Each query over the views that have indexes, and over the same ones that have none."""
    for query in QUERIES:
        with_, without = (query.format(**{name: name + end for name in VIEWS}) for end in ("", "_plain"))
        assert ask(service, f"{with_};") == ask(service, f"{without};"), query


def test_an_index_on_a_view_never_changes_an_answer(servers: Servers) -> None:
    service = servers.start()
    run(service, SETUP.format(servers.settings.service_id))
    for name, query in VIEWS.items():
        run(service, f"CREATE VIEW {name} AS {query}; CREATE VIEW {name}_plain AS {query};")
    assert len(current(service, "SELECT id FROM orders;")) == 4
    run(service, INDEXES)
    for name in "LPC":
        assert states(service).get(str(service.catalog.index(name).query)) == "RUNNING"
    same_answers(service)
    looked_up = "SELECT * FROM per_city WHERE city = 'rome';"
    assert path(service, looked_up) == 'index "P" on "PER_CITY", looked up by CITY'
    assert path(service, "SELECT * FROM large;") == 'all rows of index "L" on "LARGE"'
    assert path(service, "SELECT * FROM per_city;") == 'all rows of table "ORDERS"', "nulls are a group, too"
    assert ask(service, looked_up) == {(32, "rome", 2)}

    run(service, "INSERT INTO orders (id, city, total) VALUES ('b', 'oslo', 7);")
    run(service, "INSERT INTO cities (name, country) VALUES ('rome', 'IT');")
    assert ask(service, looked_up) == {(30, "rome", 1)}
    same_answers(service)
    before = service.pull(bind(parse(looked_up)[0].statement, service.catalog, {})).time
    run(service, "CREATE HOLD h ON p;")
    run(service, "INSERT INTO orders (id, city, total) VALUES ('c', 'oslo', 8);")
    assert ask(service, looked_up) == set()
    same_answers(service)
    # As a transaction does it: the time is given to a query that was bound without one.
    timed = replace(bind(parse(looked_up)[0].statement, service.catalog, {}), as_of=BoundAsOf(Moment(before)))
    assert service.pull(timed).time == before
    assert [tuple(row.values()) for row in service.pull(timed).rows.to_pylist()] == [(30, "rome", 1)]

    service = servers.start()
    same_answers(service)
    held = f"SELECT * FROM per_city WHERE city = 'rome' AS OF {before};"
    assert ask(service, held) == {(30, "rome", 1)}, "the index is held, what the view reads is not"
    run(service, "INSERT INTO orders (id, city, total) VALUES ('e', 'rome', 9);")
    assert ask(service, "SELECT * FROM per_city WHERE city = 'rome';") == {(9, "rome", 1)}
    same_answers(service)
    run(service, "DROP VIEW per_city CASCADE;")
    assert (sorted(service.catalog.indexes), dict(service.catalog.holds)) == (["C", "L"], {})


def test_a_view_of_a_stream_has_rows_where_an_index_keeps_them(servers: Servers) -> None:
    service = servers.start()
    run(service, SETUP.format(servers.settings.service_id))
    run(service, "CREATE VIEW per_ship AS SELECT COUNT(*) AS calls, ship FROM calls GROUP BY ship;")
    run(service, "CREATE INDEX by_ship ON per_ship (ship);")
    assert current(service, "SELECT * FROM per_ship WHERE ship = 'Ada';") == {(2, "Ada")}
    assert ask(service, "SELECT * FROM per_ship;") == {(2, "Ada")}
    run(service, "INSERT INTO calls (id, ship) VALUES ('3', 'Bess');")
    assert ask(service, "SELECT * FROM per_ship;") == {(2, "Ada"), (1, "Bess")}
    assert path(service, "SELECT calls FROM per_ship WHERE ship = 'Ada';").startswith('index "BY_SHIP" on "PER_SHIP"')
