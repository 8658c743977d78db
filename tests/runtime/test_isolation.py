"""A query that fails is left out of the tick, whole; the others are not."""

from dataclasses import replace

import pytest
from runtime.driver import Driver, Record

from holdfast.runtime.program import MergeInto, Program
from holdfast.runtime.store.port import Merge

SQL = """
CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE STREAM good AS SELECT id, n FROM s;
CREATE STREAM p AS SELECT id, n FROM s;
CREATE TABLE after_p AS SELECT id, COUNT(*) AS c FROM p GROUP BY id;
CREATE TABLE along AS SELECT id, COUNT(*) AS c FROM s GROUP BY id;
CREATE TABLE back AS SELECT id, COUNT(*) + 0 AS c FROM s GROUP BY id;
"""
ONE = [Record("s", b"a", b'{"N": 1}')]


def with_fragment(program: Program, index: int, sql: str) -> Program:
    stages = list(program.stages)
    stages[index] = replace(stages[index], fragment=replace(stages[index].fragment, sql=sql))
    return replace(program, stages=tuple(stages))


def with_merge(program: Program, merge: Merge) -> Program:
    first, *rest = program.stages
    assert isinstance(first.action, MergeInto)
    return replace(program, stages=(replace(first, action=replace(first.action, merge=merge)), *rest))


FAILING = {
    "a fragment that Spark refuses": (
        "P",
        lambda p: with_fragment(p, 0, "SELECT k0 FROM nowhere"),
        "`nowhere` cannot be found",
    ),
    "a fragment that fails on its rows": (
        "P",
        lambda p: with_fragment(p, 0, f"SELECT * FROM ({p.stages[0].fragment.sql}) WHERE raise_error('refused')"),
        "refused",
    ),
    "a second stage that fails after the first was merged": (
        "BACK",
        lambda p: with_fragment(p, 1, "SELECT nothing FROM nowhere"),
        "`nowhere` cannot be found",
    ),
    "a merge that the store refuses": (
        "ALONG",
        lambda p: with_merge(p, Merge(("0",), ("CAST('x' || s0 AS BIGINT)",))),
        "Could not convert string 'x0'",
    ),
    "keys that are not unique": (
        "ALONG",
        lambda p: with_fragment(
            p, 0, f"SELECT * FROM ({p.stages[0].fragment.sql}) LATERAL VIEW explode(array(1, 2)) AS twice"
        ),
        "not unique",
    ),
}


@pytest.mark.parametrize(("name", "spoil", "reason"), FAILING.values(), ids=list(FAILING))
def test_a_failing_query_leaves_nothing_and_stops_no_other(name, spoil, reason, engine, tmp_path):
    driver = Driver(engine, SQL, folder=tmp_path)
    whole = driver.program(name)
    driver.dataflow.add(spoil(whole))
    outcome = driver.tick(ONE)
    assert list(outcome.failed) == [whole.query]
    assert reason in outcome.failed[whole.query]
    assert whole.query not in outcome.touched
    assert driver.sent(name) == []
    assert [sent.value for sent in driver.sent("GOOD")] == [b'{"N":1}']
    assert driver.rows("AFTER_P") == ([] if name == "P" else [("a", 1, 0)])
    # Mended, it resumes from where it was: nothing of the failed tick is in its state, and its record is read again.
    driver = driver.restart()
    assert driver.tick(ONE).failed == {}
    counted = {table: driver.rows(table)[0][1] for table in ("ALONG", "BACK", "AFTER_P")}
    assert counted == {"ALONG": 2, "BACK": 2, "AFTER_P": 2}
    driver.close()
