"""Sink topics that refuse records: their own queries stop or skip; all others go on, and nothing is lost or doubled."""

from typing import Any

import pytest

from holdfast.app import Service
from holdfast.errors import StoreError, TopicChanged
from holdfast.kafka.memory.producer import MemoryProducer
from holdfast.kafka.port import RecordRefused, TopicSpec, TransactionAborted
from holdfast.names import TopicName
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.parse import statements

from .servers import Servers
from .service_calls import records, rows, run, states

SETUP = """
CREATE STREAM s (id STRING KEY, n INT, t STRING) WITH (KAFKA_TOPIC = 's', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE STREAM good WITH (KAFKA_TOPIC = 'good') AS SELECT id, n FROM s;
CREATE STREAM bad WITH (KAFKA_TOPIC = 'bad') AS SELECT id, n, t FROM s;
"""
BAD = TopicName("bad")


def info(service: Service, sink: str) -> Any:
    return next(query for query in service.queries() if query.sink == sink)


def numbers(service: Service, topic: str) -> list[int]:
    return [int((value or b"").split(b'"N":')[1].rstrip(b"}").split(b",")[0]) for _, value in records(service, topic)]


def refuse(servers: Servers, *, lasting: bool, topic: TopicName = BAD) -> None:
    servers.broker.refusals[topic] = RecordRefused(
        f'topic "{topic}" refused a record',
        topic=topic,
        lasting=lasting,
        detail="Not authorized.",
        hint="Allow this user to write to the topic.",
    )


def insert(service: Service, *ns: int, text: str = "x") -> None:
    run(service, "".join(f"INSERT INTO s (id, n, t) VALUES ('a', {n}, '{text}');" for n in ns))


def resume(service: Service, sink: str) -> None:
    query = info(service, sink).id
    run(service, f"PAUSE {query};")
    run(service, f"RESUME {query};")


def test_a_record_that_is_too_large_fails_its_own_query_and_no_other(servers: Servers, service: Service) -> None:
    run(service, SETUP)
    servers.broker.topics[BAD].config = {"max.message.bytes": "100"}
    insert(service, 1)
    insert(service, 2, text="y" * 200)
    insert(service, 3)
    assert numbers(service, "good") == [1, 2, 3]
    assert numbers(service, "bad") == [1]
    failed = info(service, "BAD")
    assert failed.state == "ERROR"
    assert 'topic "bad" refused a record' in failed.reason
    assert "Raise max.message.bytes of the topic. Then PAUSE and RESUME the query." in failed.reason
    assert info(service, "GOOD").state == "RUNNING"
    assert "blocked: " in service.health().problems["publishing"]

    servers.broker.topics[BAD].config = {}
    resume(service, "BAD")
    insert(service, 4)
    assert numbers(service, "good") == [1, 2, 3, 4]
    assert numbers(service, "bad") == [1, 2, 3, 4]
    assert info(service, "BAD").state == "RUNNING"
    assert service.health().healthy


def test_a_query_that_skips_refused_records_goes_on_and_the_log_names_them(servers: Servers, service: Service) -> None:
    [stream, good, bad] = [f"{text.strip()};" for text in SETUP.split(";")[:3]]
    run(service, stream + good)
    run(service, bad, {"holdfast.refused.records": "SKIP"})
    servers.broker.topics[BAD].config = {"max.message.bytes": "100"}
    insert(service, 1)
    for n in (2, 3, 4, 5):
        servers.broker.append(TopicName("s"), b'{"N":%d,"T":"%s"}' % (n, b"y" * 200 if n % 2 == 0 else b"x"), b"a")
    service.run_until_idle()
    insert(service, 6)
    assert numbers(service, "good") == [1, 2, 3, 4, 5, 6]
    assert numbers(service, "bad") == [1, 3, 5, 6]
    assert info(service, "BAD").state == "RUNNING"
    [log] = [value or b"" for _, value in records(service, service.settings.processing_log_topic)]
    assert b'a record was not published: topic \\"bad\\" refused a record.' in log
    assert b'"TOTAL":2' in log


