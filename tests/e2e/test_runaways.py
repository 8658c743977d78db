"""Queries that do not end, or that end Spark: they go to ERROR, and the others go on.

One server runs them all: their objects and topics have names of their own.
"""

import json
from collections.abc import Callable, Iterator

import httpx
import pytest

from holdfast.kafka.broker import EmbeddedBroker

from .server import Server, servers, wait_for
from .topics import create_topics, read, write

LIMITED = {"query_timeout": "12s", "stop_timeout": "60s"}
PATIENT = {"query_timeout": "1h", "stop_timeout": "3s"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, broker: EmbeddedBroker) -> Iterator[Server]:
    with servers(tmp_path_factory.mktemp("runaways"), broker.bootstrap) as make:
        yield make("runaways")


@pytest.fixture
def run(shared: Server) -> Callable[[dict[str, str]], Server]:
    """Starts the server with settings, unless it runs with them."""

    def start(settings: dict[str, str]) -> Server:
        if shared.alive and shared.settings != settings:
            assert shared.terminate() == 0
        if not shared.alive:
            shared.settings = settings
            shared.start()
        return shared

    return start


def value(text: str) -> bytes:
    return json.dumps({"t": text}).encode()


def sent(kafka: str, topic: str) -> list[str]:
    return [json.loads(record.value or b"{}")["T"] for record in read(kafka, topic)]


def failure(server: Server, sink: str) -> str | None:
    query = server.queries()[sink]
    return str(query) if query["state"] == "ERROR" else None


def states(server: Server, *sinks: str) -> list[str]:
    queries = server.queries()
    return [queries[sink]["state"] for sink in sinks]


def test_a_query_that_ends_spark_fails_alone(run: Callable[..., Server], broker: EmbeddedBroker) -> None:
    """A record for which one query needs far more memory than Spark has."""
    kafka = broker.bootstrap
    create_topics(kafka, "sizes", partitions=1)
    server = run(PATIENT)
    server.sql(
        "CREATE STREAM sizes (k STRING KEY, n INT) WITH (KAFKA_TOPIC = 'sizes', VALUE_FORMAT = 'JSON');"
        "CREATE STREAM pages AS SELECT k, CAST(ARRAY_LENGTH(TRANSFORM(GENERATE_SERIES(1, n),"
        " x => RPAD(k, 10000000, RPAD(k, 100000, 'x')))) AS STRING) AS t FROM sizes;"
        "CREATE TABLE sums AS SELECT k, SUM(n) AS n FROM sizes GROUP BY k;"
        "CREATE STREAM numbers AS SELECT k, CAST(n AS STRING) AS t FROM sizes;"
    )
    write(kafka, "sizes", [("a", b'{"n": 2}')])
    wait_for("the first record", lambda: sent(kafka, "PAGES") == ["2"] and sent(kafka, "NUMBERS") == ["2"], 120)

    write(kafka, "sizes", [("a", b'{"n": 90000}'), ("a", b'{"n": 3}')])
    reason = wait_for("the query fails", lambda: failure(server, "PAGES"), 180)
    assert "Spark's process ended" in reason
    assert "spark.driver.memory" in reason
    wait_for("the others are current", lambda: sent(kafka, "NUMBERS") == ["2", "90000", "3"])
    assert server.pull("SELECT n FROM sums WHERE k = 'a';") == [[90005]]
    write(kafka, "sizes", [("a", b'{"n": 4}')])
    wait_for("and stay so", lambda: server.pull("SELECT n FROM sums WHERE k = 'a';") == [[90009]])

    server.sql("CREATE OR REPLACE STREAM pages AS SELECT k, CAST(n AS STRING) AS t FROM sizes;")
    wait_for("it continues", lambda: sent(kafka, "PAGES") == ["2", "90000", "3", "4"])
    assert states(server, "PAGES", "SUMS", "NUMBERS") == ["RUNNING"] * 3
    assert sent(kafka, "NUMBERS") == ["2", "90000", "3", "4"]


