"""A query over large tables takes their rows in slices, and ends as one that takes them at once."""

import json
from collections.abc import Callable

import pytest

from holdfast.app import Service
from holdfast.config import Settings
from holdfast.coordinator import backfill, hydration
from holdfast.coordinator.hydration import Hydration, Part
from holdfast.errors import HoldfastError, StoreError
from holdfast.runtime.spark.session import Sessions
from holdfast.runtime.store.duckdb.store import open_store
from tests.coordinator.running import rows, run, states, wait
from tests.kafka.writing import write

TABLES = """
CREATE TABLE a (id STRING PRIMARY KEY, g STRING, n INT) WITH (KAFKA_TOPIC = '{0}', VALUE_FORMAT = 'JSON');
CREATE TABLE b (id STRING PRIMARY KEY, m INT) WITH (KAFKA_TOPIC = '{1}', VALUE_FORMAT = 'JSON');
"""
QUERIES = {
    "filtered": "SELECT id, UCASE(g) AS big, n FROM a WHERE n > 1",
    "grouped": "SELECT g, COUNT(*) AS c, SUM(n) AS s FROM a GROUP BY g",
    "joined": "SELECT a.id, a.n, b.m FROM a JOIN b ON a.id = b.id",
    "outer_joined": "SELECT ROWKEY AS id, a.n, b.m FROM a FULL OUTER JOIN b ON a.id = b.id",
    "joined_and_grouped": "SELECT a.g, COUNT(*) AS c, SUM(b.m) AS s FROM a LEFT JOIN b ON a.id = b.id GROUP BY a.g",
    "by_foreign_key": "SELECT a.id, a.n, b.m FROM a JOIN b ON a.g = b.id",
}


def statements(prefix: str) -> str:
    return "".join(f"CREATE TABLE {prefix}_{name} AS {select};" for name, select in QUERIES.items())


def change(settings: Settings, a: str, b: str, turn: int) -> None:
    for i in range(10):
        key = f"k{i}".encode()
        row = {"G": f"k{(i + turn) % 3}", "N": i * turn % 5}
        write(settings, a, None if (i + turn) % 7 == 0 else json.dumps(row).encode(), key=key, partition=0)
        if i % 2 == 0:
            value = None if (i + turn) % 4 == 0 else json.dumps({"M": i + turn}).encode()
            write(settings, b, value, key=key, partition=0)


def results(service: Service, prefix: str) -> dict[str, set]:
    return {name: rows(service, f"{prefix}_{name}") for name in QUERIES}


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill, "HYDRATED_AT_ONCE", 3)
    monkeypatch.setattr(hydration, "PAGE", 2)
    monkeypatch.setattr(backfill, "PASSED_ON", 1 << 30)


@pytest.mark.usefixtures("small_slices")
def test_slices_end_as_one_does_while_the_tables_change(
    service: Service, settings: Settings, new_topic: Callable[[], str], monkeypatch: pytest.MonkeyPatch
):
    a, b = new_topic(), new_topic()
    run(service, TABLES.format(a, b))
    change(settings, a, b, 1)
    wait(lambda: len(rows(service, "a")), 9)
    with monkeypatch.context() as patched:
        patched.setattr(backfill, "HYDRATED_AT_ONCE", 1_000)
        run(service, statements(f"{a}_whole"))
        wait(lambda: set(states(service).values()), {"RUNNING"})
    following, given = Hydration.next, []

    def changing(self: Hydration) -> Part:
        """Every slice comes twice, since what follows it fails the first time; meanwhile the tables change."""
        part = following(self)
        if not given or given[-1] is not part:
            given.append(part)
            if len(given) in (2, 4):
                change(settings, a, b, len(given))
            raise StoreError("the slice fails")
        return part

    monkeypatch.setattr(Hydration, "next", changing)
    run(service, statements(f"{a}_sliced"))
    wait(lambda: set(states(service).values()), {"RUNNING"})
    change(settings, a, b, 5)
    wait(lambda: results(service, f"{a}_sliced") == results(service, f"{a}_whole"), True)
    assert sum(bool(part.inputs.objects) for part in given) > 10
    assert all(results(service, f"{a}_whole").values())


@pytest.mark.usefixtures("small_slices")
def test_a_query_that_was_stopped_between_slices_begins_again(
    settings: Settings, sessions: Sessions, new_topic: Callable[[], str], monkeypatch: pytest.MonkeyPatch
):
    a, b = new_topic(), new_topic()
    service = Service(settings, sessions, open_store(settings.data_dir / "store"))
    try:
        run(service, TABLES.format(a, b))
        change(settings, a, b, 1)
        wait(lambda: len(rows(service, "a")), 9)
        following, given = Hydration.next, []

        def stopping(self: Hydration) -> Part:
            if len(given) == 3:
                raise HoldfastError("it stops here")
            given.append(following(self))
            return given[-1]

        with monkeypatch.context() as patched:
            patched.setattr(Hydration, "next", stopping)
            run(service, f"CREATE TABLE {a}_counted AS {QUERIES['grouped']};")
            wait(lambda: len(given), 3)
            service.stop()
        service = Service(settings, sessions, open_store(settings.data_dir / "store"))
        wait(lambda: set(states(service).values()), {"RUNNING"})
        run(service, f"CREATE TABLE {a}_again AS {QUERIES['grouped']};")
        wait(lambda: rows(service, f"{a}_counted") == rows(service, f"{a}_again") != set(), True)
    finally:
        service.stop()
