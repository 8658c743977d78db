"""A query that fails stops alone, and goes on after a restart where it had stopped, with those that read it."""

import re
from functools import partial
from typing import Any

import pytest

from holdfast.app import Service
from holdfast.catalog import fold
from holdfast.coordinator import reconcile
from holdfast.coordinator.publishing import Publishing
from holdfast.errors import HoldfastError, PlanError
from holdfast.names import CollectionId, TopicName
from holdfast.runtime.spark.engine import Engine, Failure
from holdfast.runtime.store.duckdb.core import Core
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.parse import statements

from .servers import Servers
from .service_calls import records, run

SETUP = """
CREATE STREAM orders (id STRING KEY, city STRING, n INTEGER)
  WITH (KAFKA_TOPIC = 'failing_orders', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE STREAM big AS SELECT id, city, n FROM orders WHERE n > 1;
CREATE TABLE per_city AS SELECT city, COUNT(*) AS c FROM big GROUP BY city;
CREATE TABLE all_cities AS SELECT city, COUNT(*) AS c FROM orders GROUP BY city;
"""


def rows(service: Service, table: str) -> dict[str, int]:
    bound = bind(next(iter(statements(f"SELECT * FROM {table};"))).statement, service.catalog, {})
    assert isinstance(bound, BoundSelect)
    try:
        return {row["r0"]: row["r1"] for row in service.pull(bound).rows.to_pylist()}
    except HoldfastError:
        return {}


def states(service: Service) -> dict[str, str]:
    return {str(query.sink): query.state for query in service.queries()}


