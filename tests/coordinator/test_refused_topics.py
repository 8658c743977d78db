"""A topic that Kafka does not let the server describe, read or write stops its own queries, and no others."""

import pytest

from holdfast.app import Service
from holdfast.kafka.port import RecordRefused, TopicProblem
from holdfast.names import TopicName

from .servers import Servers
from .service_calls import records, rows, run, states

SETUP = """
CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC = 's', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE STREAM o (id STRING KEY, n INT) WITH (KAFKA_TOPIC = 'o', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC = 's', VALUE_FORMAT = 'JSON');
CREATE TABLE totals AS SELECT id, SUM(n) AS n FROM s GROUP BY id;
CREATE STREAM twice AS SELECT id, n * 2 AS n FROM s;
CREATE TABLE others AS SELECT id, SUM(n) AS n FROM o GROUP BY id;
"""
S = TopicName("s")


def problem(topic: TopicName, *, lasting: bool = True) -> TopicProblem:
    return TopicProblem(
        f'topic "{topic}" cannot be described',
        topic=topic,
        lasting=lasting,
        detail="Topic authorization failed.",
        hint="Allow this user to describe the topic.",
    )


def write(servers: Servers, topic: str, *numbers: int) -> None:
    servers.write(topic, *(b'{"N": %d}' % n for n in numbers), key=b"a")


def of(service: Service, sink: str) -> tuple[str, str | None]:
    """The state of the query with this sink, and why it does not run."""
    return next((q.state, q.reason) for q in service.queries() if q.sink == sink)


def resume_all(service: Service) -> None:
    for query in [query.id for query in service.queries() if query.state == "ERROR"]:
        run(service, f"PAUSE {query}; RESUME {query};")


@pytest.mark.parametrize("denied", ["describe", "read"])
@pytest.mark.parametrize("noticed", ["while it runs", "at the start"])
def test_a_denied_topic_stops_its_readers_only(servers: Servers, denied: str, noticed: str) -> None:
    service = servers.start()
    run(service, SETUP)
    write(servers, "s", 1)
    denials = servers.broker.problems if denied == "describe" else servers.broker.unreadable
    denials[S] = problem(S)
    if noticed == "at the start":
        service = servers.start()
    write(servers, "s", 2)
    write(servers, "o", 5)
    servers.let_pass()
    write(servers, "o", 6)
    assert rows(service, "others") == {("a", 11)}
    for sink in ("TOTALS", "TWICE"):
        state, reason = of(service, sink)
        assert state == "ERROR"
        assert 'topic "s" cannot be' in (reason or "")
        assert "PAUSE and RESUME" in (reason or "")
    # Neither new queries nor a restart depend on the denied topic.
    run(service, "CREATE TABLE counts AS SELECT id, COUNT(*) AS c FROM o GROUP BY id;")
    assert rows(service, "counts") == {("a", 2)}
    service = servers.start()
    write(servers, "o", 7)
    assert rows(service, "others") == {("a", 18)}
    assert of(service, "TOTALS")[0] == "ERROR"

    denials.clear()
    write(servers, "s", 3)
    servers.let_pass()
    assert rows(service, "t") == {("a", 3)}, "a table over the topic resumes by itself"
    resume_all(service)
    write(servers, "s", 4)
    assert set(states(service).values()) == {"RUNNING"}
    assert rows(service, "totals") == {("a", 10)}
    assert [value for _, value in records(service, "TWICE")] == [b'{"N":%d}' % n for n in (2, 4, 6, 8)]


def test_a_table_resumes_too_when_a_statement_finds_its_topic_readable(servers: Servers, service: Service) -> None:
    run(service, SETUP)
    servers.broker.unreadable[S] = problem(S)
    write(servers, "s", 1)
    servers.let_pass()
    servers.broker.unreadable.clear()
    run(service, "CREATE TYPE number AS INT;")
    write(servers, "s", 2)
    assert rows(service, "t") == {("a", 2)}


def test_after_a_passing_problem_a_topic_goes_on_by_itself(servers: Servers, service: Service) -> None:
    run(service, SETUP)
    write(servers, "s", 1)
    servers.broker.problems[S] = problem(S, lasting=False)
    write(servers, "s", 2)
    write(servers, "o", 5)
    servers.let_pass()
    write(servers, "o", 6)
    assert rows(service, "others") == {("a", 11)}
    servers.broker.problems.clear()
    servers.let_pass()
    write(servers, "s", 3)
    assert set(states(service).values()) == {"RUNNING"}
    assert rows(service, "totals") == {("a", 6)}
    assert [value for _, value in records(service, "TWICE")] == [b'{"N":%d}' % n for n in (2, 4, 6)]


def test_a_backfill_over_a_topic_with_a_passing_problem_waits_and_others_are_built(
    servers: Servers, service: Service
) -> None:
    run(service, SETUP)
    write(servers, "s", 1, 2)
    write(servers, "o", 5)
    servers.broker.problems[S] = problem(S, lasting=False)
    run(service, "CREATE TABLE late WITH (PARTITIONS = 1) AS SELECT id, SUM(n) AS n FROM s GROUP BY id;")
    run(service, "CREATE TABLE counts AS SELECT id, COUNT(*) AS c FROM o GROUP BY id;")
    assert rows(service, "counts") == {("a", 1)}
    assert of(service, "LATE")[0] == "BUILDING"
    servers.broker.problems.clear()
    servers.let_pass()
    assert rows(service, "late") == {("a", 3)}


def test_a_sink_whose_topic_cannot_be_described_does_not_hold_up_others(servers: Servers, service: Service) -> None:
    run(service, SETUP)
    run(service, "CREATE STREAM plus AS SELECT id, n + 1 AS n FROM o;")
    twice = TopicName("TWICE")
    servers.broker.problems[twice] = problem(twice)
    servers.broker.refusals[twice] = RecordRefused('topic "TWICE" refused a record', topic=twice, lasting=True)
    write(servers, "s", 1)
    write(servers, "o", 1)
    servers.let_pass()
    assert of(service, "TWICE")[0] == "ERROR"
    assert [value for _, value in records(service, "PLUS")] == [b'{"N":2}']
    service = servers.start()
    write(servers, "o", 2)
    assert [value for _, value in records(service, "PLUS")] == [b'{"N":2}', b'{"N":3}']
    run(service, "CREATE STREAM minus AS SELECT id, n - 1 AS n FROM o;")
    assert [value for _, value in records(service, "MINUS")] == [b'{"N":0}', b'{"N":1}']
    servers.broker.problems.clear()
    servers.broker.refusals.clear()
    resume_all(service)
    write(servers, "s", 2)
    assert [value for _, value in records(service, "TWICE")] == [b'{"N":2}', b'{"N":4}']
    assert rows(service, "totals") == {("a", 3)}


def test_lags_of_other_queries_are_shown_beside_a_denied_topic(servers: Servers, service: Service) -> None:
    run(service, SETUP)
    write(servers, "o", 5)
    servers.broker.problems[S] = problem(S)
    shown = {lag.topic for lags in service.lags().values() for lag in lags}
    assert shown == {"o"}
