"""Topics that change underneath: more partitions, records that are gone, topics that are gone."""

import pytest

from holdfast.app import Service
from holdfast.coordinator.reconcile import Reconciler
from holdfast.errors import BindError, HoldfastError, KafkaError, StoreError
from holdfast.kafka.memory.topics import MemoryTopics
from holdfast.kafka.port import TopicSpec
from holdfast.names import TopicName
from holdfast.runtime.spark.engine import Engine, Failure
from holdfast.runtime.store.duckdb.store import DuckDbStore
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import statements

from .servers import Servers
from .service_calls import records, rows, run, states

STREAM = "CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC = '{0}', VALUE_FORMAT = 'JSON');"
TOTALS = "CREATE TABLE {0}_totals AS SELECT id, SUM(n) AS total FROM s GROUP BY id;"


def send(servers: Servers, topic: TopicName, numbers: range, *, partition: int = 0) -> None:
    servers.write(topic, *(b'{"N": %d}' % n for n in numbers), key=b"a", partition=partition)


def reasons(service: Service) -> list[str]:
    return [str(query.reason) for query in service.queries() if query.state == "ERROR"]


def test_partitions_that_are_added_are_read_from_their_start(servers: Servers, service, new_topic):
    topic = new_topic()
    run(service, STREAM.format(topic) + TOTALS.format(topic))
    send(servers, topic, range(1, 3))
    assert rows(service, f"{topic}_totals") == {("a", 3)}
    servers.broker.add_partitions(topic, 3)
    send(servers, topic, range(10, 12), partition=2)
    servers.let_pass()
    assert rows(service, f"{topic}_totals") == {("a", 24)}
    run(service, TOTALS.format(f"{topic}_later"))
    assert rows(service, f"{topic}_later_totals") == {("a", 24)}
    assert set(states(service).values()) == {"RUNNING"}


def test_a_truncated_topic_stops_its_queries_until_they_are_recreated(servers: Servers, new_topic):
    topic, other = new_topic(), new_topic()
    service = servers.start()
    run(service, STREAM.format(topic) + TOTALS.format(topic))
    run(service, STREAM.replace("STREAM s", "STREAM t").format(other))
    run(service, f"CREATE TABLE {other}_totals AS SELECT id, SUM(n) AS total FROM t GROUP BY id;")
    send(servers, topic, range(1, 4))
    assert rows(service, f"{topic}_totals") == {("a", 6)}
    servers.stop()
    send(servers, topic, range(10, 14))
    servers.broker.delete_records((topic, 0), 5)

    service = servers.start()
    assert sorted(states(service).values()) == ["ERROR", "RUNNING"]
    [reason] = reasons(service)
    assert "Partition 0 is to be read from offset 3, but now has offsets 5 to 7" in reason
    assert "HINT" in reason
    # What could be read again would pass over the records that are gone: a restart must not make it seem right.
    service = servers.start()
    assert reasons(service) == [reason]
    send(servers, other, range(1, 3))
    assert rows(service, f"{other}_totals") == {("a", 3)}
    run(service, f"CREATE STREAM {topic}_more AS SELECT id, n FROM s;")
    assert reasons(service) == [reason, reason]

    run(service, f"DROP STREAM {topic}_more; DROP TABLE {topic}_totals;")
    run(service, TOTALS.format(topic))
    assert rows(service, f"{topic}_totals") == {("a", 12 + 13)}
    send(servers, topic, range(1, 2))
    assert rows(service, f"{topic}_totals") == {("a", 26)}


def test_a_full_disk_while_a_topic_is_given_up_skips_no_record_of_another(
    servers: Servers, service: Service, new_topic, monkeypatch: pytest.MonkeyPatch
):
    """Both come in one poll: a topic that was truncated, and records of another."""
    lost, other = new_topic(), new_topic()
    run(service, STREAM.format(lost) + TOTALS.format(lost))
    run(service, STREAM.replace("STREAM s", "STREAM t").format(other))
    run(service, f"CREATE TABLE {other}_totals AS SELECT id, SUM(n) AS total FROM t GROUP BY id;")
    for n in range(3):
        servers.broker.append(lost, b'{"N": %d}' % n, b"a")
    servers.broker.delete_records((lost, 0), 2)
    servers.broker.append(other, b'{"N": 7}', b"a")
    with monkeypatch.context() as full:

        def put(*_: object) -> None:
            raise StoreError("the disk of the data folder is full")

        full.setattr(DuckDbStore, "put", put)
        with pytest.raises(StoreError, match="full"):
            service.coordinator.step()
    servers.write(other, b'{"N": 1}', key=b"a")
    assert rows(service, f"{other}_totals") == {("a", 8)}
    servers.let_pass()
    assert sorted(states(service).values()) == ["ERROR", "RUNNING"]


