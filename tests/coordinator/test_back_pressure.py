"""Sink topics that take no rows for long: their own queries wait before the disk is full, and lose nothing."""

from dataclasses import replace

import pytest

from holdfast.app import Service
from holdfast.names import TopicName

from .servers import Servers
from .service_calls import records, rows, run
from .test_sinks import info, numbers, refuse

SETUP = """
CREATE STREAM s (id STRING KEY, n INT, t STRING) WITH (KAFKA_TOPIC = 's', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE TABLE per_id WITH (KAFKA_TOPIC = 'per_id') AS SELECT id, COUNT(*) AS n FROM s GROUP BY id;
CREATE STREAM good WITH (KAFKA_TOPIC = 'good') AS SELECT id, n FROM s;
CREATE STREAM bad WITH (KAFKA_TOPIC = 'bad') AS SELECT id, t, n FROM s;
CREATE TABLE after_bad WITH (KAFKA_TOPIC = 'after_bad') AS SELECT id, COUNT(*) AS n FROM bad GROUP BY id;
"""
WIDE = "x" * 1_000
LIMIT = 20_000


@pytest.fixture
def limited(servers: Servers) -> Servers:
    servers.settings = replace(servers.settings, outbox_bytes=LIMIT)
    return servers


def write(servers: Servers, first: int, count: int) -> None:
    """Ticks of five records, with time for the checks between them."""
    for start in range(first, first + count, 5):
        values = [f'{{"N":{n},"T":"{WIDE}"}}'.encode() for n in range(start, start + 5)]
        servers.write("s", *values, key=b"a")
        servers.let_pass(1.5)


def heal(servers: Servers) -> None:
    servers.broker.refusals.clear()
    servers.let_pass(60.0)
    servers.let_pass()


def test_a_query_waits_for_its_sink_topic_and_the_others_do_not(limited: Servers) -> None:
    service = limited.start()
    run(service, SETUP)
    write(limited, 0, 5)
    assert numbers(service, "bad") == list(range(5))
    refuse(limited, lasting=False)
    write(limited, 5, 95)
    waiting = info(service, "BAD")
    assert waiting.state == "WAITING"
    assert "outbox_bytes" in waiting.reason
    assert 'blocked: topic "bad" refused a record' in waiting.reason
    assert service._store.pending_bytes(waiting.id) < 2 * LIMIT
    assert numbers(service, "good") == list(range(100))
    assert rows(service, "per_id") == {("a", 100)}
    assert info(service, "AFTER_BAD").reason.startswith("frozen since")

    heal(limited)
    assert numbers(service, "bad") == list(range(100))
    assert info(service, "BAD").state == "RUNNING"
    assert info(service, "BAD").reason is None
    assert rows(service, "after_bad") == {("a", 100)}
    write(limited, 100, 5)
    assert numbers(service, "bad") == list(range(105))
    assert rows(service, "after_bad") == {("a", 105)}


def test_a_query_that_waits_does_so_after_a_restart_and_loses_nothing(limited: Servers) -> None:
    run(limited.start(), SETUP)
    refuse(limited, lasting=False)
    write(limited, 0, 60)
    service = limited.start()
    limited.let_pass(1.5)
    write(limited, 60, 40)
    assert info(service, "BAD").state in ("WAITING", "BUILDING")
    assert service._store.pending_bytes(info(service, "BAD").id) < 3 * LIMIT
    assert numbers(service, "good") == list(range(100))
    heal(limited)
    assert numbers(service, "bad") == list(range(100))
    assert rows(service, "after_bad") == {("a", 100)}


def test_a_query_that_catches_up_waits_between_its_slices(limited: Servers) -> None:
    limited.settings = replace(limited.settings, max_records_per_tick=20, small_tick_records=5)
    service = limited.start()
    [stream, _, _, bad, _] = [f"{text.strip()};" for text in SETUP.split(";")[:5]]
    run(service, stream)
    for n in range(200):
        limited.broker.append(TopicName("s"), f'{{"N":{n},"T":"{WIDE}"}}'.encode(), b"a")
    limited.let_pass()
    refuse(limited, lasting=False)
    run(service, bad)
    assert service._store.pending_bytes(info(service, "BAD").id) < 3 * LIMIT
    heal(limited)
    for _ in range(20):
        limited.let_pass()
    assert numbers(service, "bad") == list(range(200))


def test_a_query_over_a_table_is_rebuilt_after_it_has_waited(limited: Servers) -> None:
    service = limited.start()
    run(
        service,
        SETUP.split(";")[0] + ";CREATE TABLE latest WITH (KAFKA_TOPIC = 'latest') AS"
        " SELECT id, LATEST_BY_OFFSET(t) AS t, COUNT(*) AS n FROM s GROUP BY id;"
        "CREATE TABLE bad WITH (KAFKA_TOPIC = 'bad') AS SELECT id, t, n FROM latest;",
    )
    refuse(limited, lasting=False)
    write(limited, 0, 100)
    assert info(service, "BAD").state == "WAITING"
    assert service._store.pending_bytes(info(service, "BAD").id) < 2 * LIMIT
    heal(limited)
    assert info(service, "BAD").state == "RUNNING"
    assert rows(service, "bad") == {("a", WIDE, 100)}
    assert last(service, "bad")[b"a"] == f'{{"T":"{WIDE}","N":100}}'.encode()


def test_pause_resume_and_drop_of_a_query_that_waits(limited: Servers) -> None:
    service = limited.start()
    run(service, SETUP)
    refuse(limited, lasting=False)
    write(limited, 0, 60)
    query = info(service, "BAD")
    assert query.state == "WAITING"
    run(service, f"PAUSE {query.id};")
    assert info(service, "BAD").state == "PAUSED"
    heal(limited)
    run(service, f"RESUME {query.id};")
    limited.let_pass()
    assert numbers(service, "bad") == list(range(60))
    refuse(limited, lasting=False)
    write(limited, 60, 60)
    assert info(service, "BAD").state == "WAITING"
    run(service, "DROP TABLE after_bad;DROP STREAM bad;")
    heal(limited)
    written = numbers(service, "bad")
    assert written == list(range(len(written)))
    assert numbers(service, "good") == list(range(120))


def last(service: Service, topic: str) -> dict[bytes | None, bytes | None]:
    return dict(records(service, topic))