def test_a_server_that_waits_for_an_endless_job_stops_in_time_and_loses_nothing(
    run: Callable[..., Server], broker: EmbeddedBroker
) -> None:
    kafka = broker.bootstrap
    create_topics(kafka, "held", partitions=1)
    server = run(PATIENT)
    server.sql(
        "CREATE STREAM held (k STRING KEY, t STRING) WITH (KAFKA_TOPIC = 'held', VALUE_FORMAT = 'JSON');"
        "CREATE STREAM held_matches AS SELECT k, COALESCE(REGEXP_EXTRACT('(.*a){25}c', t), t) AS t FROM held;"
    )
    write(kafka, "held", [("a", value("x"))])
    wait_for("the first record", lambda: sent(kafka, "HELD_MATCHES") == ["x"], 120)
    endless = "a" * 60 + "b"
    write(kafka, "held", [("a", value(endless))])
    wait_for("the tick is stuck", lambda: "a tick" in httpx.get(f"{server.url}/healthcheck").text)
    assert server.terminate() == 1
    assert "stop_timeout" in server.log_of_last_start()
    assert server.survivors() == []

    run(LIMITED)
    assert sent(kafka, "HELD_MATCHES") == ["x"]
    wait_for("the query fails", lambda: failure(server, "HELD_MATCHES"), 120)


def test_a_regular_expression_that_backtracks_without_end_fails_its_query_alone(
    run: Callable[..., Server], broker: EmbeddedBroker
) -> None:
    """Java's regular expressions cannot be interrupted: Spark's process is replaced."""
    kafka = broker.bootstrap
    create_topics(kafka, "texts", partitions=1)
    server = run(LIMITED)
    server.sql(
        "CREATE STREAM texts (k STRING KEY, t STRING) WITH (KAFKA_TOPIC = 'texts', VALUE_FORMAT = 'JSON');"
        "CREATE STREAM matched AS SELECT k, COALESCE(REGEXP_EXTRACT('(.*a){25}c', t), t) AS t FROM texts;"
        "CREATE TABLE counted AS SELECT k, COUNT(*) AS n FROM texts GROUP BY k;"
        "CREATE STREAM copied AS SELECT k, t FROM texts;"
    )
    write(kafka, "texts", [("a", value("x")), ("a", value("aa"))])
    wait_for("the first records", lambda: sent(kafka, "MATCHED") == ["x", "aa"], 120)

    endless = "a" * 60 + "b"
    write(kafka, "texts", [("a", value(endless)), ("a", value("y"))])
    reason = wait_for("the query fails", lambda: failure(server, "MATCHED"), 180)
    assert "query_timeout" in reason
    assert "CREATE OR REPLACE" in reason
    wait_for("the others are current", lambda: sent(kafka, "COPIED") == ["x", "aa", endless, "y"])
    assert server.pull("SELECT n FROM counted WHERE k = 'a';") == [[4]]
    write(kafka, "texts", [("a", value("z"))])
    wait_for("and stay so", lambda: server.pull("SELECT n FROM counted WHERE k = 'a';") == [[5]])
    assert states(server, "MATCHED", "COUNTED", "COPIED") == ["ERROR", "RUNNING", "RUNNING"]

    server.sql(
        "CREATE OR REPLACE STREAM matched AS SELECT k, COALESCE(REGEXP_EXTRACT('a{25}c', t), t) AS t FROM texts;"
    )
    wait_for("it goes on", lambda: len(sent(kafka, "MATCHED")) >= 5)
    assert sent(kafka, "MATCHED") == ["x", "aa", endless, "y", "z"]
    assert sent(kafka, "COPIED") == ["x", "aa", endless, "y", "z"]
    assert server.queries()["MATCHED"]["state"] == "RUNNING"
    assert server.terminate() == 0