def test_a_deleted_topic_is_not_made_again(servers: Servers, new_topic):
    topic = new_topic()
    service = servers.start()
    run(service, STREAM.format(topic) + TOTALS.format(topic))
    send(servers, topic, range(1, 3))
    assert rows(service, f"{topic}_totals") == {("a", 3)}
    servers.topics.delete(topic)
    servers.let_pass()
    assert [f'topic "{topic}" was deleted' in reason for reason in reasons(service)] == [True]
    run(service, "CREATE TYPE number AS INT;")
    assert not servers.topics.exists(topic)
    service = servers.start()
    assert not servers.topics.exists(topic)
    assert [f'topic "{topic}" was deleted' in reason for reason in reasons(service)] == [True]
    assert rows(service, f"{topic}_totals") == {("a", 3)}


def test_a_table_that_was_dropped_by_a_server_that_died_is_rebuilt(
    servers: Servers, new_topic, monkeypatch: pytest.MonkeyPatch
):
    topic = new_topic()
    table = f"CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC = '{topic}', VALUE_FORMAT = 'JSON');"
    service = servers.start()
    run(service, table)
    send(servers, topic, range(1, 3))
    assert rows(service, "t") == {("a", 2)}

    def dies(_self: Reconciler, _catalog: object) -> None:
        raise HoldfastError("the server dies here")

    with monkeypatch.context() as patched:
        patched.setattr(Reconciler, "reconcile", dies)
        run(service, "DROP TABLE t;")
        servers.stop()
    service = servers.start()
    run(service, table)
    assert rows(service, "t") == {("a", 2)}


@pytest.mark.parametrize("goes_on_by", ["a restart", "RESUME"])
def test_a_failed_query_over_a_derived_stream_repeats_nothing(
    servers: Servers, new_topic, monkeypatch: pytest.MonkeyPatch, goes_on_by: str
):
    topic = new_topic()
    service = servers.start()
    run(service, STREAM.format(topic))
    run(service, f"CREATE STREAM {topic}_one AS SELECT id, n FROM s;")
    run(service, f"CREATE STREAM {topic}_two AS SELECT id, n * 2 AS n FROM {topic}_one;")
    sink = f"{topic}_two".upper()
    assert set(states(service).values()) == {"RUNNING"}
    send(servers, topic, range(1, 3))
    assert [value for _, value in records(service, sink)] == [b'{"N":2}', b'{"N":4}']
    whole = Engine.run

    def failing(self, fragments, inputs):
        found = whole(self, fragments, inputs)
        second = [" * 2" in fragment.sql or "2 *" in fragment.sql for fragment in fragments]
        return [Failure("on purpose") if broken else made for made, broken in zip(found, second, strict=True)]

    with monkeypatch.context() as patched:
        patched.setattr(Engine, "run", failing)
        send(servers, topic, range(3, 4))
        assert reasons(service) == ["on purpose"]
    send(servers, topic, range(4, 5))
    assert len(records(service, f"{topic}_one".upper())) == 4
    if goes_on_by == "RESUME":
        [failed] = [query.id for query in service.queries() if query.state == "ERROR"]
        run(service, f"PAUSE {failed}; RESUME {failed};")
    else:
        service = servers.start()
    assert [value for _, value in records(service, sink)] == [b'{"N":%d}' % n for n in (2, 4, 6, 8)]
    assert set(states(service).values()) == {"RUNNING"}


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("CREATE STREAM `a b` AS SELECT * FROM s;", BindError, "'a b' is not a valid topic name"),
        ("CREATE STREAM {0}_more WITH (REPLICAS = 3) AS SELECT * FROM s;", KafkaError, "cannot be created"),
        ("CREATE STREAM more WITH (KAFKA_TOPIC='{0}_two') AS SELECT * FROM s;", None, ""),
        (
            "CREATE STREAM more WITH (KAFKA_TOPIC='{0}_two', PARTITIONS=3) AS SELECT * FROM s;",
            BindError,
            "exists with 2 partitions, not 3",
        ),
    ],
)
def test_a_topic_that_cannot_be_made_refuses_its_statement(
    servers: Servers, service, new_topic, statement, error, message
):
    topic = new_topic()
    servers.topics.create(TopicSpec(name=TopicName(f"{topic}_two"), partitions=2))
    run(service, STREAM.format(topic))
    written = len(service._log.read_all())
    if error is not None:
        with pytest.raises(error, match=message):
            run(service, statement.format(topic))
        assert len(service._log.read_all()) == written
        statement = f"CREATE STREAM {topic}_three AS SELECT * FROM s;"
    run(service, statement.format(topic))
    assert list(states(service).values()) == ["RUNNING"]


