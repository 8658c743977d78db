"""Subscribers over real tables that stop reading: what the server holds for them, and until when."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from holdfast.errors import SubscriptionLagged
from holdfast.names import CollectionId
from holdfast.runtime.spark.engine_pair import EnginePair
from holdfast.runtime.store.port import Time
from holdfast.server.http.server import listen, running
from holdfast.serving.push.lag_watch import LagWatch, subscription_infos
from holdfast.serving.push.query import PushQuery
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import parse
from tests.server.local import LocalService, eventually, local_service
from tests.server.sockets import Http1, Http2, WebSocket

MOST = 8 << 20
TABLE = CollectionId("T")
ROWS = 40_000
TABLES = """
CREATE STREAM s (id STRING KEY, n INT, s STRING) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE TABLE t AS SELECT id, LATEST_BY_OFFSET(n) AS n, LATEST_BY_OFFSET(s) AS s FROM s GROUP BY id;
"""
Client = Http1 | Http2 | WebSocket


@pytest.fixture(scope="module")
def service(engines: EnginePair) -> Iterator[LocalService]:
    """A service with 40 MB of rows in a table."""
    with local_service(engines) as started:
        started.run(TABLES)
        started.put("T", *((f"k{i:05}", i, "x" * 1000) for i in range(ROWS)))
        yield started


@pytest.fixture
def url(service: LocalService) -> Iterator[str]:
    with running(service, listen(service.settings)) as server:
        yield server.url


def stopped(service: LocalService) -> PushQuery:
    """The push query, once it reads no more because nobody takes what it has read."""
    push = service.next_push()
    seen, since = -1, time.monotonic()
    while time.monotonic() - since < 1.0:
        if push.meter.bytes != seen:
            seen, since = push.meter.bytes, time.monotonic()
        time.sleep(0.02)
    return push


def holds(service: LocalService) -> list[Time]:
    return service._store._core.pins.on(TABLE)


@pytest.mark.parametrize("protocol", [Http1, Http2, WebSocket])
@pytest.mark.parametrize("statement", ["SUBSCRIBE t;", "SELECT * FROM t EMIT ALL;"])
def test_a_stopped_reader_costs_a_batch_and_keeps_its_place(
    protocol: Callable[..., Client], statement: str, url: str, service: LocalService
) -> None:
    """40 MB of rows wait for it, then half as much of changes."""
    path = "/ws/query-stream" if protocol is WebSocket else "/query-stream"
    client = protocol(url, path, {"sql": statement})
    push = stopped(service)
    cut = push.pinned_at
    assert 0 < push.meter.bytes < ROWS * 1000 / 2, "it does not take all"
    for number in range(5):
        service.put("T", *((f"k{i:05}", i, f"{number}" * 1000) for i in range(4_000)))
    assert stopped_still(push)
    assert push.meter.peak_buffered < MOST
    now = Time(service.clock.now_ms())
    (info,) = subscription_infos([push], now)
    assert (info.pinned_at, info.lag_ms, info.reads) == (cut, now - (cut or 0), ("T",))
    assert cut in holds(service), "the history that it has still to read is held"
    client.go()
    assert eventually(lambda: holds(service) == [], 1), "one that goes lets go of it within a second"


def stopped_still(push: PushQuery) -> bool:
    seen = push.meter.bytes
    time.sleep(0.3)
    return push.meter.bytes == seen


def test_changes_of_a_reader_that_comes_back_are_all_there_and_bounded(url: str, service: LocalService) -> None:
    up_to = service.clock.now_ms() + 60_000
    client = Http1(url, "/query-stream", {"sql": f"SUBSCRIBE t WITH (SNAPSHOT = false) UP TO {up_to};"})
    push = stopped(service)
    for number in range(6):
        service.put("T", *((f"n{i:05}", number, "x" * 1000) for i in range(4_000)))
    service.clock.advance(60)
    content = b"".join(client.received())
    assert content.count(b"\n") == 1 + 4_000 * (1 + 5 * 2)
    assert push.meter.peak_buffered < MOST
    client.go()


def test_past_the_greatest_lag_it_is_ended_with_a_message(url: str, service: LocalService) -> None:
    client = Http1(url, "/query-stream", {"sql": "SUBSCRIBE t;"})
    push = stopped(service)
    cut = push.pinned_at
    assert cut is not None
    now = cut + 10_000
    watch = LagWatch(lambda: [push], lambda: Time(now), timedelta(seconds=10))
    watch.check()
    assert holds(service) == [cut] * len(holds(service)) != [], "not yet"
    now += 1
    watch.check()
    watch.check()
    assert push.pinned_at is None
    content = b"".join(client.received())
    last = content.strip().splitlines()[-1]
    assert b'"message":"the subscription fell more than 0:00:10 behind"' in last
    assert b'"hint":"Start again, with a snapshot."' in last, "it was in the middle of one"
    assert b'"sqlstate":"54000"' in last
    client.go()


def test_after_a_snapshot_it_gets_the_time_to_continue_from(service: LocalService) -> None:
    push = service.push(bind(parse("SUBSCRIBE t;")[0].statement, service.catalog), {})
    assert isinstance(push, PushQuery)
    while push.next(0) is not None:
        pass
    at = push.time
    service.put("T", ("a", 2, "x"))
    later = Time(service.clock.now_ms() + 20_000)
    LagWatch(lambda: [push], lambda: later, timedelta(seconds=10)).check()
    with pytest.raises(SubscriptionLagged) as raised:
        push.next(0)
    assert f"WITH (SNAPSHOT = false) AS OF {at}," in (raised.value.hint or "")
    assert holds(service) == []