def test_a_topic_that_is_busy_is_tried_again_with_growing_pauses(servers: Servers, service: Service) -> None:
    run(service, SETUP)
    refuse(servers, lasting=False)
    insert(service, 1, 2)
    assert numbers(service, "good") == [1, 2]
    assert numbers(service, "bad") == []
    blocked = info(service, "BAD")
    assert blocked.state == "RUNNING"
    assert blocked.reason.startswith('blocked: topic "bad" refused a record.')
    assert service.health().problems["publishing"].startswith('blocked: topic "bad" refused a record.')
    attempts = []
    for _ in range(4):
        servers.let_pass(1.0)
        attempts.append(service.publishing._blocked._topics[BAD].failures)
    assert attempts == sorted(attempts)
    assert attempts[-1] - attempts[0] < 3
    servers.broker.refusals.clear()
    servers.let_pass(40.0)
    insert(service, 3)
    assert numbers(service, "bad") == [1, 2, 3]
    assert info(service, "BAD").reason is None
    assert service.health().healthy


@pytest.mark.parametrize("restarts", [False, True])
def test_a_deleted_sink_topic_fails_its_query_and_comes_back_whole(servers: Servers, restarts: bool) -> None:
    service = servers.start()
    run(service, SETUP)
    insert(service, 1)
    servers.broker.delete(BAD)
    insert(service, 2)
    assert info(service, "BAD").state == "ERROR"
    assert numbers(service, "good") == [1, 2]
    if restarts:
        service = servers.start()
        servers.let_pass(5.0)
    else:
        resume(service, "BAD")
    insert(service, 3)
    assert numbers(service, "good") == [1, 2, 3]
    assert numbers(service, "bad") == [2, 3]