def test_the_topic_of_windows_is_compacted_and_ends_with_their_retention(servers: Servers, service, new_topic):
    topic = new_topic()
    run(service, STREAM.format(topic))
    windows = "SELECT id, COUNT(*) AS n FROM s WINDOW TUMBLING (SIZE 1 HOUR, RETENTION 2 HOURS) GROUP BY id"
    for name, query in (
        ("counts", windows),
        ("copies", f"SELECT * FROM {topic}_counts"),
        ("forever WITH (RETENTION_MS = -1)", windows),
        ("compacted WITH (CLEANUP_POLICY = 'compact')", windows),
        ("totals", f"SELECT id, SUM(n) AS n FROM {topic}_counts GROUP BY id"),
    ):
        title, _, with_ = name.partition(" ")
        run(service, f"CREATE TABLE {topic}_{title} {with_} AS {query};")

    def config(name: str) -> tuple[str, str]:
        found = servers.topics.config(TopicName(f"{topic}_{name}".upper()))
        return found["cleanup.policy"], found["retention.ms"]

    assert config("counts") == config("copies") == ("compact,delete", str(26 * 3_600_000))
    assert config("forever") == ("compact,delete", "-1")
    assert config("compacted")[0] == config("totals")[0] == "compact"


def test_a_topic_that_cannot_be_made_after_all_is_in_no_others_way(
    servers: Servers, new_topic, monkeypatch: pytest.MonkeyPatch
):
    """As when the rights on the cluster change between a command and its topic."""
    topic = new_topic()
    service = servers.start()
    run(service, STREAM.format(topic))
    create = MemoryTopics.create

    def refused(self: MemoryTopics, *specs: TopicSpec) -> None:
        if any(spec.name.endswith("_REFUSED") for spec in specs):
            raise KafkaError("not authorised")
        create(self, *specs)

    with monkeypatch.context() as patched:
        patched.setattr(MemoryTopics, "create", refused)
        run(service, f"CREATE STREAM {topic}_refused AS SELECT id, n FROM s;")
        run(service, TOTALS.format(topic))
        service = servers.start()
        send(servers, topic, range(1, 3))
        blocked = next(q for q in service.queries() if q.sink == f"{topic}_refused".upper())
        assert blocked.state == "RUNNING"
        assert (blocked.reason or "").startswith("blocked: topic")
        assert rows(service, f"{topic}_totals") == {("a", 3)}
    servers.let_pass()
    assert [v for _, v in _records_of(service, f"{topic}_REFUSED".upper())] == [b'{"N":1}', b'{"N":2}']


def _records_of(service: Service, topic: str) -> list:
    return records(service, topic) if topic in service.topics() else []


def test_a_statement_of_several_queries_is_one_command(service, new_topic):
    topic = new_topic()
    run(service, STREAM.format(topic) + f"CREATE STREAM {topic}_b AS SELECT * FROM s;" + TOTALS.format(topic))
    assert list(states(service).values()) == ["RUNNING", "RUNNING"]
    before = len(service._log.read_all())
    for statement, state in (("PAUSE", "PAUSED"), ("RESUME", "RUNNING")):
        run(service, f"{statement} ALL;")
        assert list(states(service).values()) == [state, state]
    run(service, "TERMINATE ALL;")
    assert states(service) == {}
    assert len(service._log.read_all()) == before + 3


def test_a_push_query_shows_no_rows_of_a_topic_that_was_deleted_before(servers: Servers) -> None:
    service = servers.start()
    create = "CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC='again', VALUE_FORMAT='JSON', PARTITIONS=1);"
    for ns in ((1, 2), (3, 4)):
        run(service, create)
        servers.write("again", *(b'{"N":%d}' % n for n in ns))
        bound = bind(next(iter(statements("SELECT n FROM s EMIT CHANGES;"))).statement, service.catalog, {})
        push = service.push(bound, {"auto.offset.reset": "earliest"})
        batch = push.next(1)
        assert batch is not None
        assert [row["r0"] for row in batch.rows.to_pylist()] == list(ns)
        service.close_push(push.id)
        run(service, "DROP STREAM s;")
        servers.broker.delete(TopicName("again"))
        servers.let_pass()
