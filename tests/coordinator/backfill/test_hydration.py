"""A query over large tables takes their rows in slices, and ends as one that takes them at once."""

import json
from collections.abc import Callable
from contextlib import suppress

import pytest
from laws import SOAK

from holdfast.app import Service
from holdfast.coordinator import read_limits
from holdfast.coordinator.backfill import hydration
from holdfast.coordinator.backfill.hydration import Hydration, HydrationSlice
from holdfast.coordinator.read_limits import ReadLimits
from holdfast.errors import HoldfastError, StoreError
from holdfast.names import TopicName
from holdfast.sql.syntax.parse import parse
from tests.coordinator.servers import Servers
from tests.coordinator.service_calls import rows, run, states

TABLES = """
CREATE TABLE a (id STRING PRIMARY KEY, g STRING, n INT) WITH (KAFKA_TOPIC = '{0}', VALUE_FORMAT = 'JSON');
CREATE TABLE b (id STRING PRIMARY KEY, m INT) WITH (KAFKA_TOPIC = '{1}', VALUE_FORMAT = 'JSON');
"""
ALL_QUERIES = {
    "filtered": "SELECT id, UCASE(g) AS big, n FROM a WHERE n > 1",
    "grouped": "SELECT g, COUNT(*) AS c, SUM(n) AS s FROM a GROUP BY g",
    "joined": "SELECT a.id, a.n, b.m FROM a JOIN b ON a.id = b.id",
    "outer_joined": "SELECT ROWKEY AS id, a.n, b.m FROM a FULL OUTER JOIN b ON a.id = b.id",
    "joined_and_grouped": "SELECT a.g, COUNT(*) AS c, SUM(b.m) AS s FROM a LEFT JOIN b ON a.id = b.id GROUP BY a.g",
    "by_foreign_key": "SELECT a.id, a.n, b.m FROM a JOIN b ON a.g = b.id",
}
QUERIES = ALL_QUERIES if SOAK else {name: ALL_QUERIES[name] for name in ("grouped", "outer_joined", "by_foreign_key")}
"""Each kind of them in `make test`; most of a test's time goes into Spark's planning of each query."""


def statements(prefix: str) -> str:
    return "".join(f"CREATE TABLE {prefix}_{name} AS {select};" for name, select in QUERIES.items())


def change(servers: Servers, a: str, b: str, turn: int) -> None:
    """Change both tables. Between two rounds of the server as well as within one: it reads the records later."""
    for i in range(10):
        key = f"k{i}".encode()
        row = {"G": f"k{(i + turn) % 3}", "N": i * turn % 5}
        value = None if (i + turn) % 7 == 0 else json.dumps(row).encode()
        servers.broker.append(TopicName(a), value, key, partition=0)
        if i % 2 == 0:
            value = None if (i + turn) % 4 == 0 else json.dumps({"M": i + turn}).encode()
            servers.broker.append(TopicName(b), value, key, partition=0)


def results(service: Service, prefix: str) -> dict[str, set]:
    return {name: rows(service, f"{prefix}_{name}") for name in QUERIES}


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_limits, "MAX_ROWS_AT_ONCE", 3)
    monkeypatch.setattr(hydration, "PAGE", 2)
    monkeypatch.setattr(ReadLimits, "returned_bytes", 1)


@pytest.mark.usefixtures("small_slices")
def test_slices_end_as_one_does_while_the_tables_change(
    servers: Servers, service: Service, new_topic: Callable[[], str], monkeypatch: pytest.MonkeyPatch
):
    a, b = new_topic(), new_topic()
    run(service, TABLES.format(a, b))
    change(servers, a, b, 1)
    service.run_until_idle()
    assert len(rows(service, "a")) == 9
    following, given = Hydration.next, []

    def changing(self: Hydration) -> HydrationSlice:
        """Every slice comes twice, since what follows it fails the first time; meanwhile the tables change."""
        part = following(self)
        if not given or given[-1] is not part:
            given.append(part)
            if len(given) in (2, 4):
                change(servers, a, b, len(given))
            raise StoreError("the slice fails")
        return part

    monkeypatch.setattr(Hydration, "next", changing)
    for statement in parse(statements(f"{a}_sliced")):
        service.execute(statement, {})
    run_through_failures(service)
    assert set(states(service).values()) == {"RUNNING"}
    change(servers, a, b, 6)
    service.run_until_idle()
    monkeypatch.setattr(read_limits, "MAX_ROWS_AT_ONCE", 1_000)
    run(service, statements(f"{a}_whole"))
    assert set(states(service).values()) == {"RUNNING"}
    assert results(service, f"{a}_sliced") == results(service, f"{a}_whole")
    assert sum(bool(part.inputs.objects) for part in given) > 10
    assert all(results(service, f"{a}_whole").values())


def run_through_failures(service: Service) -> None:
    """As the coordinator's thread does: the round after a failed one takes its slice again."""
    idle = False
    while not idle:
        with suppress(StoreError):
            service.run_until_idle()
            idle = True


@pytest.mark.usefixtures("small_slices")
def test_a_query_that_was_stopped_between_slices_begins_again(
    servers: Servers, new_topic: Callable[[], str], monkeypatch: pytest.MonkeyPatch
):
    a, b = new_topic(), new_topic()
    service = servers.start()
    run(service, TABLES.format(a, b))
    change(servers, a, b, 1)
    service.run_until_idle()
    assert len(rows(service, "a")) == 9
    following, given = Hydration.next, []

    def stopping(self: Hydration) -> HydrationSlice:
        if len(given) == 3:
            raise HoldfastError("it stops here")
        given.append(following(self))
        return given[-1]

    with monkeypatch.context() as patched:
        patched.setattr(Hydration, "next", stopping)
        with pytest.raises(HoldfastError, match="it stops here"):
            run(service, f"CREATE TABLE {a}_counted AS {QUERIES['grouped']};")
        assert len(given) == 3
    service = servers.start()
    assert set(states(service).values()) == {"RUNNING"}
    run(service, f"CREATE TABLE {a}_again AS {QUERIES['grouped']};")
    assert rows(service, f"{a}_counted") == rows(service, f"{a}_again") != set()
