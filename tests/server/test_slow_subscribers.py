"""Subscribers over real tables that stop reading: what the server holds for them, and until when."""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from serving.reading import Reading

from holdfast.errors import SubscriptionLagged
from holdfast.names import CollectionId
from holdfast.runtime.store.port import Time
from holdfast.server.serve import listen, running
from holdfast.serving.pushing import Pushing
from holdfast.serving.subscriptions import LagWatch, listed
from holdfast.sql.bound import BoundSelect, BoundSubscribe

from .fake import FakeService
from .sockets import Http1, Http2, WebSocket

MOST = 8 << 20
TABLE = CollectionId("T")
ROWS = 40_000
Client = Http1 | Http2 | WebSocket


class TableService(FakeService):
    """A service whose pushes read a real store."""

    def __init__(self, reading: Reading) -> None:
        super().__init__()
        self.reading, self.catalog = reading, reading.driver.catalog
        self.opened: list[Pushing] = []

    def push(self, bound: BoundSelect | BoundSubscribe, properties: Mapping[str, str]) -> Pushing:  # type: ignore[override]
        del properties
        push = self.reading.started(bound)
        self.opened.append(push)
        self.started.release()
        return push

    def close_push(self, id: str) -> bool:
        for push in self.opened:
            if push.id == id:
                push.close()
        return True


@pytest.fixture
def service(tmp_path: Path) -> Iterator[TableService]:
    reading = Reading(tmp_path)
    yield TableService(reading)
    reading.close()


@pytest.fixture
def url(service: TableService) -> Iterator[str]:
    with running(service, listen(service.settings)) as server:
        yield server.url


def stopped(service: TableService) -> Pushing:
    """The push query, once it reads no more because nobody takes what it has read."""
    assert service.started.acquire(timeout=5)
    push = service.opened[-1]
    seen, since = -1, time.monotonic()
    while time.monotonic() - since < 1.0:
        if push.meter.bytes != seen:
            seen, since = push.meter.bytes, time.monotonic()
        time.sleep(0.02)
    return push


def holds(service: TableService) -> list[Time]:
    return service.reading.store._core.holds.on(TABLE)


@pytest.mark.parametrize("protocol", [Http1, Http2, WebSocket])
@pytest.mark.parametrize("statement", ["SUBSCRIBE t;", "SELECT * FROM t EMIT ALL;"])
def test_a_stopped_reader_costs_a_batch_and_keeps_its_place(
    protocol: Callable[..., Client], statement: str, url: str, service: TableService
) -> None:
    """40 MB of rows wait for it, then as much of changes."""
    reading = service.reading
    reading.put("T", {f"k{i:05}": (i, "x" * 1000) for i in range(ROWS)})
    path = "/ws/query-stream" if protocol is WebSocket else "/query-stream"
    client = protocol(url, path, {"sql": statement})
    push = stopped(service)
    cut = push.held
    assert 0 < push.meter.bytes < ROWS * 1000 / 2, "it does not take all"
    for number in range(5):
        reading.put("T", {f"k{i:05}": (i, f"{number}" * 1000) for i in range(8_000)})
    assert stopped_still(push)
    assert push.meter.peak_buffered < MOST
    (told,) = listed([push], Time(reading.now))
    assert (told.held, told.lag_ms, told.reads) == (cut, reading.now - (cut or 0), ("T",))
    assert cut in holds(service), "the history that it has still to read is held"
    client.go()
    deadline = time.monotonic() + 1
    while holds(service) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert holds(service) == [], "one that goes lets go of it within a second"


def stopped_still(push: Pushing) -> bool:
    seen = push.meter.bytes
    time.sleep(0.3)
    return push.meter.bytes == seen


def test_changes_of_a_reader_that_comes_back_are_all_there_and_bounded(url: str, service: TableService) -> None:
    reading = service.reading
    client = Http1(url, "/query-stream", {"sql": f"SUBSCRIBE t WITH (SNAPSHOT = false) UP TO {reading.now + 7};"})
    stopped(service)
    for number in range(6):
        reading.put("T", {f"k{i:05}": (number, "x" * 1000) for i in range(4_000)})
    content = b"".join(client.received())
    assert content.count(b"\n") == 1 + 4_000 * (1 + 5 * 2)
    assert service.opened[-1].meter.peak_buffered < MOST
    client.go()


def test_past_the_greatest_lag_it_is_ended_and_told_so(url: str, service: TableService) -> None:
    reading = service.reading
    reading.put("T", {f"k{i:05}": (i, "x" * 1000) for i in range(ROWS)})
    client = Http1(url, "/query-stream", {"sql": "SUBSCRIBE t;"})
    push = stopped(service)
    cut = push.held
    watch = LagWatch(lambda: service.opened, lambda: Time(reading.now), timedelta(seconds=10))
    reading.now += 10_000
    watch.look()
    assert holds(service) == [cut] * len(holds(service)) != [], "not yet"
    reading.now += 1
    watch.look()
    watch.look()
    assert push.held is None
    content = b"".join(client.received())
    last = content.strip().splitlines()[-1]
    assert b'"message":"the subscription fell more than 0:00:10 behind"' in last
    assert b'"hint":"Begin again, with a snapshot."' in last, "it was in the middle of one"
    assert b'"sqlstate":"54000"' in last
    client.go()


def test_after_a_snapshot_it_is_told_the_time_to_go_on_from(service: TableService) -> None:
    reading = service.reading
    at = reading.put("T", {"a": (1, "x")})
    push = reading.subscribe("SUBSCRIBE t;")
    while push.next(0) is not None:
        pass
    reading.put("T", {"a": (2, "x")})
    reading.now += 20_000
    LagWatch(lambda: [push], lambda: Time(reading.now), timedelta(seconds=10)).look()
    with pytest.raises(SubscriptionLagged) as told:
        push.next(0)
    assert f"WITH (SNAPSHOT = false) AS OF {at}," in (told.value.hint or "")
    assert holds(service) == []
