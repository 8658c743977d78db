"""Topologies over records: the real engine, topics in memory."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from holdfast.errors import TopologyError, WrongObjectKind
from holdfast.runtime.spark.engine import Engine
from holdfast.streams import (
    Columnar,
    Consumed,
    Materialized,
    Serdes,
    SessionWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    TopicRecord,
    TopologyTestDriver,
    Window,
    Windowed,
    aggregates,
    col,
    key_value_store,
    session_store,
    window_store,
)
from holdfast.streams.topic_records import TopicCodec
from holdfast.testing.wire import WireRecord
from tests.streams.topologies import LONGS, ORDERS, USERS, Order, builder

MINUTE = 60_000
Start = Callable[[StreamsBuilder], TopologyTestDriver]


@pytest.fixture
def start(engine: Engine) -> Iterator[Start]:
    drivers: list[TopologyTestDriver] = []

    def started(built: StreamsBuilder) -> TopologyTestDriver:
        drivers.append(TopologyTestDriver(built, engine))
        return drivers[-1]

    yield started
    for each in drivers:
        each.close()


def window(key: str, start: int, size: int = MINUTE) -> Windowed[str]:
    return Windowed(key, Window(start, start + size))


def add(one: int, other: int) -> int:
    return one + other


def label(amount: float, city: str) -> str:
    return f"{city}:{amount:.1f}"


class Longest:
    def partial(self, city: Columnar[str]) -> Any:
        return max((each for each in city.to_pylist() if each), key=len, default=None)  # type: ignore[attr-defined]

    def merge(self, one: Any, other: Any) -> Any:
        return max((each for each in (one, other) if each), key=len, default=None)

    def result(self, state: Any) -> str:
        return state  # type: ignore[no-any-return]


def test_records_are_filtered_projected_joined_and_aggregated(start: Start) -> None:
    built = builder()
    orders = built.stream("orders", ORDERS)
    users = built.table("users", USERS, Materialized.as_("users"))
    orders.filter(lambda value: value["amount"] > 5).map_values({"what": label, "double": col("amount") * 2}).to(
        "large"
    )
    orders.join(users, lambda order, user: {"who": user["name"], "city": order["city"]}, on=col("customer")).to("named")
    grouped = orders.group_by(col("customer"))
    grouped.aggregate({"total": aggregates.sum("amount"), "longest": Longest}, Materialized.as_("totals"))
    built.stream("longs", LONGS).group_by_key().reduce(add, Materialized.as_("sums"))
    driver = start(built)
    driver.pipe_input("users", "ann", {"name": "Ann", "level": 3})
    driver.pipe_input("orders", "o1", Order("ann", 10.0, "Oslo"), 1_000)
    driver.pipe_inputs("orders", [TopicRecord("o2", Order("ann", 2.5, "Bergen"), 2_000), TopicRecord("o3", None)])
    assert driver.read_output("large") == TopicRecord("o1", {"what": "Oslo:10.0", "double": 20.0}, 1_000)
    assert driver.read_output("large") is None
    assert [record.value["city"] for record in driver.read_outputs("named")] == ["Oslo", "Bergen"]
    assert driver.store("totals", key_value_store()).get("ann") == {"total": 12.5, "longest": "Bergen"}
    for number in (3, 4):
        driver.pipe_input("longs", "a", number)
    assert driver.store("sums", key_value_store(str, int)).get("a") == 7
    driver.pipe_input("users", "ann", None)
    assert list(driver.store("users", key_value_store()).all()) == []


def test_a_windowed_topic_of_another_application_is_a_window_store(start: Start) -> None:
    """Case 4 of the seed, for a topic and for a changelog."""
    built = builder()
    retained = Materialized.as_("clicks").with_retention(timedelta(minutes=3))
    clicks = built.windowed_table("clicks", timedelta(minutes=1), LONGS, retained)
    built.windowed_table("app-changelog", timedelta(minutes=1), LONGS.for_changelog(), Materialized.as_("logged"))
    clicks.filter(col("value") > 1, Materialized.as_("busy"))
    clicks.to_stream().filter(col("value") > 2).to("many")
    driver = start(built)
    for number in range(3):
        for topic in ("clicks", "app-changelog"):
            driver.pipe_input(topic, window("ann", number * MINUTE), number + 1, number * MINUTE)
    driver.pipe_input("clicks", window("bob", MINUTE), 7, MINUTE)
    store = driver.store("clicks", window_store(str, int))
    assert (store.fetch("ann", MINUTE), store.fetch("ann", 1)) == (2, None)
    assert list(store.fetch("ann", MINUTE, 2 * MINUTE)) == [(MINUTE, 2), (2 * MINUTE, 3)]
    assert list(store.backward_fetch("ann", None, MINUTE)) == [(MINUTE, 2), (0, 1)]
    assert list(store.fetch_all(1, MINUTE)) == [(window("ann", MINUTE), 2), (window("bob", MINUTE), 7)]
    assert list(store.fetch_range("b", None, None, None)) == [(window("bob", MINUTE), 7)]
    assert [value for _, value in store.backward_all()] == [3, 7, 2, 1]
    assert [value for _, value in driver.store("logged", window_store()).all()] == [1, 2, 3]
    assert [key.key for key, _ in driver.store("busy", window_store()).all()] == ["ann", "bob", "ann"]
    assert [(record.key, record.value) for record in driver.read_outputs("many")] == [
        (window("ann", 2 * MINUTE), 3),
        (window("bob", MINUTE), 7),
    ]
    driver.pipe_input("clicks", window("ann", MINUTE), None, MINUTE)
    assert store.fetch("ann", MINUTE) is None
    driver.pipe_input("clicks", window("ann", 4 * MINUTE), 5, 4 * MINUTE)
    assert list(store.fetch("ann", None, None)) == [(2 * MINUTE, 3), (4 * MINUTE, 5)], "older windows have expired"


def test_sessions_of_another_application_are_a_session_store(start: Start) -> None:
    built = builder()
    built.sessioned_table("visits", LONGS, Materialized.as_("visits"))
    driver = start(built)
    early, late = Windowed("ann", Window(1_000, 5_000)), Windowed("ann", Window(90_000, 95_000))
    for number, key in enumerate((early, late)):
        driver.pipe_input("visits", key, number, key.window.end)
    store = driver.store("visits", session_store(str, int))
    assert list(store.fetch("ann")) == [(early, 0), (late, 1)]
    assert (store.fetch_session("ann", 1_000, 5_000), store.fetch_session("ann", 1_000, 5_001)) == (0, None)
    assert list(store.find_sessions("ann", 5_000, 90_000)) == [(early, 0), (late, 1)]
    assert list(store.find_sessions("ann", 5_001, 90_000)) == [(late, 1)]
    assert list(store.find_sessions("ann", None, 89_999)) == [(early, 0)]
    assert list(store.backward_find_sessions("ann", 0, 90_000)) == [(late, 1), (early, 0)]


def test_windows_of_its_own(start: Start) -> None:
    built = builder()
    grouped = built.stream("orders", ORDERS).group_by(col("city"))
    counts = grouped.windowed_by(TimeWindows.of(timedelta(minutes=1)).grace(timedelta(0))).count(
        Materialized.as_("counts")
    )
    counts.suppress(Suppressed.until_window_closes()).to_stream().to("final")
    grouped.windowed_by(SessionWindows.with_gap(timedelta(seconds=10))).count(Materialized.as_("visits"))
    driver = start(built)
    for at in (1_000, 2_000, 30_000):
        driver.pipe_input("orders", "o", Order("ann", 1.0, "Oslo"), at)
    assert driver.read_output("final") is None
    driver.pipe_input("orders", "o", Order("ann", 1.0, "Oslo"), 61_000)
    assert driver.read_outputs("final") == [TopicRecord(window("Oslo", 0), 3, 30_000)]
    assert driver.store("counts", window_store()).fetch("Oslo", MINUTE) == 1
    sessions = [(key.window, count) for key, count in driver.store("visits", session_store()).fetch("Oslo")]
    assert sessions == [(Window(1_000, 2_000), 2), (Window(30_000, 30_000), 1), (Window(61_000, 61_000), 1)]


def test_a_store_as_of_a_time_and_the_wall_clock(start: Start) -> None:
    built = builder()
    built.table("longs", LONGS, Materialized.as_("longs"))
    driver = start(built)
    driver.advance_wall_clock(timedelta(seconds=10))
    driver.pipe_input("longs", "a", 1)
    driver.advance_wall_clock(timedelta(seconds=10))
    driver.pipe_input("longs", "a", 2)
    store = driver.store("longs", key_value_store())
    assert (store.get("a"), store.as_of(15_000).get("a")) == (2, 1)


def test_each_record_is_decoded_once(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    built = builder()
    built.stream("longs", LONGS).to("copies")
    driver = start(built)
    decoded = 0
    decode = TopicCodec.decode

    def counted(codec: TopicCodec, record: WireRecord) -> TopicRecord:
        nonlocal decoded
        decoded += 1
        return decode(codec, record)

    monkeypatch.setattr(TopicCodec, "decode", counted)
    driver.pipe_inputs("longs", [TopicRecord("a", n) for n in range(5)])
    first = [driver.read_output("copies") for _ in range(3)]
    driver.pipe_input("longs", "a", 5)
    rest = driver.read_outputs("copies")
    assert [record.value for record in (*first, *rest) if record is not None] == list(range(6))
    assert driver.read_output("copies") is None
    assert decoded == 6


def test_what_a_driver_refuses(start: Start) -> None:
    built = builder()
    built.table("longs", LONGS, Materialized.as_("longs"))
    built.windowed_table("clicks", timedelta(minutes=1), LONGS, Materialized.as_("clicks"))
    built.stream("orders", ORDERS)
    driver = start(built)
    with pytest.raises(TopologyError, match='neither reads nor writes topic "nothing"'):
        driver.pipe_input("nothing", "a", 1)
    with pytest.raises(TopologyError, match="have windows"):
        driver.pipe_input("clicks", "a", 1)
    with pytest.raises(TopologyError, match="has no column AMUONT"):
        driver.pipe_input("orders", "a", {"amuont": 1})
    with pytest.raises(WrongObjectKind, match="is a key-value store, not a window store"):
        driver.store("longs", window_store())
    with pytest.raises(WrongObjectKind, match="is a window store, not a key-value store"):
        driver.store("clicks", key_value_store())
    with pytest.raises(WrongObjectKind, match="is a stream, not a store"):
        driver.store("shop-stream-1", key_value_store())


def test_formats_and_types_of_records(start: Start) -> None:
    built = builder()
    lines = Consumed.with_(Serdes.json("a INT, b STRING"), Serdes.delimited("x DOUBLE, y BOOLEAN, z STRING", "|"))
    built.stream("lines", lines).filter(col("y")).to("some")
    nested = Serdes.json("since TIMESTAMP, tags ARRAY<STRING>, place STRUCT<lat DOUBLE>, price DECIMAL(6, 2)")
    built.stream("nested", Consumed.with_(Serdes.long(), nested)).map_values(
        {"tags": col("tags"), "price": col("price")}
    ).to("parts")
    driver = start(built)
    driver.pipe_input("lines", (1, "k"), {"x": 2.5, "y": True, "z": "a|b"})
    assert driver.read_outputs("some") == [TopicRecord((1, "k"), {"X": 2.5, "Y": True, "Z": "a|b"})]
    value = {"since": datetime(2024, 1, 31, tzinfo=UTC), "tags": ["a"], "place": {"LAT": 1.5}, "price": Decimal("2.50")}
    driver.pipe_input("nested", 5, value)
    assert driver.read_outputs("parts") == [TopicRecord(5, {"tags": ["a"], "price": Decimal("2.50")})]
