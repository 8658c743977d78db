"""Indexes on a running service: filled with what is there, kept in the commits of their tables, also over a restart."""

from typing import Any

from holdfast.app import Service
from holdfast.errors import ReadError
from holdfast.names import CollectionId
from holdfast.sql.bind.statement import BoundExplain, bind
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.parse import parse

from .servers import LONG, Servers
from .service_calls import run, states

SETUP = """
CREATE TABLE orders (id STRING PRIMARY KEY, city STRING, total INT)
  WITH (KAFKA_TOPIC = '{0}_orders', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
INSERT INTO orders (id, city, total) VALUES ('a', 'oslo', 1);
INSERT INTO orders (id, city, total) VALUES ('b', 'rome', 2);
"""
PATH = 'index "BY_CITY" on "ORDERS", looked up by CITY'


def ask(service: Service, text: str) -> set[tuple[Any, ...]]:
    bound = bind(parse(text)[0].statement, service.catalog, {})
    assert isinstance(bound, BoundSelect | BoundRead)
    return {tuple(row.values()) for row in service.pull(bound).rows.to_pylist()}


def current(service: Service, text: str) -> set[tuple[Any, ...]]:
    """The same; nothing while a table is being built."""
    try:
        return ask(service, text)
    except ReadError:
        return set()


def let_forget(servers: Servers, service: Service, name: str, at: int) -> None:
    """Let so much time pass that something cannot be read at a time; its upper goes on when it is read."""
    held = service.catalog.held(name)
    assert held is not None
    servers.clock.advance(LONG)
    service._times.upper(held)
    servers.let_pass()
    assert service._store.frontier(CollectionId(name)).since > at


def path(service: Service, text: str) -> str:
    bound = bind(parse(f"EXPLAIN {text}")[0].statement, service.catalog, {})
    assert isinstance(bound, BoundExplain)
    lines = service.explain(bound, bound.format).splitlines()
    return next(line.removeprefix("  Path: ") for line in lines if line.startswith("  Path: "))


def test_an_index_over_its_life(servers: Servers) -> None:
    oslo = "SELECT id, total FROM orders WHERE city = 'oslo';"
    service = servers.start()
    run(service, SETUP.format(servers.settings.service_id))
    assert current(service, "SELECT id FROM orders;") == {("a",), ("b",)}
    run(service, "CREATE INDEX by_city ON orders (city) WITH (RETAIN HISTORY FOR '1h');")
    query = str(service.catalog.index("BY_CITY").query)
    assert states(service).get(query) == "RUNNING"
    assert (ask(service, oslo), path(service, oslo)) == ({("a", 1)}, PATH)
    early = service.pull(bind(parse(oslo)[0].statement, service.catalog, {})).time
    run(service, "CREATE HOLD h ON by_city;")
    run(service, "INSERT INTO orders (id, city, total) VALUES ('a', 'rome', 3);")
    assert current(service, "SELECT id FROM orders WHERE city = 'rome';") == {("a",), ("b",)}
    assert ask(service, oslo) == set()
    service = servers.start()
    assert path(service, oslo) == PATH
    assert ask(service, "SELECT id, total FROM orders WHERE city = 'rome';") == {("a", 3), ("b", 2)}
    # The table has forgotten that time, and the index has not.
    let_forget(servers, service, "ORDERS", early)
    before = f"SELECT id, total FROM orders WHERE city = 'oslo' AS OF {early};"
    assert (ask(service, before), path(service, before)) == ({("a", 1)}, PATH)
    assert ask(service, f"SELECT SUM(total) AS s FROM orders AS OF {early};") == {(3,)}
    named = ask(service, "SELECT name, on_id FROM mz_indexes;")
    assert named == {("BY_CITY", "ORDERS")}
    assert ask(service, "SELECT index_position, on_position FROM mz_index_columns;") == {(1, 2)}
    assert ("BY_CITY", "index") in ask(service, "SELECT name, type FROM mz_objects;")
    run(service, "DROP TABLE orders CASCADE;")
    assert not service.catalog.indexes
    assert not service.catalog.holds
    assert CollectionId("BY_CITY") not in service._store.collections()


def test_an_index_that_forgets_sooner_is_not_used_for_what_its_table_remembers(
    servers: Servers, service: Service
) -> None:
    name = service.settings.service_id
    run(
        service,
        f"CREATE TABLE long_kept (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC = '{name}_long', "
        "VALUE_FORMAT = 'JSON', PARTITIONS = 1, RETAIN HISTORY FOR '1h'); CREATE INDEX by_n ON long_kept (n);"
        "INSERT INTO long_kept (id, n) VALUES ('a', 1);",
    )
    now = "SELECT id FROM long_kept WHERE n = 1"
    assert (current(service, f"{now};"), path(service, f"{now};")[:5]) == ({("a",)}, "index")
    at = service.pull(bind(parse(f"{now};")[0].statement, service.catalog, {})).time
    let_forget(servers, service, "BY_N", at)
    before = f"{now} AS OF {at};"
    assert (ask(service, before), path(service, before)) == ({("a",)}, 'all rows of table "LONG_KEPT"')


def test_an_index_that_is_created_with_a_hold_has_the_history_of_its_table(service: Service) -> None:
    name = service.settings.service_id
    run(
        service,
        f"CREATE TABLE past (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC = '{name}_past', "
        "VALUE_FORMAT = 'JSON', PARTITIONS = 1, RETAIN HISTORY FOR '1h');",
    )
    times = []
    for n in (1, 2, 3):
        run(service, f"INSERT INTO past (id, n) VALUES ('a', {n});")
        assert current(service, "SELECT n FROM past;") == {(n,)}
        times.append(service.pull(bind(parse("SELECT n FROM past;")[0].statement, service.catalog, {})).time)
    id_ = service.begin_transaction()
    for parsed in parse("CREATE INDEX past_by_n ON past (n); CREATE HOLD ON past_by_n;"):
        service.change_in_transaction(id_, parsed, {})
    service.end_transaction(id_, commits=True)
    service.run_until_idle()
    assert states(service).get(str(service.catalog.index("PAST_BY_N").query)) == "RUNNING"
    for n, at in enumerate(times, start=1):
        for wanted in (1, 2, 3):
            text = f"SELECT id FROM past WHERE n = {wanted} AS OF {at};"
            assert ask(service, text) == ({("a",)} if wanted == n else set())
            assert path(service, text) == 'index "PAST_BY_N" on "PAST", looked up by N'
