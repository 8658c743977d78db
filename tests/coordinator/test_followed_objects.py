"""Push queries over objects that are dropped, created again or replaced: a name is not an object."""

from collections.abc import Mapping
from typing import Any

import pytest

from holdfast.app import Service
from holdfast.errors import HoldfastError, ObjectDropped, TopicChanged
from holdfast.kafka.port import TopicSpec
from holdfast.names import TopicName
from holdfast.serving.push.query import PushQuery
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.read.subscribe import BoundSubscribe
from holdfast.sql.syntax.parse import parse

from .servers import Servers
from .service_calls import run

TABLE = "CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='{0}_t', VALUE_FORMAT='JSON', PARTITIONS=1);"
STREAM = "CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC='{0}_s', VALUE_FORMAT='JSON', PARTITIONS=1);"
VIEW = "CREATE MATERIALIZED VIEW mv AS SELECT id, n FROM t WHERE n > 0;"
RESUMED = "holdfast.objects"


@pytest.fixture
def service(servers: Servers) -> Service:
    service = servers.start()
    name = servers.settings.service_id
    run(service, (TABLE + STREAM + VIEW).format(name) + "INSERT INTO t (id, n) VALUES ('a', 1);")
    return service


def follow(service: Service, sql: str, properties: Mapping[str, str] | None = None) -> PushQuery:
    bound = bind(parse(sql)[0].statement, service.catalog, properties or {})
    assert isinstance(bound, BoundSelect | BoundSubscribe)
    return service.push(bound, properties or {})


def received(push: PushQuery) -> list[tuple[Any, ...]]:
    """The rows that are ready now."""
    found: list[tuple[Any, ...]] = []
    while (batch := push.next(0)) is not None:
        found += [tuple(row.values()) for row in batch.rows.to_pylist()]
    return found


def ended(push: PushQuery) -> HoldfastError:
    assert push.ready(), "its reader is woken"
    with pytest.raises(HoldfastError) as raised:
        push.next(0)
    return raised.value


FOLLOWED = ["SUBSCRIBE {0};", "SELECT * FROM {0} EMIT ALL;", "SELECT * FROM {0} EMIT CHANGES;"]


@pytest.mark.parametrize("sql", FOLLOWED)
def test_a_drop_ends_the_queries_that_follow_the_object(sql: str, service: Service) -> None:
    view, stream = follow(service, sql.format("mv")), follow(service, "SELECT * FROM s EMIT CHANGES;")
    received(view), received(stream)
    run(service, "DROP MATERIALIZED VIEW mv; DROP STREAM s;")
    assert ended(view).message == 'materialized view "MV" was dropped'
    assert ended(stream).message == 'stream "S" was dropped'
    assert (ended(view).sqlstate, bool(ended(view).detail), bool(ended(view).hint)) == ("57P04", True, True)


@pytest.mark.parametrize("sql", FOLLOWED)
def test_an_object_of_the_same_name_is_another_one(sql: str, service: Service, servers: Servers) -> None:
    view, stream = follow(service, sql.format("mv")), follow(service, "SELECT * FROM s EMIT CHANGES;")
    joined = follow(service, "SUBSCRIBE (SELECT t.id AS id, mv.n AS n FROM t JOIN mv ON t.id = mv.id);")
    received(view), received(stream), received(joined)
    run(service, "DROP MATERIALIZED VIEW mv; DROP STREAM s;" + VIEW + STREAM.format(servers.settings.service_id))
    run(service, "INSERT INTO t (id, n) VALUES ('b', 2); INSERT INTO s (id, n) VALUES ('b', 2);")
    assert ended(view).message == ended(joined).message == 'materialized view "MV" was dropped and created again'
    assert ended(stream).message == 'stream "S" was dropped and created again'
    assert received(follow(service, "SUBSCRIBE mv WITH (SNAPSHOT = true);")) != [], "what is new can be followed"


def test_ids_are_the_same_after_a_restart_and_a_replacement(service: Service, servers: Servers) -> None:
    def ids() -> dict[str, int]:
        return {name: found.id for name, found in service.catalog.objects.items() if name in ("T", "S", "MV")}

    before = ids()
    assert len(set(before.values())) == 3
    assert 0 not in before.values()
    push = follow(service, "SUBSCRIBE mv;")
    received(push)
    run(service, VIEW.replace("CREATE", "CREATE OR REPLACE") + "ALTER STREAM s ADD COLUMN more INT;")
    assert (ids(), received(push)) == (before, []), "it goes on"
    service = servers.start()
    assert ids() == before
    run(service, "DROP MATERIALIZED VIEW mv;" + VIEW)
    assert ids()["MV"] not in before.values()
    assert ids() == {**before, "MV": ids()["MV"]}


@pytest.mark.parametrize("sql", ["SUBSCRIBE t WITH (SNAPSHOT = false) AS OF {0};", "SUBSCRIBE t WITH (HOLD = h);"])
def test_a_query_resumes_only_on_the_objects_that_it_has_read(sql: str, service: Service, servers: Servers) -> None:
    run(service, "CREATE HOLD h ON t;")
    first = follow(service, "SUBSCRIBE t;")
    received(first)
    ids = {RESUMED: first.objects.ids}
    run(service, "INSERT INTO t (id, n) VALUES ('b', 2);")
    assert received(follow(service, sql.format(first.time), ids))[-1][1:] == (1, "b", 2)
    run(service, "DROP MATERIALIZED VIEW mv; DROP TABLE t CASCADE;" + TABLE.format(servers.settings.service_id))
    run(service, "CREATE HOLD h ON t;")
    with pytest.raises(ObjectDropped) as refused:
        follow(service, sql.format(first.time), ids)
    assert refused.value.message == 'table "T" was dropped and created again'
    assert refused.value.detail is not None
    assert first.objects.ids in refused.value.detail


@pytest.mark.parametrize("read_by_a_query", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_a_topic_that_is_deleted_ends_the_queries_of_its_stream(
    again: bool, read_by_a_query: bool, service: Service, servers: Servers
) -> None:
    topic = TopicName(f"{servers.settings.service_id}_s")
    if read_by_a_query:
        run(service, "CREATE TABLE counts AS SELECT id, COUNT(*) AS n FROM s GROUP BY id;")
    run(service, "INSERT INTO s (id, n) VALUES ('a', 1);")
    push = follow(service, "SELECT * FROM s EMIT CHANGES;")
    received(push)
    servers.topics.delete(topic)
    if again:
        servers.topics.create(TopicSpec(name=topic))
        servers.broker.append(topic, b'{"N":9}', b"z")
    servers.let_pass(60)
    error = ended(push)
    assert error.message.startswith(f'topic "{topic}" was deleted{" and recreated" if again else " (its id was"}')
    assert (isinstance(error, TopicChanged), bool(error.detail), bool(error.hint)) == (True, True, True)


def test_a_query_over_a_plain_view_does_not_resume_on_another_definition(service: Service) -> None:
    view = "CREATE VIEW v AS SELECT id, n FROM t WHERE n > {0};"
    run(service, view.format(0))
    first = follow(service, "SUBSCRIBE (SELECT n FROM v);")
    received(first)
    ids, again = (
        {RESUMED: first.objects.ids},
        f"SUBSCRIBE (SELECT n FROM v) WITH (SNAPSHOT = false) AS OF {first.time};",
    )
    follow(service, again, ids)
    run(service, "DROP VIEW v;" + view.format(5))
    assert received(first) == [], "one that is open keeps its definition"
    with pytest.raises(ObjectDropped, match='view "V" was dropped and created again'):
        follow(service, again, ids)
