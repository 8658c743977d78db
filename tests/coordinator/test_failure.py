"""A query that fails stops alone, and goes on after a restart where it had stopped, with those that read it."""

import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast.app import Service
from holdfast.catalog import commands
from holdfast.config import Settings
from holdfast.coordinator.cluster import Cluster
from holdfast.coordinator.publishing import Publishing
from holdfast.errors import HoldfastError, PlanError
from holdfast.runtime.spark.engine import Engine, Failure
from holdfast.runtime.spark.session import Sessions
from holdfast.runtime.store.duckdb.store import open_store
from holdfast.sql.bind import bind
from holdfast.sql.bound import BoundInsert, BoundSelect
from holdfast.sql.parse import statements
from tests.coordinator.running import records

SETUP = """
CREATE STREAM orders (id STRING KEY, city STRING, n INTEGER)
  WITH (KAFKA_TOPIC = 'failing_orders', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE STREAM big AS SELECT id, city, n FROM orders WHERE n > 1;
CREATE TABLE per_city AS SELECT city, COUNT(*) AS c FROM big GROUP BY city;
CREATE TABLE all_cities AS SELECT city, COUNT(*) AS c FROM orders GROUP BY city;
"""


def run(service: Service, sql: str) -> None:
    for parsed in statements(sql):
        bound = bind(parsed.statement, service.catalog, {})
        if isinstance(bound, BoundInsert):
            service.insert(bound)
        else:
            service.execute(parsed, {})


def rows(service: Service, table: str) -> dict[str, int]:
    bound = bind(next(iter(statements(f"SELECT * FROM {table};"))).statement, service.catalog, {})
    assert isinstance(bound, BoundSelect)
    try:
        return {row["r0"]: row["r1"] for row in service.pull(bound).rows.to_pylist()}
    except HoldfastError:
        return {}


def wait(service: Service, table: str, expected: dict[str, int]) -> None:
    deadline = time.monotonic() + 90
    while (found := rows(service, table)) != expected and time.monotonic() < deadline:
        time.sleep(0.1)
    assert found == expected


def states(service: Service) -> dict[str, str]:
    return {str(query.sink): query.state for query in service.queries()}