def test_a_failed_query_goes_on_after_a_restart_with_those_that_read_it(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = servers.start()
    run(service, SETUP)
    run(service, "INSERT INTO orders (id, city, n) VALUES ('a', 'Oslo', 5);")
    assert rows(service, "per_city") == {"Oslo": 1}
    assert rows(service, "all_cities") == {"Oslo": 1}

    whole = Engine.run

    def failing(self, fragments, inputs):
        found = whole(self, fragments, inputs)
        streams = [i for i, fragment in enumerate(fragments) if "off" in {c.name for c in fragment.columns}]
        return [Failure("broken on purpose") if i in streams else rows for i, rows in enumerate(found)]

    monkeypatch.setattr(Engine, "run", failing)
    run(service, "INSERT INTO orders (id, city, n) VALUES ('b', 'Oslo', 6);")
    assert rows(service, "all_cities") == {"Oslo": 2}
    assert states(service) == {"BIG": "ERROR", "PER_CITY": "RUNNING", "ALL_CITIES": "RUNNING"}
    monkeypatch.undo()
    run(service, "INSERT INTO orders (id, city, n) VALUES ('c', 'Rome', 7);")
    assert rows(service, "all_cities") == {"Oslo": 2, "Rome": 1}
    assert rows(service, "per_city") == {"Oslo": 1}

    service = servers.start()
    assert rows(service, "per_city") == {"Oslo": 2, "Rome": 1}
    assert set(states(service).values()) == {"RUNNING"}


def test_a_failed_query_does_not_claim_the_tick_that_left_it_out(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = servers.start()
    run(service, SETUP)
    run(service, "INSERT INTO orders (id, city, n) VALUES ('a', 'Oslo', 5);")
    per_city, all_cities = CollectionId("PER_CITY"), CollectionId("ALL_CITIES")
    whole = Engine.run

    def failing(self, fragments, inputs):
        found = whole(self, fragments, inputs)
        grouped = [i for i, fragment in enumerate(fragments) if "off" not in {c.name for c in fragment.columns}]
        return [Failure("broken on purpose") if i == grouped[-1] else rows for i, rows in enumerate(found)]

    with monkeypatch.context() as patched:
        patched.setattr(Engine, "run", failing)
        servers.broker.append(TopicName("failing_orders"), b'{"CITY":"Oslo","N":1}', b"b")
        assert service.coordinator.step()
    tick = service._store.committed_time()
    assert states(service)["ALL_CITIES"] == "ERROR"
    assert service._store.frontier(all_cities).upper <= tick < service._store.frontier(per_city).upper
    assert rows(service, "all_cities") == {"Oslo": 1}
    assert service._store.frontier(all_cities).upper <= tick


def refuse_plans(patched: pytest.MonkeyPatch, unreadable: str, *named: bytes) -> None:
    """Have plans that name a query be beyond this release."""

    def refused(of: Any, *given: Any) -> Any:
        text = bytes(given[-1]) if isinstance(given[-1], bytes) else given[-1].plan
        if any(name in text for name in named):
            raise PlanError("step ofTheFutureV1 is not known")
        return of(*given)

    if unreadable == "its plan cannot be decoded":
        patched.setattr(fold, "apply_plan", partial(refused, fold.apply_plan))
    else:
        build = reconcile._query_program
        patched.setattr(
            reconcile, "_query_program", lambda entry, dataflow: refused(lambda e: build(e, dataflow), entry)
        )


@pytest.mark.parametrize("unreadable", ["its plan cannot be decoded", "its plan cannot be built"])
def test_a_query_that_a_release_cannot_run_goes_on_with_one_that_can(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, unreadable: str
) -> None:
    """It keeps its state and its place; the others go on meanwhile."""
    new = f"meanwhile_{servers.settings.service_id}"
    setup = SETUP.replace("failing_orders", f"{servers.settings.service_id}_orders")
    setup = re.sub(r"(\w+) AS SELECT", rf"\1 WITH (KAFKA_TOPIC = '{servers.settings.service_id}_\1') AS SELECT", setup)
    first = servers.start()
    run(first, setup)
    run(first, "INSERT INTO orders VALUES ('a', 'Oslo', 2); INSERT INTO orders VALUES ('b', 'Rome', 3);")
    for table in ("per_city", "all_cities"):
        assert rows(first, table) == {"Oslo": 1, "Rome": 1}

    with monkeypatch.context() as patched:
        # What reads `orders` into a table, and `big`, are beyond this release.
        refuse_plans(patched, unreadable, b'"CTAS_ALL_CITIES', b'"CTAS_PER_CITY')
        older = servers.start()
        assert states(older)["ALL_CITIES"] == states(older)["PER_CITY"] == "INCOMPATIBLE"
        assert all("ofTheFutureV1" in str(q.reason) for q in older.queries() if q.sink != "BIG")
        run(older, "INSERT INTO orders VALUES ('c', 'Oslo', 4);")
        run(older, f"CREATE TABLE {new} AS SELECT city, COUNT(*) AS c FROM orders GROUP BY city;")
        assert rows(older, new) == {"Oslo": 2, "Rome": 1}

    newer = servers.start()
    run(newer, "INSERT INTO orders VALUES ('d', 'Rome', 5);")
    for table in ("per_city", "all_cities", new):
        assert rows(newer, table) == {"Oslo": 2, "Rome": 2}
    assert set(states(newer).values()) == {"RUNNING"}


@pytest.mark.parametrize("unreadable", ["its plan cannot be decoded", "its plan cannot be built"])
def test_pending_rows_are_published_by_a_release_that_cannot_run_the_query(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, unreadable: str
) -> None:
    """A server was killed between a commit and its publishing, and another release goes on."""
    topic, sink = f"{servers.settings.service_id}_in", f"{servers.settings.service_id}_out"
    with monkeypatch.context() as patched:
        patched.setattr(Publishing, "publish_pending", lambda _self: False)
        first = servers.start()
        run(
            first,
            "CREATE STREAM s (id STRING KEY, n INT) "
            f"WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='JSON', PARTITIONS=1);"
            f"CREATE STREAM twice WITH (KAFKA_TOPIC='{sink}') AS SELECT id, n * 2 AS n FROM s;"
            "INSERT INTO s VALUES ('a', 4);",
        )
        assert [each.rows for each in first._store.pending()] == [1]

    with monkeypatch.context() as patched:
        refuse_plans(patched, unreadable, b'"CSAS_TWICE')
        older = servers.start()
        assert list(states(older).values()) == ["INCOMPATIBLE"]
        assert older._store.pending() == []
        assert records(older, sink) == [(b"a", b'{"N":8}')]
    newer = servers.start()
    run(newer, "INSERT INTO s VALUES ('b', 5);")
    assert records(newer, sink) == [(b"a", b'{"N":8}'), (b"b", b'{"N":10}')]


READ_TIMES = """
CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC='{0}_in', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE STREAM big AS SELECT id, n FROM s WHERE n > 1;
CREATE TABLE counts WITH (RETAIN HISTORY FOR '1h') AS SELECT id, COUNT(*) AS c FROM big GROUP BY id;
INSERT INTO s VALUES ('a', 4);
"""


def read_before_a_crash(servers: Servers, monkeypatch: pytest.MonkeyPatch, then: str = "") -> str:
    """Read a table of a server, which is then killed; returns the table at that time."""
    service = servers.start()
    run(service, READ_TIMES.format(servers.settings.service_id))
    servers.let_pass()
    counts = f"counts AS OF {service._store.frontier(CollectionId('COUNTS')).upper - 1}"
    assert rows(service, counts) == {"a": 1}
    if then:
        run(service, then.format(*(query.id for query in service.queries())))
    with monkeypatch.context() as patched:
        # As a kill leaves the store: what is only in memory is not written.
        patched.setattr(Core, "write_frontiers", lambda _self: None)
        servers.stop()
    return counts


@pytest.mark.parametrize("unbuilt", [b'"CTAS_COUNTS', b'"CSAS_BIG'])
def test_after_a_crash_a_time_that_was_read_is_readable_also_of_a_query_that_cannot_run(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, unbuilt: bytes
) -> None:
    """The table's query cannot run, or one upstream of it."""
    counts = read_before_a_crash(servers, monkeypatch)
    refuse_plans(monkeypatch, "its plan cannot be built", unbuilt)
    older = servers.start()
    assert "INCOMPATIBLE" in states(older).values()
    assert rows(older, counts) == {"a": 1}


@pytest.mark.parametrize("statement", ["TERMINATE {1};", "PAUSE {1};", "PAUSE {0};"])
def test_after_a_crash_a_time_that_was_read_is_readable_also_of_a_query_that_had_stopped(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    counts = read_before_a_crash(servers, monkeypatch, statement)
    assert rows(servers.start(), counts) == {"a": 1}
