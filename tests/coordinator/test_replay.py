"""A query that comes late and replays the history of its inputs has the history that it would have had all along."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from runtime.driver import Driver, Record

from holdfast.coordinator import replay as replaying
from holdfast.coordinator.replay import Replay
from holdfast.names import CollectionId, ObjectName, QueryId
from holdfast.runtime.progress import replayed_upto
from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.store.port import Time

SETUP = """
CREATE TABLE a (id STRING PRIMARY KEY, g STRING, n INT) WITH (KAFKA_TOPIC = 'a', VALUE_FORMAT = 'JSON');
CREATE TABLE b (id STRING PRIMARY KEY, m INT) WITH (KAFKA_TOPIC = 'b', VALUE_FORMAT = 'JSON');
CREATE TABLE {0}_filtered AS SELECT id, UCASE(g) AS big, n FROM a WHERE n > 1;
CREATE TABLE {0}_grouped AS SELECT g, COUNT(*) AS c, SUM(n) AS s FROM a GROUP BY g;
CREATE TABLE {0}_joined AS SELECT a.id, a.n, b.m FROM a JOIN b ON a.id = b.id;
CREATE TABLE {0}_left AS SELECT a.id, a.n, b.m FROM a LEFT JOIN b ON a.id = b.id;
"""
LATE = SETUP.split("\n", 3)[3]
KINDS = ("FILTERED", "GROUPED", "JOINED", "LEFT")


class History:
    """Tables that change, with queries over them that ride along; and others that come at the end."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.driver = Driver(engine, folder, SETUP.format("live"))
        self.ticker = self.driver._ticker
        chances = random.Random(4)
        for step in range(14):
            self.driver.tick([self._change(chances) for _ in range(1 + step % 3)])
        self.start = Time(4)
        self.driver.execute(LATE.format("late"))

    @staticmethod
    def _change(chances: random.Random) -> Record:
        key, topic = chances.choice("pqrs").encode(), chances.choice("aab")
        if chances.random() < 0.25:
            return Record(topic, key, None)
        value = {"a": {"g": chances.choice("xy"), "n": chances.randint(0, 4)}, "b": {"m": chances.randint(0, 4)}}
        return Record(topic, key, json.dumps(value[topic]).encode())

    def replay(self, kind: str, replay: Replay, *, most: int = 1000) -> int:
        """Give a late query what it lacks, slice by slice; gives how many there were."""
        program = self.driver.program(f"LATE_{kind}")
        store, collection = self.driver.store, program.collection
        assert collection is not None
        if not store.changed_at(collection):
            store.advance_since(collection, self.start)
        tables = {name: self.driver.program(name) for name in program.objects}
        for done in range(most):
            step = replay.next(program.query, tables, self.start)
            if step is None:
                return done
            stage, outcome = self.ticker.run(self.driver.dataflow, {program.query: program}, step.inputs)
            assert not outcome.failed
            stage.move(program.query, step.moved)
            stage.commit(step.at)
            assert replayed_upto(store.positions(program.query)) == step.at
        return most

    def show(self, kind: str) -> None:
        self.driver.store.set_upper([CollectionId(f"LATE_{kind}")], Time(self.driver.time + 1))

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
    for kind in KINDS:
        assert history.replay(kind, Replay(history.driver.store)) > 5
        history.show(kind)
        late = CollectionId(f"LATE_{kind}")
        assert history.driver.store.frontier(late).since == history.start
        seen = set()
        for at in range(history.start, history.driver.time + 1):
            assert history.rows(late, at) == history.rows(f"LIVE_{kind}", at), (kind, at)
            seen.add(str(history.rows(late, at)))
        assert len(seen) > 3, f"{kind} has a history to speak of"


def test_a_replay_goes_on_where_the_process_died(history: History) -> None:
    for kind in ("GROUPED", "JOINED"):
        assert history.replay(kind, Replay(history.driver.store), most=4) == 4
        # Another one knows nothing of what the first had read ahead.
        assert history.replay(kind, Replay(history.driver.store)) > 2
        history.show(kind)
        for at in range(history.start, history.driver.time + 1):
            assert history.rows(f"LATE_{kind}", at) == history.rows(f"LIVE_{kind}", at), (kind, at)


def test_inputs_that_never_changed_are_taken_as_they_are(engine: Engine, tmp_path: Path) -> None:
    driver = Driver(engine, tmp_path, SETUP.format("live"))
    driver.tick([Record("a", b"p", b'{"g": "x", "n": 3}')])
    driver.execute(LATE.format("late"))
    program, replay = driver.program("LATE_GROUPED"), Replay(driver.store)
    tables = {ObjectName("A"): driver.program("A")}
    first = replay.next(program.query, tables, driver.time)
    assert first is not None
    assert (first.at, first.inputs.objects[ObjectName("A")].num_rows) == (driver.time, 1)
    stage = driver.store.stage()
    stage.move(QueryId(program.query), first.moved)
    stage.commit(first.at)
    assert replay.next(program.query, tables, driver.time) is None
    driver.close()