def test_a_failed_query_goes_on_after_a_restart_with_those_that_read_it(
    settings: Settings, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder: Path = settings.data_dir / "store"
    service = Service(settings, sessions, open_store(folder))
    try:
        run(service, SETUP)
        run(service, "INSERT INTO orders (id, city, n) VALUES ('a', 'Oslo', 5);")
        wait(service, "per_city", {"Oslo": 1})
        wait(service, "all_cities", {"Oslo": 1})

        whole = Engine.run

        def failing(self, fragments, inputs):
            found = whole(self, fragments, inputs)
            streams = [i for i, fragment in enumerate(fragments) if "off" in {c.name for c in fragment.columns}]
            return [Failure("broken on purpose") if i in streams else rows for i, rows in enumerate(found)]

        monkeypatch.setattr(Engine, "run", failing)
        run(service, "INSERT INTO orders (id, city, n) VALUES ('b', 'Oslo', 6);")
        wait(service, "all_cities", {"Oslo": 2})
        assert states(service) == {"BIG": "ERROR", "PER_CITY": "RUNNING", "ALL_CITIES": "RUNNING"}
        monkeypatch.undo()
        run(service, "INSERT INTO orders (id, city, n) VALUES ('c', 'Rome', 7);")
        wait(service, "all_cities", {"Oslo": 2, "Rome": 1})
        assert rows(service, "per_city") == {"Oslo": 1}
    finally:
        service.stop()

    service = Service(settings, sessions, open_store(folder))
    try:
        wait(service, "per_city", {"Oslo": 2, "Rome": 1})
        assert set(states(service).values()) == {"RUNNING"}
    finally:
        service.stop()


def refuse_plans(patched: pytest.MonkeyPatch, unreadable: str, *named: bytes) -> None:
    """Have plans that name a query be beyond this release."""

    def refused(of: Any, *given: Any) -> Any:
        text = bytes(given[-1]) if isinstance(given[-1], bytes) else given[-1].plan
        if any(name in text for name in named):
            raise PlanError("step ofTheFutureV1 is not known")
        return of(*given)

    if unreadable == "its plan cannot be decoded":
        patched.setattr(commands, "apply_plan", partial(refused, commands.apply_plan))
    else:
        build = Cluster._query_program
        patched.setattr(Cluster, "_query_program", lambda self, entry: refused(build, self, entry))


@pytest.mark.parametrize("unreadable", ["its plan cannot be decoded", "its plan cannot be built"])
def test_a_query_that_a_release_cannot_run_goes_on_with_one_that_can(
    settings: Settings, sessions: Sessions, monkeypatch: pytest.MonkeyPatch, unreadable: str
) -> None:
    """It keeps its state and its place; the others go on meanwhile."""
    folder: Path = settings.data_dir / "store"
    new = f"meanwhile_{settings.service_id}"
    setup = SETUP.replace("failing_orders", f"{settings.service_id}_orders")
    setup = re.sub(r"(\w+) AS SELECT", rf"\1 WITH (KAFKA_TOPIC = '{settings.service_id}_\1') AS SELECT", setup)
    first = Service(settings, sessions, open_store(folder))
    try:
        run(first, setup)
        run(first, "INSERT INTO orders VALUES ('a', 'Oslo', 2); INSERT INTO orders VALUES ('b', 'Rome', 3);")
        for table in ("per_city", "all_cities"):
            wait(first, table, {"Oslo": 1, "Rome": 1})
    finally:
        first.stop()

    with monkeypatch.context() as patched:
        # What reads `orders` into a table, and `big`, are beyond this release.
        refuse_plans(patched, unreadable, b'"CTAS_ALL_CITIES', b'"CTAS_PER_CITY')
        older = Service(settings, sessions, open_store(folder))
        try:
            assert states(older)["ALL_CITIES"] == states(older)["PER_CITY"] == "INCOMPATIBLE"
            assert all("ofTheFutureV1" in str(q.reason) for q in older.queries() if q.sink != "BIG")
            run(older, "INSERT INTO orders VALUES ('c', 'Oslo', 4);")
            run(older, f"CREATE TABLE {new} AS SELECT city, COUNT(*) AS c FROM orders GROUP BY city;")
            wait(older, new, {"Oslo": 2, "Rome": 1})
        finally:
            older.stop()

    newer = Service(settings, sessions, open_store(folder))
    try:
        run(newer, "INSERT INTO orders VALUES ('d', 'Rome', 5);")
        for table in ("per_city", "all_cities", new):
            wait(newer, table, {"Oslo": 2, "Rome": 2})
        assert set(states(newer).values()) == {"RUNNING"}
    finally:
        newer.stop()


@pytest.mark.parametrize("unreadable", ["its plan cannot be decoded", "its plan cannot be built"])
def test_what_a_query_owed_is_published_by_a_release_that_cannot_run_it(
    settings: Settings, sessions: Sessions, monkeypatch: pytest.MonkeyPatch, unreadable: str
) -> None:
    """A server was killed between a commit and its publishing, and another release goes on."""
    folder, topic, sink = settings.data_dir / "store", f"{settings.service_id}_in", f"{settings.service_id}_out"
    with monkeypatch.context() as patched:
        patched.setattr(Publishing, "_publish_all", lambda _self: None)
        first = Service(settings, sessions, open_store(folder))
        try:
            run(
                first,
                "CREATE STREAM s (id STRING KEY, n INT) "
                f"WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='JSON', PARTITIONS=1);"
                f"CREATE STREAM twice WITH (KAFKA_TOPIC='{sink}') AS SELECT id, n * 2 AS n FROM s;"
                "INSERT INTO s VALUES ('a', 4);",
            )
            eventually(lambda: [owed.rows for owed in first._store.owed()] == [1])
        finally:
            first.stop()

    with monkeypatch.context() as patched:
        refuse_plans(patched, unreadable, b'"CSAS_TWICE')
        older = Service(settings, sessions, open_store(folder))
        try:
            assert list(states(older).values()) == ["INCOMPATIBLE"]
            eventually(lambda: older._store.owed() == [])
            assert records(older, sink) == [(b"a", b'{"N":8}')]
        finally:
            older.stop()
    newer = Service(settings, sessions, open_store(folder))
    try:
        run(newer, "INSERT INTO s VALUES ('b', 5);")
        eventually(lambda: records(newer, sink) == [(b"a", b'{"N":8}'), (b"b", b'{"N":10}')])
    finally:
        newer.stop()


def eventually(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not true() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert true()
