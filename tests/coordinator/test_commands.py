"""A statement whose plan cannot run leaves nothing behind; a stored one that cannot leaves the others alone."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from holdfast.app import Service
from holdfast.catalog.commands import Command, CommandAction, CommandId, encode_command
from holdfast.catalog.snapshot import Catalog
from holdfast.coordinator.topics.follower import TopicFollower
from holdfast.errors import CommandInDoubt, HoldfastError, KafkaError, NotYetSupported, ReadError
from holdfast.names import TopicName
from holdfast.planner import plan as planning
from holdfast.planner.plan import plan
from holdfast.planner.query import plan_steps
from holdfast.runtime.plan.codec import encode
from holdfast.runtime.plan.steps import ExpressionText, Step, StepProperties, StreamFilter
from holdfast.sql.bind.create_as import BoundCreateAs
from holdfast.sql.bind.statement import bind
from holdfast.sql.bind.target import Target
from holdfast.sql.query.continuous import BoundQuery
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.parse import statements

from .servers import LONG, Servers

SOURCE = "CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC = '{}', VALUE_FORMAT = 'JSON', PARTITIONS = 1);"
TOTALS = "CREATE TABLE totals AS SELECT id, SUM(n) AS total FROM s GROUP BY id;"


def misplaced(query: BoundQuery, target: Target) -> Step:
    """As a release would plan that can do with a table what this one has no builder for."""
    sink = plan_steps(query, target)
    step = StreamFilter(
        properties=StepProperties(query_context="Misplaced"),
        source=sink.source,
        filter_expression=ExpressionText("true"),
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
        patched.setattr(planning, "plan_steps", misplaced)
        with pytest.raises(NotYetSupported, match="cannot run step streamFilterV1 here") as refused:
            execute(service, TOTALS)
    assert refused.value.sqlstate == "0A000"
    assert refused.value.detail == "The step is at Misplaced."
    assert len(service._log.read_all()) == written
    assert (set(service.topics()), service.queries()) == (topics, queries)
    assert dict(service.catalog.objects) == objects
    # Nothing of it is in the way.
    execute(service, TOTALS)
    assert [query.sink for query in service.queries()] == ["TOTALS"]


def test_a_stored_step_without_a_builder_stops_its_query_only(
    servers: Servers, new_topic: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after going back to an older release: the command topic has a plan that this one cannot run."""
    first = servers.start()
    execute(first, SOURCE.format(new_topic()) + TOTALS)
    (parsed,) = statements(TOTALS.replace("totals", "later"))
    bound = bind(parsed.statement, first.catalog, {})
    assert isinstance(bound, BoundCreateAs)
    monkeypatch.setattr(planning, "plan_steps", misplaced)
    encoded = encode(plan(bound, text=parsed.text, number=99))
    monkeypatch.undo()
    id_ = CommandId("table", "LATER", CommandAction.CREATE)
    first._log.append(*encode_command(Command(id=id_, statement=parsed.text, plan=encoded)))
    second = servers.start()
    states = {q.sink: q for q in second.queries()}
    assert states["TOTALS"].state == "RUNNING"
    assert states["LATER"].state == "INCOMPATIBLE"
    assert "cannot run step streamFilterV1 here" in str(states["LATER"].reason)
    execute(second, "CREATE STREAM more AS SELECT id, n FROM s;")
    assert {q.sink for q in second.queries()} == {"TOTALS", "LATER", "MORE"}


TABLE = "CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC = '{}', VALUE_FORMAT = 'JSON');"


def test_a_command_that_is_written_stands_though_setting_it_up_fails_at_first(
    servers: Servers, service: Service, new_topic: Callable[[], TopicName], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is built of it waits for its topic to be followed: it must not pass over the records that are there."""
    topic = new_topic()
    servers.write(topic, b'{"N": 1}', key=b"a")

    def failing(self: TopicFollower, catalog: Catalog) -> None:
        del self, catalog
        raise HoldfastError("no space is left on the disk")

    with monkeypatch.context() as patched:
        patched.setattr(TopicFollower, "follow", failing)
        execute(service, TABLE.format(topic))
        assert service.catalog.find("T") is not None
        for _ in range(5):
            servers.clock.advance(LONG)
            with pytest.raises(HoldfastError, match="no space is left"):
                service.coordinator.step()
        bound = bind(next(iter(statements("SELECT * FROM t;"))).statement, service.catalog, {})
        assert isinstance(bound, BoundSelect)
        with pytest.raises(ReadError, match="still building"):
            service.pull(bound)
    servers.let_pass()
    assert service.pull(bound).rows.to_pylist() == [{"r0": "a", "r1": 1}]


def test_a_statement_that_was_written_though_kafka_did_not_say_so_takes_effect(
    service: Service, new_topic: Callable[[], TopicName], monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = service._log._producer.commit

    def cut_off() -> None:
        commit()
        raise KafkaError("Kafka is away")

    with monkeypatch.context() as patched:
        patched.setattr(service._log._producer, "commit", cut_off)
        with pytest.raises(CommandInDoubt, match="not known whether"):
            execute(service, SOURCE.format(new_topic()))
    execute(service, TOTALS)
    assert {found.name for found in service.catalog.objects.values()} >= {"S", "TOTALS"}
