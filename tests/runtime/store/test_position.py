"""How far a query has come: offsets, placement, and what it replayed of its inputs."""

import json

import duckdb
import pytest

from holdfast.names import QueryId, TopicName
from holdfast.runtime.store.duckdb import open_store
from holdfast.runtime.store.duckdb.disk import files
from holdfast.runtime.store.port import NEW_QUERY, EndOffset, Placement, QueryPosition, Time

QUERY, TOPIC = QueryId("Q"), TopicName("t")


@pytest.mark.parametrize("placement", list(Placement))
def test_the_placement_of_a_query_changes_with_the_commit_that_makes_it_true(placement, tmp_path):
    store = open_store(tmp_path)
    assert store.position(QUERY) == NEW_QUERY
    assert store.position(QUERY).placement is Placement.BEHIND
    stage = store.stage()
    stage.move(QUERY, [EndOffset(TOPIC, 0, 3)], Placement.BEHIND)
    stage.commit(Time(1))
    stage = store.stage()
    stage.move(QUERY, [EndOffset(TOPIC, 0, 8)], placement)
    assert store.position(QUERY) == QueryPosition(Placement.BEHIND, {(TOPIC, 0): 3})
    stage.commit(Time(2))
    store.close()
    store = open_store(tmp_path)
    assert store.position(QUERY) == QueryPosition(placement, {(TOPIC, 0): 8})
    store.close()


def test_a_move_changes_only_what_it_names(store):
    for move in (
        lambda stage: stage.move(QUERY, [EndOffset(TOPIC, 0, 3), EndOffset(TOPIC, 1, 4)]),
        lambda stage: stage.move(QUERY, replayed_to=Time(7)),
        lambda stage: stage.move(QUERY, placement=Placement.LIVE),
        lambda stage: stage.move(QUERY, [EndOffset(TOPIC, 1, 5)]),
    ):
        stage = store.stage()
        move(stage)
        stage.commit(Time(store.last_time() + 1))
    assert store.position(QUERY) == QueryPosition(Placement.LIVE, {(TOPIC, 0): 3, (TOPIC, 1): 5}, Time(7))
    assert store.queries() == {QUERY}
    store.forget_query(QUERY)
    assert store.position(QUERY) == NEW_QUERY


@pytest.mark.parametrize(("number", "placement"), [(0, "BEHIND"), (1, "LIVE"), (2, "REBUILD")])
def test_the_stored_form_of_a_position_stays_readable(number, placement, tmp_path):
    """As the first release wrote it: the placement is the offset of partition 0 of a topic without a name."""
    open_store(tmp_path).close()
    entries = [["position", "Q", "t", 2, [9]], ["position", "Q", "", 0, [number]], ["position", "Q", "", 1, [77]]]
    with duckdb.connect(str(tmp_path / files.FILE)) as database:
        row = "INSERT INTO ledger (n, entries) SELECT coalesce(max(n), 0) + 1, ? FROM ledger"
        database.execute(row, [json.dumps(entries)])
    store = open_store(tmp_path)
    assert store.position(QUERY) == QueryPosition(Placement[placement], {(TOPIC, 2): 9}, Time(77))
    stage = store.stage()
    stage.move(QUERY, placement=Placement.LIVE)
    stage.commit(Time(100))
    store.close()
    with duckdb.connect(str(tmp_path / files.FILE)) as database:
        written = [e for (text,) in database.execute("SELECT entries FROM ledger").fetchall() for e in json.loads(text)]
    assert ["position", "Q", "", 0, [1]] in written
