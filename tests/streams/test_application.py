"""Topologies on a running service: over HTTP, in the same process, and across restarts."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.client import Client
from holdfast.config import Settings
from holdfast.errors import TopologyError, UnknownObject, WrongObjectKind
from holdfast.names import ObjectName, TopicName
from holdfast.runtime.spark.engine import Engine
from holdfast.streams import (
    Consumed,
    Materialized,
    Serdes,
    Streams,
    StreamsBuilder,
    TopicRecord,
    Window,
    Windowed,
    WindowedSerdes,
    aggregates,
    col,
    key_value_store,
    session_store,
    window_store,
)
from holdfast.streams.deployment import deploy
from holdfast.streams.embedded import EmbeddedDeployment
from holdfast.streams.topic_records import TopicCodec
from tests.runtime.driver import Driver, Record
from tests.server.local import LocalService, eventually
from tests.streams.topologies import LONGS, builder

MINUTE = 60_000
SOURCE = LONGS.with_partitions(1)


def topology() -> StreamsBuilder:
    built = builder()
    clicks = built.windowed_table("clicks", timedelta(minutes=1), SOURCE, Materialized.as_("clicks"))
    clicks.filter(col("value") > 1, Materialized.as_("busy"))
    built.sessioned_table("visits", SOURCE, Materialized.as_("visits"))
    built.stream("longs", SOURCE).group_by_key().aggregate(aggregates.sum(), Materialized.as_("sums"))
    return built


def write(service: LocalService, topic: str, *records: TopicRecord) -> None:
    """Write records as another application does."""
    found = next(each for each in service.catalog.objects.values() if each.topic == topic)
    for record in records:
        wire = TopicCodec(found).encode(record, service._store)
        service.broker.append(TopicName(topic), wire.value, wire.key, timestamp=wire.timestamp)


def window(number: int) -> Windowed[str]:
    return Windowed("ann", Window(number * MINUTE, (number + 1) * MINUTE))


@pytest.fixture(params=["http", "client", "in process"])
def connect(request: pytest.FixtureRequest, service: LocalService, url: str) -> Callable[[StreamsBuilder], Streams]:
    server: Any = {"http": url, "client": Client(url), "in process": service}[request.param]
    return lambda built: Streams(built, server=server)


def test_all_windows_are_read_however_small_the_results_are(
    connect: Callable[[StreamsBuilder], Streams], service: LocalService, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(topology()) as streams:
        write(service, "clicks", *(TopicRecord(window(n), n, n * MINUTE) for n in range(300)))
        store = streams.store("clicks", window_store(str, int))
        assert eventually(lambda: store.fetch("ann", 299 * MINUTE) == 299)
        monkeypatch.setattr(service._store, "max_result_bytes", 2_000)
        with store.all() as entries:
            assert next(entries) == (window(0), 0)
            # What is read later is as of the same time.
            write(service, "clicks", TopicRecord(window(200), -1, 200 * MINUTE))
            assert eventually(lambda: store.fetch("ann", 200 * MINUTE) == -1)
            assert [value for _, value in entries] == list(range(1, 300))
        assert [start for start, _ in store.backward_fetch("ann", None, None)] == [
            n * MINUTE for n in range(299, -1, -1)
        ]
    assert not service._reads._transactions._open


def test_a_topology_runs_on_a_server_and_its_stores_are_read(
    connect: Callable[[StreamsBuilder], Streams], service: LocalService, url: str
) -> None:
    with connect(topology()) as streams:
        assert streams.is_running
        write(service, "clicks", *(TopicRecord(window(n), n + 1, n * MINUTE) for n in range(3)))
        write(service, "visits", TopicRecord(Windowed("ann", Window(5, 15)), 7, 15))
        write(service, "longs", TopicRecord("a", 3), TopicRecord("a", 4))
        clicks = streams.store("clicks", window_store(str, int))
        assert eventually(lambda: list(clicks.fetch("ann", MINUTE, 2 * MINUTE)) == [(MINUTE, 2), (2 * MINUTE, 3)])
        assert list(clicks.backward_all()) == [(window(n), n + 1) for n in (2, 1, 0)]
        assert eventually(lambda: streams.store("sums", key_value_store(str, int)).get("a") == 7)
        sessions = streams.store("visits", session_store())
        assert eventually(lambda: sessions.fetch_session("ann", 5, 15) == 7)
        assert [value for _, value in streams.store("busy", window_store()).all()] == [2, 3]
        with pytest.raises(WrongObjectKind):
            streams.store("clicks", key_value_store())
        with pytest.raises(UnknownObject):
            streams.store("click", window_store())
    with Client(url) as client:
        store = client.store("clicks", window_store(str, int))
        with store.fetch("ann", 0, 2 * MINUTE) as entries:
            assert next(entries) == (0, 1)
        assert list(store.fetch_all(None, 0)) == [(window(0), 1)], "the connection is free again"


def test_a_topology_that_runs_already_goes_on(
    connect: Callable[[StreamsBuilder], Streams], service: LocalService
) -> None:
    connect(topology()).start().close()
    before = {name: found.id for name, found in service.catalog.objects.items()}
    connect(topology()).start().close()
    assert {name: found.id for name, found in service.catalog.objects.items()} == before

    changed = builder()
    clicks = changed.windowed_table("clicks", timedelta(minutes=1), SOURCE, Materialized.as_("clicks"))
    clicks.filter(col("value") > 2, Materialized.as_("busy"))
    query = service.catalog.objects[ObjectName("busy")].query
    for _ in range(2):
        connect(changed).start().close()
    busy = service.catalog.objects[ObjectName("busy")]
    assert (busy.query, "> 2" in busy.statement) == (query, True), "it continues with the new condition"


def test_notices_of_statements_are_logged(
    connect: Callable[[StreamsBuilder], Streams], caplog: pytest.LogCaptureFixture
) -> None:
    built = builder()
    serde = WindowedSerdes.time_windowed(Serdes.string(), timedelta(minutes=1))
    built.stream("clicks", Consumed.with_(serde, Serdes.long()).with_partitions(1))
    caplog.clear()
    with connect(built):
        pass
    notices = [record for record in caplog.records if record.message.startswith("notice: ")]
    assert [record.levelname for record in notices] == ["WARNING"]
    assert "have no retention" in notices[0].message


def test_an_application_is_started_before_its_stores_are_read() -> None:
    with pytest.raises(TopologyError, match="not running"):
        Streams(topology(), server="http://127.0.0.1:1").store("clicks", window_store())
    with pytest.raises(TopologyError, match="settings are those of a database in this process"):
        Streams(
            topology(), Settings(data_dir=Path("x"), jar_dir=Path("x"), store_memory=0), server="http://127.0.0.1:1"
        )


@pytest.fixture
def restarted(engine: Engine, tmp_path: Path) -> Iterator[Callable[[], Driver]]:
    """Starts the same database again and again."""
    current: list[Driver] = [Driver(engine, folder=tmp_path / "store")]

    def restart() -> Driver:
        current.append(current[-1].restart())
        return current[-1]

    yield restart
    current[-1].close()


def test_a_restarted_application_continues_where_it_was(restarted: Callable[[], Driver]) -> None:
    for round_ in range(3):
        driver = restarted()
        deployment = EmbeddedDeployment(driver.service)
        deploy(topology().build(), deployment)
        driver.service.run_until_idle()
        driver.tick([Record("longs", b"a", (10**round_).to_bytes(8, "big"))])
        assert driver.rows("sums")[0][:2] == ("a", sum(10**n for n in range(round_ + 1)))
    statements = len(topology().build().statements)
    assert len(driver.commands) == statements, "each statement ran once"
