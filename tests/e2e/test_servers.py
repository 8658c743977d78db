"""One server and what can happen to it: bad records, open transactions, lost topics, a second server, its end."""

import json
import time
from collections.abc import Callable, Iterator

import httpx
import psutil
import pytest

from holdfast.config import load
from holdfast.kafka.broker import EmbeddedBroker

from .server import Refused, Server, names_of, servers, wait_for
from .topics import create_topics, delete_topic, producer, read, topic_names, write

SERVICE = "servers"
GONE_SECONDS = 20.0
AWAY_SECONDS = 40.0
"""Four times as long as a server is sure of its lease."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A broker for these tests only: one of them stops it."""
    own = EmbeddedBroker(load({"data_dir": tmp_path_factory.mktemp("kafka")}, environment={}))
    own.start()
    yield own
    own.stop()


@pytest.fixture(scope="module")
def make_server(tmp_path_factory: pytest.TempPathFactory, broker: EmbeddedBroker) -> Iterator[Callable[..., Server]]:
    with servers(tmp_path_factory.mktemp("servers"), broker.bootstrap) as make:
        yield make


@pytest.fixture(scope="module")
def shared(make_server: Callable[..., Server]) -> Server:
    return make_server(SERVICE)


@pytest.fixture
def server(shared: Server) -> Server:
    """The server that these tests share, running."""
    if not shared.alive:
        shared.start()
    return shared


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running server with a broker of its own."""
    with servers(tmp_path_factory.mktemp("alone"), None) as make:
        server = make("alone")
        server.start()
        yield server


@pytest.fixture
def kafka(broker: EmbeddedBroker) -> str:
    return broker.bootstrap


def create_copy(server: Server, name: str) -> None:
    """A stream over the topic `<name>` and one that copies it to `<name>_copy`."""
    server.sql(
        f"CREATE STREAM {name} (k STRING KEY, v STRING) WITH (KAFKA_TOPIC = '{name}', VALUE_FORMAT = 'JSON');"
        f"CREATE STREAM {name}_copy WITH (KAFKA_TOPIC = '{name}_copy') AS SELECT * FROM {name} EMIT CHANGES;"
    )


def copied(kafka: str, name: str) -> list[str]:
    return [json.loads(record.value or b"{}").get("V") for record in read(kafka, f"{name}_copy")]


def value(text: str) -> bytes:
    return json.dumps({"v": text}).encode()


def test_a_record_that_cannot_be_decoded_is_skipped_and_logged(server, kafka):
    create_topics(kafka, "poison", partitions=1)
    create_copy(server, "poison")
    write(kafka, "poison", [("a", value("one")), ("a", b"\xff not JSON"), ("a", value("two"))])
    rows = server.push(
        "SELECT * FROM PROCESSING_LOG EMIT CHANGES;", lambda rows: any(row[1] == "poison" for row in rows)
    )
    (logged,) = [row for row in rows if row[1] == "poison"]
    assert logged[:4] == ["POISON_COPY", "poison", 0, 1]
    assert logged[4] == "the record was skipped: the value is not UTF-8"
    wait_for("both good records", lambda: copied(kafka, "poison") == ["one", "two"])
    assert server.queries()["POISON_COPY"]["state"] == "RUNNING"


def test_records_of_aborted_and_open_transactions_are_not_read(server, kafka):
    create_topics(kafka, "undecided", partitions=1)
    create_copy(server, "undecided")
    transactional = producer(kafka, "undecided")
    transactional.begin_transaction()
    transactional.produce("undecided", value("aborted"), "a")
    transactional.flush(30)
    transactional.abort_transaction(30)
    write(kafka, "undecided", [("a", value("before"))])
    transactional.begin_transaction()
    transactional.produce("undecided", value("open"), "a")
    transactional.flush(30)
    write(kafka, "undecided", [("a", value("behind"))])
    wait_for("what is before the open transaction", lambda: copied(kafka, "undecided"))
    with pytest.raises(AssertionError):
        wait_for("more", lambda: len(copied(kafka, "undecided")) > 1, seconds=2)
    assert copied(kafka, "undecided") == ["before"]
    transactional.commit_transaction(30)
    wait_for("the rest", lambda: copied(kafka, "undecided") == ["before", "open", "behind"])


def test_a_recreated_topic_stops_its_query_and_no_other(server, kafka):
    create_topics(kafka, "doomed", "healthy", partitions=1)
    create_copy(server, "doomed")
    create_copy(server, "healthy")
    write(kafka, "doomed", [("a", value(f"old {n}")) for n in range(5)])
    wait_for("the copy", lambda: len(copied(kafka, "doomed")) == 5)
    delete_topic(kafka, "doomed")
    wait_for("the topic is gone", lambda: "doomed" not in topic_names(kafka))
    create_topics(kafka, "doomed", partitions=1)
    write(kafka, "doomed", [("a", value("new"))])

    stopped = wait_for("an error", lambda: failed(server, "DOOMED_COPY"))
    assert "doomed" in stopped["reason"]
    write(kafka, "healthy", [("a", value("one"))])
    wait_for("the other query continues", lambda: copied(kafka, "healthy") == ["one"])
    assert server.queries()["HEALTHY_COPY"]["state"] == "RUNNING"
    assert len(copied(kafka, "doomed")) == 5

    # As the hint says.
    server.sql("DROP STREAM doomed_copy; DROP STREAM doomed;")
    create_copy(server, "doomed")
    wait_for("the new topic from its start", lambda: copied(kafka, "doomed")[5:] == ["new"])


def failed(server: Server, sink: str) -> dict[str, str] | None:
    query = server.queries()[sink]
    return query if query["state"] == "ERROR" else None


def test_a_second_server_of_a_service_is_refused(server, make_server):
    second = make_server(SERVICE, "second")
    second.launch()
    assert second.wait_ended(90) == 1
    said = second.log_of_last_start()
    assert f'another server runs with service id "{SERVICE}"' in said
    assert str(server.process.pid) in said
    assert "--service-id" in said
    assert server.sql("SHOW STREAMS;")


def test_a_second_server_in_a_folder_is_refused(server, make_server):
    second = make_server(SERVICE)
    assert second.data_dir == server.data_dir
    second.launch()
    assert second.wait_ended(60) == 1
    said = second.log_of_last_start()
    assert "ERROR" in said
    assert str(server.data_dir) in said
    assert "Traceback" not in said
    assert server.sql("SHOW STREAMS;")


def test_queries_created_after_a_crash_get_what_was_published_just_before_it(server, kafka):
    create_topics(kafka, "late", partitions=1)
    create_copy(server, "late")
    server.sql("CREATE STREAM later_copy WITH (KAFKA_TOPIC = 'later_copy') AS SELECT * FROM late EMIT CHANGES;")
    server.kill()
    # The row of each sink is a transaction of its own: only the first one is published.
    server.settings = {"transaction_rows": "1"}
    server.start(crash="after_transaction_commit:1")
    write(kafka, "late", [("a", value("one"))])
    assert server.wait_ended(60) == -9
    assert len(copied(kafka, "late") + copied(kafka, "later")) == 1
    server.start()
    for name in ("late", "later"):
        server.sql(
            f"CREATE STREAM {name}_copy_copy WITH (KAFKA_TOPIC = '{name}_copy_copy') AS SELECT * FROM {name}_copy;"
        )
    for name in ("late", "late_copy", "later", "later_copy"):
        wait_for(f"the record in {name}_copy", lambda name=name: copied(kafka, name) == ["one"], seconds=30)


def test_a_server_whose_spark_ends_starts_it_again(server, kafka):
    create_topics(kafka, "sparkless", partitions=1)
    create_copy(server, "sparkless")
    write(kafka, "sparkless", [("a", value("before"))])
    wait_for("a row is copied", lambda: copied(kafka, "sparkless") == ["before"])
    (spark,) = [process for process in server.family if "java" in process.name()]
    spark.kill()
    write(kafka, "sparkless", [("a", value("meanwhile"))])
    wait_for("the other row is copied", lambda: copied(kafka, "sparkless") == ["before", "meanwhile"])
    assert server.queries()["SPARKLESS_COPY"]["state"] == "RUNNING"


def test_a_server_waits_for_kafka_and_continues_by_itself(server, broker):
    kafka = broker.bootstrap
    create_topics(kafka, "waiting", partitions=1)
    create_copy(server, "waiting")
    server.sql("CREATE TABLE waited AS SELECT k, COUNT(*) AS c FROM waiting GROUP BY k EMIT CHANGES;")
    write(kafka, "waiting", [("a", value("before"))])
    wait_for("a row is copied", lambda: copied(kafka, "waiting") == ["before"])
    wait_for("and counted", lambda: server.pull("SELECT * FROM waited;") == [["a", 1]])
    broker.stop()
    away_at = time.monotonic()
    problems = wait_for("the server reports it", lambda: unhealthy(server))
    assert "kafka" in problems
    while time.monotonic() < away_at + AWAY_SECONDS:
        assert server.pull("SELECT * FROM waited;") == [["a", 1]]
        time.sleep(1)
    broker.start()
    assert broker.bootstrap == kafka
    write(kafka, "waiting", [("a", value("after"))])
    wait_for("the next row is copied", lambda: copied(kafka, "waiting") == ["before", "after"])
    wait_for("and counted", lambda: server.pull("SELECT * FROM waited;") == [["a", 2]])
    wait_for("the server is healthy", lambda: not unhealthy(server))


def test_a_restart_a_foreign_folder_and_a_rebuild(server, make_server, kafka):
    create_topics(kafka, "nums")
    server.sql(
        "CREATE STREAM nums (k STRING KEY, v INT) WITH (KAFKA_TOPIC = 'nums', VALUE_FORMAT = 'JSON');"
        "CREATE STREAM nums_copy WITH (KAFKA_TOPIC = 'nums_copy') AS SELECT k, v + 1 AS v FROM nums EMIT CHANGES;"
        "CREATE TABLE nums_sums AS SELECT k, SUM(v) AS s FROM nums GROUP BY k HAVING SUM(v) < 100 EMIT CHANGES;"
        "CREATE TABLE nums_counts AS SELECT k, COUNT(*) AS c FROM nums_copy GROUP BY k EMIT CHANGES;"
    )
    write(kafka, "nums", [(f"k{n % 20}", json.dumps({"v": n}).encode()) for n in range(200)])

    def pulled(of: Server) -> list[list[list[object]]]:
        try:
            return [sorted(of.pull(f"SELECT * FROM {table};")) for table in ("nums_sums", "nums_counts")]
        except Refused as still_building:
            return [[[str(still_building)]], []]

    counted = [[f"k{n}", 10] for n in range(20)]
    wait_for("all is counted", lambda: pulled(server)[1] == sorted(counted))
    before = pulled(server)

    assert server.terminate() == 0
    assert "Traceback" not in server.log_of_last_start()
    check_nothing_left(server, "after SIGTERM")
    server.start()
    assert pulled(server) == before
    assert server.terminate() == 0

    foreign = make_server(SERVICE, "foreign")
    foreign.launch()
    assert foreign.wait_ended(90) == 1
    assert "--rebuild" in foreign.log_of_last_start()
    foreign.start("--rebuild")
    wait_for("all is built again", lambda: pulled(foreign)[1])
    assert pulled(foreign) == before
    write(kafka, "nums", [("k0", b'{"v": 1}')])
    wait_for("and it continues", lambda: ["k0", 11] in pulled(foreign)[1])
    foreign.kill()


def test_a_server_whose_broker_ends_reports_it_and_continues_after_a_restart(alone):
    alone.sql(
        "CREATE STREAM s (k STRING KEY, v INT) WITH (KAFKA_TOPIC = 's', VALUE_FORMAT = 'JSON', PARTITIONS = 1);"
        "CREATE TABLE counts AS SELECT k, COUNT(*) AS c FROM s GROUP BY k EMIT CHANGES;"
        "INSERT INTO s (k, v) VALUES ('a', 1);"
    )
    wait_for("the row is counted", lambda: alone.pull("SELECT * FROM counts;") == [["a", 1]])
    (broker,) = [p for p in alone.family if "java" in p.name() and "kafka.Kafka" in p.cmdline()]
    broker.kill()
    assert alone.wait_ended(90) == 1
    said = alone.log_of_last_start()
    assert "ERROR: the embedded Kafka broker has ended" in said
    assert str(alone.data_dir / "logs" / "kafka.log") in said
    assert "another server" not in said
    check_nothing_left(alone, "after the broker ended")
    alone.start()
    alone.sql("INSERT INTO s (k, v) VALUES ('a', 2);")
    wait_for("the next row is counted", lambda: alone.pull("SELECT * FROM counts;") == [["a", 2]])


def test_a_killed_server_with_its_own_broker_leaves_no_process_running(alone):
    assert len([p for p in alone.family if "java" in p.name()]) == 2, names_of(alone.family)
    alone.kill()
    check_nothing_left(alone, "after SIGKILL")


def unhealthy(server: Server) -> dict[str, str]:
    """The unhealthy parts of a server, and why."""
    details = httpx.get(f"{server.url}/healthcheck", timeout=30).json()["details"]
    return {part: health.get("message", "") for part, health in details.items() if not health["isHealthy"]}


def check_nothing_left(server: Server, when: str) -> None:
    psutil.wait_procs(server.family, timeout=GONE_SECONDS)
    assert not server.survivors(), f"{when}: {names_of(server.survivors())}"
