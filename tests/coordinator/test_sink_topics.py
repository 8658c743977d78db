"""Sink topics that are deleted and created again while nobody looks: the new one has other rows at the same offsets."""

import pytest

from holdfast.app import Service
from holdfast.errors import TopicChanged
from holdfast.kafka.port import TopicSpec
from holdfast.serving.push.query import PushQuery
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.parse import statements

from .servers import Servers
from .service_calls import records, rows, run
from .test_sinks import BAD, SETUP, info, insert, numbers


def replace(servers: Servers, service: Service, *numbers: int) -> None:
    """Delete the topic of BAD and create it again at once, and write so much that it is longer than before."""
    servers.broker.delete(BAD)
    servers.topics.create(TopicSpec(name=BAD))
    insert(service, *numbers)


def push_of(service: Service) -> PushQuery:
    sql = "SELECT n FROM bad EMIT CHANGES;"
    bound = bind(next(iter(statements(sql))).statement, service.catalog, {})
    assert isinstance(bound, BoundSelect)
    return service.push(bound, {"auto.offset.reset": "earliest"})


def read_all(push: PushQuery) -> list[int]:
    found = list[int]()
    while (batch := push.next(0.0)) is not None:
        found += batch.rows.column(0).to_pylist()
    return found


@pytest.mark.parametrize("restarted", [True, False])
def test_a_query_does_not_resume_over_another_topic_that_is_longer(
    servers: Servers, service: Service, restarted: bool
) -> None:
    run(service, SETUP + "CREATE STREAM later WITH (KAFKA_TOPIC = 'later') AS SELECT id, n * 10 AS n FROM bad;")
    run(service, "CREATE TABLE total WITH (KAFKA_TOPIC = 'total') AS SELECT id, COUNT(*) AS n FROM bad GROUP BY id;")
    insert(service, 1, 2, 3)
    run(service, f"PAUSE {info(service, 'LATER').id};")
    replace(servers, service, *range(10, 20))
    if restarted:
        service = servers.start()
    servers.let_pass(60.0)
    run(service, f"RESUME {info(service, 'LATER').id};")
    stopped = info(service, "LATER")
    assert stopped.state == "ERROR"
    assert 'topic "bad" was deleted and recreated (its id was ' in stopped.reason
    assert "drop the queries and objects that read it and create them again" in stopped.reason
    # Those that take the rows of the tick go on.
    assert rows(service, "total") == {("a", 13)}
    run(service, "DROP STREAM later; CREATE STREAM again WITH (KAFKA_TOPIC = 'again') AS SELECT id, n FROM bad;")
    insert(service, 20)
    assert numbers(service, "again") == list(range(10, 21))
    paused = info(service, "AGAIN").id
    run(service, f"PAUSE {paused};")
    insert(service, 21)
    run(service, f"RESUME {paused};")
    assert numbers(service, "again") == list(range(10, 22))


def test_a_push_query_shows_no_rows_of_an_older_topic(servers: Servers, service: Service) -> None:
    run(service, SETUP)
    insert(service, 1, 2, 3)
    first = push_of(service)
    assert read_all(first) == [1, 2, 3]
    replace(servers, service, 7, 8, 9, 10)
    with pytest.raises(TopicChanged, match='topic "bad" was deleted and recreated'):
        push_of(service)
    servers.let_pass(60.0)
    with pytest.raises(TopicChanged, match='topic "bad" was deleted and recreated'):
        read_all(first)
    assert read_all(push_of(service)) == [7, 8, 9, 10]


def test_a_topic_may_be_named_like_a_fact(servers: Servers) -> None:
    service = servers.start()
    run(service, "CREATE STREAM a (n INT) WITH (KAFKA_TOPIC = 'sink', VALUE_FORMAT = 'JSON', PARTITIONS = 1);")
    run(service, "CREATE STREAM barrier AS SELECT * FROM a; INSERT INTO a (n) VALUES (1);")
    service = servers.start()
    assert [value for _, value in records(service, "BARRIER")] == [b'{"N":1}']
