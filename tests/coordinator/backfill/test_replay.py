"""A query that comes late and replays the history of its inputs has the history that it would have had all along."""

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from runtime.driver import Driver, Record

from holdfast.coordinator.backfill import replay as replaying
from holdfast.coordinator.backfill.replay import Replay
from holdfast.names import CollectionId, ObjectName, QueryId
from holdfast.runtime.progress import Status
from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.store.port import Time
from holdfast.testing.database import INTERVALS

TABLES = """
CREATE TABLE a (id STRING PRIMARY KEY, g STRING, n INT) WITH (KAFKA_TOPIC = 'a', VALUE_FORMAT = 'JSON');
CREATE TABLE b (id STRING PRIMARY KEY, m INT) WITH (KAFKA_TOPIC = 'b', VALUE_FORMAT = 'JSON');
"""
QUERIES = {
    "FILTERED": "SELECT id, UCASE(g) AS big, n FROM a WHERE n > 1",
    "GROUPED": "SELECT g, COUNT(*) AS c, SUM(n) AS s FROM a GROUP BY g",
    "JOINED": "SELECT a.id, a.n, b.m FROM a JOIN b ON a.id = b.id",
    "LEFT": "SELECT a.id, a.n, b.m FROM a LEFT JOIN b ON a.id = b.id",
}
LIVE = TABLES + "".join(f"CREATE TABLE live_{kind} AS {query};" for kind, query in QUERIES.items())
SLICE_BY_SLICE = replace(INTERVALS, replay=-1.0)
"""One slice in each round."""


class History:
    """Tables that change, with queries over them that ride along; and others that come at the end."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.driver = Driver(engine, LIVE, folder=folder, intervals=SLICE_BY_SLICE)
        chances, times = random.Random(4), []
        for step in range(14):
            self.driver.tick([self._change(chances) for _ in range(1 + step % 3)])
            times.append(self.driver.time)
        self.start, self.end = times[3], times[-1]

    @staticmethod
    def _change(chances: random.Random) -> Record:
        key, topic = chances.choice("pqrs").encode(), chances.choice("aab")
        if chances.random() < 0.25:
            return Record(topic, key, None)
        value = {"a": {"g": chances.choice("xy"), "n": chances.randint(0, 4)}, "b": {"m": chances.randint(0, 4)}}
        return Record(topic, key, json.dumps(value[topic]).encode())

    def create_late(self, kind: str) -> None:
        """Create a query together with a hold, so that it needs the history of its inputs."""
        view = f"CREATE MATERIALIZED VIEW late_{kind} AS {QUERIES[kind]};"
        self.driver.commit(f"{view} CREATE HOLD ON late_{kind} AT {self.start};")

    def replay(self, most: int = 1000) -> int:
        """Run slices until there are no more; gives how many there were."""
        return next((done for done in range(most) if not self.driver.service.coordinator.step()), most)

    def status(self, kind: str) -> Status:
        found = self.driver.service.query_registry.status(self.driver.program(f"LATE_{kind}").query)
        assert found is not None
        return found.status

    def rows(self, name: str, at: int) -> list[tuple]:
        """Without ROWTIME: that of a deletion is not in history."""
        return [row[:-1] for row in self.driver.rows(name, Time(at))]


@pytest.fixture
def history(engine: Engine, tmp_path: Path) -> Iterator[History]:
    made = History(engine, tmp_path)
    yield made
    made.driver.close()


@pytest.mark.parametrize("rows", [1, 50_000])
def test_what_comes_late_has_the_history_of_its_inputs(
    history: History, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "ROWS", rows)
    for kind in QUERIES:
        history.create_late(kind)
        assert history.replay() > 5
        late = CollectionId(f"LATE_{kind}")
        assert history.driver.store.frontier(late).since == history.start
        seen = set()
        for at in range(history.start, history.end + 1):
            assert history.rows(late, at) == history.rows(f"LIVE_{kind}", at), (kind, at)
            seen.add(str(history.rows(late, at)))
        assert len(seen) > 3, f"{kind} has a history to speak of"


def test_a_replay_goes_on_where_the_process_died(history: History) -> None:
    for kind in ("GROUPED", "JOINED"):
        history.create_late(kind)
        assert history.replay(most=4) == 4
        assert history.status(kind) is Status.BUILDING
        # Another process knows nothing of what the first had read ahead.
        history.driver = history.driver.restart()
        assert history.status(kind) is Status.RUNNING
        assert history.driver.store.frontier(CollectionId(f"LATE_{kind}")).since == history.start
        for at in range(history.start, history.end + 1):
            assert history.rows(f"LATE_{kind}", at) == history.rows(f"LIVE_{kind}", at), (kind, at)


def test_inputs_that_never_changed_are_taken_as_they_are(engine: Engine) -> None:
    driver = Driver(engine, LIVE)
    driver.tick([Record("a", b"p", b'{"g": "x", "n": 3}')])
    late, replay = QueryId("LATE"), Replay(driver.store)
    tables = {ObjectName("A"): driver.program("A")}
    first = replay.next(late, tables, driver.time)
    assert first is not None
    assert (first.at, first.inputs.objects[ObjectName("A")].num_rows) == (driver.time, 1)
    stage = driver.store.stage()
    stage.move(late, replayed_to=first.at)
    stage.commit(first.at)
    assert replay.next(late, tables, driver.time) is None
    driver.close()
