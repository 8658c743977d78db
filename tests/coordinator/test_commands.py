"""A statement whose plan cannot run leaves nothing behind; a stored one that cannot leaves the others alone."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from holdfast.app import Service
from holdfast.catalog.commands import Command, CommandAction, CommandId, encode_command
from holdfast.config import Settings
from holdfast.errors import NotYetSupported
from holdfast.planner import plan as planning
from holdfast.planner.plan import plan
from holdfast.planner.query import plan_steps
from holdfast.runtime.plan.codec import encode
from holdfast.runtime.plan.steps import RefinementInfo, Step, StepProperties, TableSuppress
from holdfast.runtime.plan.windows import OutputRefinement
from holdfast.runtime.spark.session import Sessions
from holdfast.runtime.store.duckdb.store import open_store
from holdfast.sql.bind import bind
from holdfast.sql.bound import BoundCreateAs, BoundQuery, Target
from holdfast.sql.parse import statements

SOURCE = "CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC = '{}', VALUE_FORMAT = 'JSON', PARTITIONS = 1);"
TOTALS = "CREATE TABLE totals AS SELECT id, SUM(n) AS total FROM s GROUP BY id;"


def suppressed(query: BoundQuery, target: Target) -> Step:
    """As a release would plan that has a step which this one has no builder for."""
    sink = plan_steps(query, target)
    step = TableSuppress(
        properties=StepProperties(query_context="Suppress"),
        source=sink.source,
        refinement_info=RefinementInfo(output_refinement=OutputRefinement.FINAL),
        internal_formats=target.formats,
    )
    return replace(sink, source=step)


def execute(service: Service, sql: str) -> None:
    for parsed in statements(sql):
        service.execute(parsed, {})


def test_a_step_without_a_builder_is_refused_at_create(
    service: Service, new_topic: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(service, SOURCE.format(new_topic()))
    topics, queries, objects = set(service.topics()), service.queries(), dict(service.catalog.objects)
    written = len(service._log.read_all())
    with monkeypatch.context() as patched:
        patched.setattr(planning, "plan_steps", suppressed)
        with pytest.raises(NotYetSupported, match="cannot run step tableSuppressV1 here") as refused:
            execute(service, TOTALS)
    assert refused.value.sqlstate == "0A000"
    assert refused.value.detail == "The step is at Suppress."
    assert len(service._log.read_all()) == written
    assert (set(service.topics()), service.queries()) == (topics, queries)
    assert dict(service.catalog.objects) == objects
    # Nothing of it is in the way.
    execute(service, TOTALS)
    assert [query.sink for query in service.queries()] == ["TOTALS"]


def test_a_stored_step_without_a_builder_stops_its_query_only(
    settings: Settings, sessions: Sessions, new_topic: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after going back to an older release: the command topic has a plan that this one cannot run."""
    first = Service(settings, sessions, open_store(settings.data_dir / "store"))
    try:
        execute(first, SOURCE.format(new_topic()) + TOTALS)
        (parsed,) = statements(TOTALS.replace("totals", "later"))
        bound = bind(parsed.statement, first.catalog, {})
        assert isinstance(bound, BoundCreateAs)
        monkeypatch.setattr(planning, "plan_steps", suppressed)
        encoded = encode(plan(bound, text=parsed.text, number=99))
        monkeypatch.undo()
        id_ = CommandId("table", "LATER", CommandAction.CREATE)
        first._log.append(*encode_command(Command(id=id_, statement=parsed.text, plan=encoded)))
    finally:
        first.stop()
    second = Service(settings, sessions, open_store(settings.data_dir / "store"))
    try:
        deadline = time.monotonic() + 60
        while (states := {q.sink: q for q in second.queries()})["TOTALS"].state != "RUNNING":
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert states["LATER"].state == "ERROR"
        assert "cannot run step tableSuppressV1 here" in str(states["LATER"].reason)
        execute(second, "CREATE STREAM more AS SELECT id, n FROM s;")
        assert {q.sink for q in second.queries()} == {"TOTALS", "LATER", "MORE"}
    finally:
        second.stop()
