"""Topics that change underneath: more partitions, records that are gone, topics that are gone."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from holdfast.app import Service
from holdfast.config import Settings
from holdfast.coordinator.cluster import Cluster
from holdfast.errors import BindError, HoldfastError, KafkaError
from holdfast.kafka.admin import Admin, TopicSpec
from holdfast.kafka.clients import kafka_client
from holdfast.names import TopicName
from holdfast.runtime.spark.engine import Engine, Failure
from holdfast.runtime.spark.session import Sessions
from holdfast.runtime.store.duckdb.store import open_store
from tests.coordinator.running import records, rows, run, states, wait
from tests.kafka.writing import write

STREAM = "CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC = '{0}', VALUE_FORMAT = 'JSON');"
TOTALS = "CREATE TABLE {0}_totals AS SELECT id, SUM(n) AS total FROM s GROUP BY id;"
Starting = Callable[[], Service]


@pytest.fixture
def starting(settings: Settings, sessions: Sessions) -> Iterator[Starting]:
    """Starts a server; a second time, after the first has stopped, with the same store."""
    started: list[Service] = []

    def start() -> Service:
        if started:
            started.pop().stop()
        started.append(Service(settings, sessions, open_store(settings.data_dir / "store")))
        return started[-1]

    yield start
    for service in started:
        service.stop()


def truncate(settings: Settings, topic: str, before: int) -> None:
    client = AdminClient(kafka_client(settings))
    for future in client.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result()


def send(settings: Settings, topic: TopicName, numbers: range, *, partition: int = 0) -> None:
    for n in numbers:
        write(settings, topic, b'{"N": %d}' % n, key=b"a", partition=partition)


def reasons(service: Service) -> list[str]:
    return [str(query.reason) for query in service.queries() if query.state == "ERROR"]


def test_partitions_that_are_added_are_read_from_their_start(service, settings, new_topic):
    topic = new_topic()
    run(service, STREAM.format(topic) + TOTALS.format(topic))
    send(settings, topic, range(1, 3))
    wait(lambda: rows(service, f"{topic}_totals"), {("a", 3)})
    client = AdminClient(kafka_client(settings))
    client.create_partitions([NewPartitions(topic, 3)])[topic].result()
    send(settings, topic, range(10, 12), partition=2)
    wait(lambda: rows(service, f"{topic}_totals"), {("a", 24)})
    run(service, TOTALS.format(f"{topic}_later"))
    wait(lambda: rows(service, f"{topic}_later_totals"), {("a", 24)})
    assert set(states(service).values()) == {"RUNNING"}


def test_a_truncated_topic_stops_its_queries_until_they_are_made_anew(starting: Starting, settings, new_topic):
    topic, other = new_topic(), new_topic()
    service = starting()
    run(service, STREAM.format(topic) + TOTALS.format(topic))
    run(service, STREAM.replace("STREAM s", "STREAM t").format(other))
    run(service, f"CREATE TABLE {other}_totals AS SELECT id, SUM(n) AS total FROM t GROUP BY id;")
    send(settings, topic, range(1, 4))
    wait(lambda: rows(service, f"{topic}_totals"), {("a", 6)})
    service.stop()
    send(settings, topic, range(10, 14))
    truncate(settings, topic, 5)

    service = starting()
    wait(lambda: sorted(states(service).values()), ["ERROR", "RUNNING"])
    [reason] = reasons(service)
    assert "Partition 0 is to be read from offset 3, but now has offsets 5 to 7" in reason
    assert "HINT" in reason
    # What could be read again would pass over the records that are gone: a restart must not make it seem right.
    service = starting()
    assert reasons(service) == [reason]
    send(settings, other, range(1, 3))
    wait(lambda: rows(service, f"{other}_totals"), {("a", 3)})
    run(service, f"CREATE STREAM {topic}_more AS SELECT id, n FROM s;")
    wait(lambda: reasons(service), [reason, reason])

    run(service, f"DROP STREAM {topic}_more; DROP TABLE {topic}_totals;")
    run(service, TOTALS.format(topic))
    wait(lambda: rows(service, f"{topic}_totals"), {("a", 12 + 13)})
    send(settings, topic, range(1, 2))
    wait(lambda: rows(service, f"{topic}_totals"), {("a", 26)})


def test_a_deleted_topic_is_not_made_again(starting: Starting, settings, admin: Admin, new_topic):
    topic = new_topic()
    service = starting()
    run(service, STREAM.format(topic) + TOTALS.format(topic))
    send(settings, topic, range(1, 3))
    wait(lambda: rows(service, f"{topic}_totals"), {("a", 3)})
    admin.delete(topic)
    wait(lambda: [f'topic "{topic}" was deleted' in reason for reason in reasons(service)], [True])
    run(service, "CREATE TYPE number AS INT;")
    assert not admin.exists(topic)
    service = starting()
    assert not admin.exists(topic)
    assert [f'topic "{topic}" was deleted' in reason for reason in reasons(service)] == [True]
    assert rows(service, f"{topic}_totals") == {("a", 3)}


def test_a_table_that_was_dropped_by_a_server_that_died_is_built_anew(
    starting: Starting, settings, new_topic, monkeypatch: pytest.MonkeyPatch
):
    topic = new_topic()
    table = f"CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC = '{topic}', VALUE_FORMAT = 'JSON');"
    service = starting()
    run(service, table)
    send(settings, topic, range(1, 3))
    wait(lambda: rows(service, "t"), {("a", 2)})

    def dies(_self: Cluster, _catalog: object) -> None:
        raise HoldfastError("the server dies here")

    with monkeypatch.context() as patched:
        patched.setattr(Cluster, "install", dies)
        run(service, "DROP TABLE t;")
        service.stop()
    service = starting()
    run(service, table)
    wait(lambda: rows(service, "t"), {("a", 2)})


@pytest.mark.parametrize("goes_on_by", ["a restart", "RESUME"])
def test_a_failed_query_over_a_derived_stream_repeats_nothing(
    starting: Starting, settings, new_topic, monkeypatch: pytest.MonkeyPatch, goes_on_by: str
):
    topic = new_topic()
    service = starting()
    run(service, STREAM.format(topic))
    run(service, f"CREATE STREAM {topic}_one AS SELECT id, n FROM s;")
    run(service, f"CREATE STREAM {topic}_two AS SELECT id, n * 2 AS n FROM {topic}_one;")
    sink = f"{topic}_two".upper()
    wait(lambda: set(states(service).values()), {"RUNNING"})
    send(settings, topic, range(1, 3))
    wait(lambda: [value for _, value in records(service, sink)], [b'{"N":2}', b'{"N":4}'])
    whole = Engine.run

    def failing(self, fragments, inputs):
        found = whole(self, fragments, inputs)
        second = [" * 2" in fragment.sql or "2 *" in fragment.sql for fragment in fragments]
        return [Failure("on purpose") if broken else made for made, broken in zip(found, second, strict=True)]

    with monkeypatch.context() as patched:
        patched.setattr(Engine, "run", failing)
        send(settings, topic, range(3, 4))
        wait(lambda: reasons(service), ["on purpose"])
    send(settings, topic, range(4, 5))
    wait(lambda: len(records(service, f"{topic}_one".upper())), 4)
    if goes_on_by == "RESUME":
        [failed] = [query.id for query in service.queries() if query.state == "ERROR"]
        run(service, f"PAUSE {failed}; RESUME {failed};")
    else:
        service = starting()
    wait(lambda: [value for _, value in records(service, sink)], [b'{"N":%d}' % n for n in (2, 4, 6, 8)])
    assert set(states(service).values()) == {"RUNNING"}


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("CREATE STREAM `a b` AS SELECT * FROM s;", BindError, "'a b' cannot be the name of a topic"),
        ("CREATE STREAM {0}_more WITH (REPLICAS = 3) AS SELECT * FROM s;", KafkaError, "cannot be created"),
        ("CREATE STREAM more WITH (KAFKA_TOPIC='{0}_two') AS SELECT * FROM s;", None, ""),
        (
            "CREATE STREAM more WITH (KAFKA_TOPIC='{0}_two', PARTITIONS=3) AS SELECT * FROM s;",
            BindError,
            "exists with 2 partitions, not 3",
        ),
    ],
)
def test_a_topic_that_cannot_be_made_refuses_its_statement(service, admin, new_topic, statement, error, message):
    topic = new_topic()
    admin.create(TopicSpec(name=TopicName(f"{topic}_two"), partitions=2))
    run(service, STREAM.format(topic))
    written = len(service._log.read_all())
    if error is not None:
        with pytest.raises(error, match=message):
            run(service, statement.format(topic))
        assert len(service._log.read_all()) == written
        statement = f"CREATE STREAM {topic}_three AS SELECT * FROM s;"
    run(service, statement.format(topic))
    wait(lambda: list(states(service).values()), ["RUNNING"])


def test_a_topic_that_cannot_be_made_after_all_is_in_no_others_way(
    starting: Starting, settings, new_topic, monkeypatch: pytest.MonkeyPatch
):
    """As when the rights on the cluster change between a command and its topic."""
    topic = new_topic()
    service = starting()
    run(service, STREAM.format(topic))
    create = Admin.create

    def refused(self: Admin, *specs: TopicSpec) -> None:
        if any(spec.name.endswith("_REFUSED") for spec in specs):
            raise KafkaError("not authorised")
        create(self, *specs)

    with monkeypatch.context() as patched:
        patched.setattr(Admin, "create", refused)
        run(service, f"CREATE STREAM {topic}_refused AS SELECT id, n FROM s;")
        run(service, TOTALS.format(topic))
        service = starting()
        send(settings, topic, range(1, 3))
        wait(lambda: rows(service, f"{topic}_totals"), {("a", 3)})
    wait(lambda: [v for _, v in _records_of(service, f"{topic}_REFUSED".upper())], [b'{"N":1}', b'{"N":2}'])


def _records_of(service: Service, topic: str) -> list:
    return records(service, topic) if topic in service.topics() else []


def test_a_statement_of_several_queries_is_one_command(service, new_topic):
    topic = new_topic()
    run(service, STREAM.format(topic) + f"CREATE STREAM {topic}_b AS SELECT * FROM s;" + TOTALS.format(topic))
    wait(lambda: list(states(service).values()), ["RUNNING", "RUNNING"])
    before = len(service._log.read_all())
    for statement, state in (("PAUSE", "PAUSED"), ("RESUME", "RUNNING")):
        run(service, f"{statement} ALL;")
        wait(lambda: list(states(service).values()), [state, state])
    run(service, "TERMINATE ALL;")
    assert states(service) == {}
    assert len(service._log.read_all()) == before + 3