def test_topics_of_an_abort_without_a_known_cause_are_tried_one_by_one(
    servers: Servers, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the right to write to one topic was taken away: Kafka does not name it."""
    commit = MemoryProducer.commit

    def unnamed(producer: MemoryProducer) -> Any:
        try:
            return commit(producer)
        except RecordRefused as error:
            raise TransactionAborted(error.message, lasting=error.lasting, detail=error.detail) from error

    run(service, SETUP)
    refuse(servers, lasting=True)
    with monkeypatch.context() as patched:
        patched.setattr(MemoryProducer, "commit", unnamed)
        insert(service, 1)
        assert numbers(service, "good") == [1]
        assert info(service, "GOOD").state == "RUNNING"
        assert info(service, "BAD").state == "ERROR"
        insert(service, 2)
        assert numbers(service, "good") == [1, 2]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_query_over_a_blocked_stream_can_be_paused_and_misses_nothing(servers: Servers, restarts: bool) -> None:
    """Its position in the stream's topic is known only once the rows before it are published."""
    service = servers.start()
    run(service, SETUP + "CREATE STREAM later WITH (KAFKA_TOPIC = 'later') AS SELECT id, n * 10 AS n FROM bad;")
    insert(service, 1)
    refuse(servers, lasting=False)
    insert(service, 2, 3)
    run(service, f"PAUSE {info(service, 'LATER').id};")
    assert info(service, "LATER").state == "PAUSED"
    insert(service, 4)
    assert numbers(service, "good") == [1, 2, 3, 4]
    assert numbers(service, "bad") == [1]
    assert numbers(service, "later") == [10, 20, 30]
    if restarts:
        service = servers.start()
    run(service, f"RESUME {info(service, 'LATER').id};")
    insert(service, 5)
    assert numbers(service, "good") == [1, 2, 3, 4, 5]
    assert numbers(service, "later") == [10, 20, 30]
    servers.broker.refusals.clear()
    servers.let_pass(40.0)
    servers.let_pass(2.0)
    assert numbers(service, "bad") == [1, 2, 3, 4, 5]
    assert numbers(service, "later") == [10, 20, 30, 40, 50]
    assert info(service, "LATER").state == "RUNNING"


def test_dropping_one_sink_leaves_the_rows_of_another_alone(servers: Servers, service: Service) -> None:
    """The first of two outboxes is published in part when it goes; the other counts its own rows only."""
    service.publishing._transaction_rows = service.publishing._blocked.transaction_rows = 1
    run(service, SETUP)
    refuse(servers, lasting=False)
    refuse(servers, lasting=False, topic=TopicName("good"))
    insert(service, 1, 2, 3)
    servers.broker.refusals.pop(TopicName("good"))
    servers.let_pass(40.0)
    assert numbers(service, "good") == [1, 2, 3]
    run(service, f"TERMINATE {info(service, 'GOOD').id};")
    servers.broker.refusals.clear()
    servers.let_pass(40.0)
    assert numbers(service, "bad") == [1, 2, 3]


def test_drop_publishes_what_is_pending_or_says_that_it_could_not(servers: Servers, service: Service) -> None:
    run(service, SETUP)
    refuse(servers, lasting=False)
    insert(service, 1, 2)
    [parsed] = statements("DROP STREAM bad;")
    done = service.execute(parsed, {})
    assert done.message.startswith('Stream BAD dropped. 2 rows are still to be published to topic "bad" (blocked: ')
    servers.broker.refusals.clear()
    servers.let_pass(40.0)
    assert numbers(service, "bad") == [1, 2]
    assert service._store.pending() == []
    assert not any(str(query).startswith("CSAS_BAD") for query in service._store.queries())


def test_the_rows_of_a_dropped_query_are_published_after_a_restart(servers: Servers) -> None:
    service = servers.start()
    run(service, SETUP)
    refuse(servers, lasting=False)
    insert(service, 1, 2)
    run(service, "DROP STREAM bad;")
    servers.broker.refusals.clear()
    service = servers.start()
    servers.let_pass(2.0)
    assert numbers(service, "bad") == [1, 2]
    assert service._store.pending() == []


def test_a_store_that_fails_for_a_moment_does_not_end_publishing(
    servers: Servers, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(service, SETUP)
    mark, failures = service._store.mark_published, iter(range(3))

    def full(*arguments: Any) -> None:
        if next(failures, None) is not None:
            raise StoreError("the disk is full")
        mark(*arguments)

    monkeypatch.setattr(service._store, "mark_published", full)
    servers.broker.append(TopicName("s"), b'{"N":1}', b"a")
    assert service.coordinator.step()
    for _ in range(3):
        with pytest.raises(StoreError):
            service.publishing.publish_pending()
    service.run_until_idle()
    assert numbers(service, "good") == [1]
    assert service._store.pending() == []
    insert(service, 2)
    assert numbers(service, "good") == [1, 2]


def test_a_huge_bad_record_stops_nothing(servers: Servers, service: Service) -> None:
    run(service, SETUP + "CREATE TABLE t AS SELECT id, COUNT(*) AS c FROM s GROUP BY id;")
    servers.write("s", b'{"N": "' + b"z" * 900_000, key=b"a")
    insert(service, 1)
    assert numbers(service, "good") == [1]
    assert rows(service, "t") == {("a", 1)}
    log = [value or b"" for _, value in records(service, service.settings.processing_log_topic)]
    assert log
    assert max(map(len, log)) < 200_000


def test_a_failed_insert_into_a_derived_stream_leaves_its_readers_where_they_were(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(service, SETUP + "CREATE STREAM later WITH (KAFKA_TOPIC = 'later') AS SELECT id, n * 10 AS n FROM good;")
    insert(service, 1)
    ticker = service.coordinator._ticks._ticker
    ran = type(ticker).run

    def fails(self: Any, *arguments: Any, **options: Any) -> Any:
        stage, outcome = ran(self, *arguments, **options)
        query = info(service, "LATER").id
        stage.discard(query)
        outcome.failed[query] = "it failed"
        return stage, outcome

    with monkeypatch.context() as patched:
        patched.setattr(type(ticker), "run", fails)
        run(service, "INSERT INTO good (id, n) VALUES ('a', 2);")
    assert info(service, "LATER").state == "ERROR"
    resume(service, "LATER")
    insert(service, 3)
    assert numbers(service, "good") == [1, 2, 3]
    assert numbers(service, "later") == [10, 20, 30]


MANY = """
CREATE STREAM a (id STRING KEY, n INT, t STRING) WITH (KAFKA_TOPIC = 'a', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE STREAM b (id STRING KEY, n INT, t STRING) WITH (KAFKA_TOPIC = 'b', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE STREAM bad WITH (KAFKA_TOPIC = 'bad') AS SELECT id, n, t FROM a;
INSERT INTO bad WITH (QUERY_ID = 'from_b') SELECT id, n, t FROM b;
"""


def write(servers: Servers, topic: str, *ns: int, text: str = "x") -> None:
    servers.write(topic, *(b'{"N":%d,"T":"%s"}' % (n, text.encode()) for n in ns))


@pytest.mark.parametrize("at_once", [False, True])
def test_a_refused_record_fails_its_own_query_of_those_that_write_to_a_stream(
    servers: Servers, service: Service, at_once: bool
) -> None:
    run(service, MANY)
    servers.broker.topics[BAD].config = {"max.message.bytes": "100"}
    if at_once:
        servers.broker.append(TopicName("a"), b'{"N":1}', b"k")
        servers.broker.append(TopicName("a"), b'{"N":2,"T":"%s"}' % (b"y" * 200), b"k")
        servers.broker.append(TopicName("b"), b'{"N":10}', b"k")
        service.run_until_idle()
    else:
        write(servers, "a", 1)
        write(servers, "a", 2, text="y" * 200)
        write(servers, "b", 10)
    write(servers, "b", 11)
    assert info(service, "BAD").state == "ERROR"
    writer = next(query for query in service.queries() if query.id == "FROM_B")
    assert (writer.state, writer.reason) == ("RUNNING", None)
    assert [n for n in numbers(service, "bad") if n >= 10] == [10, 11]
    assert [n for n in numbers(service, "bad") if n < 10] == [1]
    servers.broker.topics[BAD].config = {}
    resume(service, "BAD")
    write(servers, "a", 3)
    assert [n for n in numbers(service, "bad") if n < 10] == [1, 2, 3]
    assert set(states(service).values()) == {"RUNNING"}


def test_a_deleted_topic_fails_all_queries_that_write_to_it(servers: Servers, service: Service) -> None:
    run(service, MANY)
    servers.broker.delete(BAD)
    write(servers, "a", 1)
    assert set(states(service).values()) == {"ERROR"}
    servers.topics.create(TopicSpec(name=BAD))
    for query in states(service):
        run(service, f"PAUSE {query}; RESUME {query};")
    write(servers, "b", 2)
    assert sorted(numbers(service, "bad")) == [1, 2]
    assert service.health().healthy


def test_a_new_query_may_write_to_a_topic_that_was_refused_for_good(servers: Servers, service: Service) -> None:
    run(service, MANY)
    refuse(servers, lasting=True)
    write(servers, "a", 1)
    servers.broker.refusals.clear()
    run(service, "INSERT INTO bad WITH (QUERY_ID = 'again') SELECT id, n + 100 AS n, t FROM b;")
    write(servers, "b", 2)
    assert {1, 102} <= set(numbers(service, "bad"))


def test_a_query_that_skips_records_fails_when_its_topic_is_deleted(servers: Servers, service: Service) -> None:
    [stream, good, bad] = [f"{text.strip()};" for text in SETUP.split(";")[:3]]
    run(service, stream + good)
    run(service, bad, {"holdfast.refused.records": "SKIP"})
    servers.broker.delete(BAD)
    insert(service, 1, 2)
    failed = info(service, "BAD")
    assert failed.state == "ERROR"
    assert 'topic "bad" cannot be found' in failed.reason
    assert records(service, service.settings.processing_log_topic) == []
    servers.topics.create(TopicSpec(name=BAD))
    resume(service, "BAD")
    assert numbers(service, "bad") == [1, 2]


@pytest.mark.parametrize("statement", ["DROP STREAM bad;", "TERMINATE {};"])
def test_the_rows_of_a_query_in_error_are_published_when_it_ends(
    servers: Servers, service: Service, statement: str
) -> None:
    run(service, SETUP)
    refuse(servers, lasting=True)
    insert(service, 1, 2)
    assert info(service, "BAD").state == "ERROR"
    servers.broker.refusals.clear()
    run(service, statement.format(info(service, "BAD").id))
    assert numbers(service, "bad") == [1, 2]
    assert service._store.pending() == []
    assert service.health().healthy


def test_the_rows_of_a_dropped_query_are_given_up_at_once_when_its_topic_takes_none(
    servers: Servers, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    run(service, SETUP)
    refuse(servers, lasting=True)
    insert(service, 1, 2)
    run(service, "DROP STREAM bad;")
    assert service._store.pending() == []
    assert service.health().healthy
    [lost] = [line.getMessage() for line in caplog.records if "rows of a dropped query are lost" in line.getMessage()]
    assert "rows=2" in lost
    assert records(service, service.settings.processing_log_topic) == []


def test_a_log_row_of_a_skipped_record_outlives_a_restart(servers: Servers) -> None:
    service = servers.start()
    [stream, good, bad] = [f"{text.strip()};" for text in SETUP.split(";")[:3]]
    run(service, stream + good)
    run(service, bad, {"holdfast.refused.records": "SKIP"})
    servers.broker.topics[BAD].config = {"max.message.bytes": "100"}
    servers.broker.append(TopicName("s"), b'{"N":1,"T":"%s"}' % (b"y" * 200), b"a")
    assert service.coordinator.step()
    service.publishing.publish_pending()
    service = servers.start()
    insert(service, 2)
    assert numbers(service, "bad") == [2]
    [log] = [value or b"" for _, value in records(service, service.settings.processing_log_topic)]
    assert b"a record was not published" in log


def recreate(servers: Servers, service: Service) -> None:
    """Delete the topic of BAD and create it again, and have the query write to the new one."""
    servers.broker.delete(BAD)
    insert(service, 10)
    assert info(service, "BAD").state == "ERROR"
    servers.topics.create(TopicSpec(name=BAD))
    resume(service, "BAD")
    assert numbers(service, "bad") == [10]


def test_a_push_query_ends_when_its_stream_has_another_topic(servers: Servers, service: Service) -> None:
    run(service, SETUP)
    bound = bind(next(iter(statements("SELECT n FROM bad EMIT CHANGES;"))).statement, service.catalog, {})
    assert isinstance(bound, BoundSelect)
    push = service.push(bound, {})
    insert(service, 1, 2, 3)
    while (batch := push.next(0.0)) is not None:
        assert batch.rows.num_rows
    recreate(servers, service)
    with pytest.raises(TopicChanged, match='topic "bad" was deleted and recreated'):
        push.next(0.0)


def test_a_query_does_not_resume_over_a_stream_that_has_another_topic(servers: Servers, service: Service) -> None:
    """Its position says nothing about the new topic, whose first records it would leave out."""
    run(service, SETUP + "CREATE STREAM later WITH (KAFKA_TOPIC = 'later') AS SELECT id, n * 10 AS n FROM bad;")
    insert(service, 1, 2, 3)
    later = info(service, "LATER").id
    run(service, f"PAUSE {later};")
    recreate(servers, service)
    run(service, f"RESUME {later};")
    stopped = info(service, "LATER")
    assert stopped.state == "ERROR"
    assert 'topic "bad" was deleted and recreated' in stopped.reason
    run(service, "DROP STREAM later; CREATE STREAM again WITH (KAFKA_TOPIC = 'again') AS SELECT id, n FROM bad;")
    insert(service, 11)
    assert numbers(service, "again") == [10, 11]
