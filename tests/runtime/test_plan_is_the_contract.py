"""What runs is what the stored bytes say, whatever the planner does."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from runtime.driver import Driver, Record

from holdfast.planner import commands
from holdfast.planner import plan as planning
from holdfast.planner.query import plan_steps
from holdfast.runtime.plan.codec import encode
from holdfast.runtime.plan.document import Plan
from holdfast.runtime.plan.steps import StreamAggregate, StreamFilter, StreamSelect

SQL = """
CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE STREAM p AS SELECT id, n + 1 AS n FROM s WHERE n > 1;
CREATE TABLE t AS SELECT id, SUM(n) AS s FROM s GROUP BY id;
"""
THREE = [Record("s", b"a", b'{"N": %d}' % n) for n in (1, 2, 3)]


def nodes(value: Any) -> Iterator[Any]:
    """Every dataclass in a plan."""
    if is_dataclass(value):
        yield value
        for field in fields(value):
            yield from nodes(getattr(value, field.name))


def spoiled(plan: Plan) -> None:
    """Change a plan's meaning in place, behind the back of its frozen classes."""
    for node in nodes(plan):
        match node:
            case StreamFilter():
                object.__setattr__(node, "filter_expression", "(N > 1000)")
            case StreamAggregate():
                object.__setattr__(node, "aggregation_functions", ("COUNT(N)",))
            case StreamSelect():
                object.__setattr__(node, "select_expressions", ("N * 1000 AS N",))


def results(driver: Driver) -> tuple[list[bytes | None], list[tuple[Any, ...]]]:
    return [sent.value for sent in driver.sent("P")], driver.rows("T")


def test_a_new_planner_does_not_change_a_running_query(engine, tmp_path, monkeypatch):
    driver = Driver(engine, SQL, folder=tmp_path)
    driver.tick(THREE)
    stored = list(driver.commands)

    def planned_otherwise(query, target):
        step = plan_steps(query, target)
        if isinstance(step.source, StreamSelect):
            step = replace(step, source=replace(step.source, select_expressions=("N * 1000 AS N",)))
        return step

    monkeypatch.setattr(planning, "plan_steps", planned_otherwise)
    driver = driver.restart()
    driver.tick(THREE)
    assert results(driver) == ([b'{"N":3}', b'{"N":4}'] * 2, [("a", 12, 0)])
    assert driver.commands == stored
    # The new planner is at work: what is created now means something else.
    driver.execute("CREATE STREAM q AS SELECT id, n + 1 AS n FROM s;")
    driver.tick(THREE[:1])
    written = [b'{"N":1000}', b'{"N":2000}', b'{"N":3000}'] * 2 + [b'{"N":1000}']
    assert [sent.value for sent in driver.sent("Q")] == written
    driver.close()


def test_what_becomes_of_the_planners_object_does_not_matter(engine, tmp_path, monkeypatch):
    def encode_then_spoil(plan: Plan) -> bytes:
        encoded = encode(plan)
        spoiled(plan)
        assert plan.query_plan is None or encode(plan) != encoded
        return encoded

    monkeypatch.setattr(commands, "encode", encode_then_spoil)
    driver = Driver(engine, SQL, folder=tmp_path)
    driver.tick(THREE)
    assert results(driver) == ([b'{"N":3}', b'{"N":4}'], [("a", 6, 0)])
    driver.close()


def test_the_text_of_a_statement_is_not_what_runs(engine, tmp_path):
    driver = Driver(engine, SQL, folder=tmp_path)
    commands = [(key, value.replace(b"n + 1", b"n + 7")) for key, value in driver.commands]
    assert any(b"n + 7" in value for _, value in commands)
    driver = driver.restart(commands)
    driver.tick(THREE)
    assert results(driver) == ([b'{"N":3}', b'{"N":4}'], [("a", 6, 0)])
    driver.close()
