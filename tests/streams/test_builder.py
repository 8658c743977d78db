"""The seed of windowed tables: eight signatures, four cases, and what is refused with its reason."""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from holdfast.errors import NotSupported, TopologyError, UnknownColumn
from holdfast.streams import (
    Consumed,
    Materialized,
    Serdes,
    StreamsBuilder,
    WindowedSerdes,
    col,
    key_value_store,
    session_store,
    window_store,
)
from tests.streams.topologies import LONGS, ORDERS, builder, last, planned, texts

SIZE = timedelta(minutes=5)
STORE = Materialized.as_("clicks").with_key_serde(Serdes.string()).with_value_serde(Serdes.long())
COLUMNS = "(`key` STRING PRIMARY KEY, `value` BIGINT)"
FORMATS = "KAFKA_TOPIC='clicks', KEY_FORMAT='KAFKA', VALUE_FORMAT='KAFKA'"


def is_planned(built: StreamsBuilder) -> bool:
    """Whether the statements can be planned: the text is SQL of this release."""
    return bool(planned([(each.text, each.properties) for each in built.build().statements])[0])


# ---- the eight signatures


def windowed(name: str, columns: str = COLUMNS) -> str:
    return f"CREATE TABLE `{name}` {columns} WITH ({FORMATS}, WINDOW_TYPE='TUMBLING', WINDOW_SIZE='5 MINUTES');"


def sessioned(name: str, columns: str = COLUMNS) -> str:
    return f"CREATE TABLE `{name}` {columns} WITH ({FORMATS}, WINDOW_TYPE='SESSION');"


TEXT_COLUMNS = "(`key` STRING PRIMARY KEY, `value` STRING)"


def test_windowed_table_of_topic_size_consumed_and_materialized() -> None:
    built = builder()
    table = built.windowed_table("clicks", SIZE, LONGS, Materialized.as_("clicks"))
    assert last(built) == windowed("clicks")
    assert table.queryable_store_name == "clicks"
    assert is_planned(built)


def test_windowed_table_of_topic_and_size() -> None:
    built = builder()
    built.windowed_table("clicks", SIZE)
    assert last(built) == windowed("shop-windowed-table-1", TEXT_COLUMNS)
    assert is_planned(built)


def test_windowed_table_of_topic_size_and_consumed() -> None:
    built = builder()
    built.windowed_table("clicks", SIZE, LONGS)
    assert last(built) == windowed("shop-windowed-table-1")


def test_windowed_table_of_topic_size_and_materialized() -> None:
    positional, named = builder(), builder()
    positional.windowed_table("clicks", SIZE, STORE)
    named.windowed_table("clicks", window_size=SIZE, materialized=STORE)
    assert last(positional) == last(named) == windowed("clicks")


def test_sessioned_table_of_topic_consumed_and_materialized() -> None:
    built = builder()
    built.sessioned_table("clicks", LONGS, Materialized.as_("clicks"))
    assert last(built) == sessioned("clicks")
    assert is_planned(built)


def test_sessioned_table_of_topic() -> None:
    built = builder()
    built.sessioned_table("clicks")
    assert last(built) == sessioned("shop-sessioned-table-1", TEXT_COLUMNS)


def test_sessioned_table_of_topic_and_consumed() -> None:
    built = builder()
    built.sessioned_table("clicks", consumed=LONGS)
    assert last(built) == sessioned("shop-sessioned-table-1")


def test_sessioned_table_of_topic_and_materialized() -> None:
    positional, named = builder(), builder()
    positional.sessioned_table("clicks", STORE)
    named.sessioned_table("clicks", materialized=STORE)
    assert last(positional) == last(named) == sessioned("clicks")


# ---- the four cases


def test_case_1_a_topic_without_windows_is_a_table_with_a_key_value_store() -> None:
    built = builder()
    built.table("clicks", LONGS, Materialized.as_("clicks"))
    assert last(built) == f"CREATE TABLE `clicks` {COLUMNS} WITH ({FORMATS});"
    typed = builder()
    typed.table("clicks", LONGS, Materialized.as_(key_value_store()).named("clicks"))
    assert last(typed) == last(built)


@pytest.mark.parametrize(
    "materialized",
    [
        Materialized.as_(window_store()),
        Materialized.as_(session_store()),
        Materialized.as_("clicks").with_retention(SIZE),
    ],
    ids=["window store", "session store", "retention"],
)
def test_case_2_a_topic_without_windows_cannot_be_materialized_in_a_window_store(materialized: Any) -> None:
    with pytest.raises(NotSupported) as caught:
        builder().table("clicks", LONGS, materialized)
    assert "is not windowed" in caught.value.message
    assert "group_by(…).windowed_by(…).aggregate(…)" in str(caught.value.hint)


WINDOWED = Consumed.with_(WindowedSerdes.time_windowed(Serdes.string(), SIZE), Serdes.long())


def test_case_3_a_windowed_topic_cannot_be_materialized_in_a_key_value_store() -> None:
    with pytest.raises(NotSupported) as caught:
        builder().table("clicks", WINDOWED)
    assert "time to live would be lost" in str(caught.value.detail)
    assert "windowed_table" in str(caught.value.hint)
    with pytest.raises(NotSupported) as caught:
        builder().windowed_table("clicks", SIZE, LONGS, Materialized.as_(key_value_store()))
    assert "time to live would be lost" in str(caught.value.detail)


def test_case_3_a_windowed_topic_can_be_read_as_a_stream_with_a_notice(caplog: pytest.LogCaptureFixture) -> None:
    built = builder()
    built.stream("clicks", WINDOWED)
    assert caplog.records[0].levelno == logging.WARNING
    assert "time to live would be lost" in caplog.text
    assert last(built) == (
        f"CREATE STREAM `shop-stream-1` (`key` STRING KEY, `value` BIGINT) WITH ({FORMATS}, WINDOW_TYPE='TUMBLING', "
        "WINDOW_SIZE='5 MINUTES');"
    )
    assert is_planned(built)


@pytest.mark.parametrize(
    "consumed",
    [
        LONGS.for_changelog(),
        WINDOWED.for_changelog(),
        replace(LONGS, key_serde=WindowedSerdes.time_windowed(Serdes.string(), SIZE).for_changelog()),
    ],
)
def test_case_3_a_changelog_cannot_be_read_as_a_stream(consumed: Any) -> None:
    with pytest.raises(NotSupported, match="is a changelog, and cannot be a stream") as caught:
        builder().stream("clicks", consumed)
    assert "the latest value of each window" in str(caught.value.detail)
    assert "windowed_table" in str(caught.value.hint)


def test_a_table_has_the_values_of_all_records() -> None:
    latest = LONGS.with_offset_reset("latest")
    for declare in (
        lambda: builder().table("longs", latest),
        lambda: builder().windowed_table("longs", SIZE, latest),
        lambda: builder().sessioned_table("longs", latest),
    ):
        with pytest.raises(NotSupported, match="cannot start at the latest record") as caught:
            declare()
        assert "an earlier record" in str(caught.value.detail)
        assert caught.value.hint is not None
    assert is_planned(_with(lambda built: built.table("longs", LONGS.with_offset_reset("earliest"))))


def _with(declare: Callable[[StreamsBuilder], Any]) -> StreamsBuilder:
    built = builder()
    declare(built)
    return built


def test_case_4_a_changelog_is_materialized_in_a_window_store_with_its_retention() -> None:
    built = builder()
    built.windowed_table(
        "clicks", SIZE, LONGS.for_changelog(), Materialized.as_("clicks").with_retention(timedelta(hours=2))
    )
    assert last(built) == (
        f"CREATE TABLE `clicks` {COLUMNS} WITH ({FORMATS}, WINDOW_TYPE='TUMBLING', WINDOW_SIZE='5 MINUTES', "
        "WINDOW_TOPIC='CHANGELOG', RETENTION='2 HOURS');"
    )
    assert is_planned(built)


# ---- window_size


@pytest.mark.parametrize(
    ("size", "problem"),
    [
        (timedelta(0), "window_size must be positive, not zero"),
        (timedelta(seconds=-1), "window_size must be positive, not -1000 ms"),
        (None, "window_size is missing"),
        (300_000, "window_size must be a timedelta, not int"),
        (timedelta(microseconds=1500), "window_size must be whole milliseconds, not 1.5 ms"),
    ],
)
def test_a_window_size_is_a_positive_timedelta(size: Any, problem: str) -> None:
    with pytest.raises(TopologyError) as caught:
        builder().windowed_table("clicks", size)
    assert caught.value.message == problem


def test_sessions_have_no_window_size() -> None:
    with pytest.raises(TopologyError) as caught:
        builder().sessioned_table("clicks", SIZE)  # type: ignore[call-overload]
    assert caught.value.message == "sessions have no window_size"


# ---- serdes and stores


@pytest.mark.parametrize(
    ("consumed", "materialized"),
    [
        (WINDOWED, None),
        (LONGS, Materialized.with_(WindowedSerdes.time_windowed(Serdes.string(), SIZE), Serdes.long())),
        (Consumed.with_(WindowedSerdes.session_windowed(Serdes.string()), Serdes.long()), None),
    ],
    ids=["consumed", "materialized", "session"],
)
def test_windowed_tables_take_raw_key_serdes(consumed: Any, materialized: Any) -> None:
    for declare in (lambda b: b.windowed_table("clicks", SIZE, consumed, materialized),
                    lambda b: b.sessioned_table("clicks", consumed, materialized)):  # fmt: skip
        with pytest.raises(TopologyError) as caught:
            declare(builder())
        assert "must be that of the raw key" in caught.value.message
        assert "adds the windowed serde by itself" in str(caught.value.detail)


def test_a_retention_shorter_than_the_window_is_refused_in_the_words_of_kafka_streams() -> None:
    with pytest.raises(TopologyError) as caught:
        builder().windowed_table("clicks", SIZE, LONGS, Materialized.as_("clicks").with_retention(timedelta(minutes=1)))
    assert caught.value.message == (
        "The retention period of the window store clicks must be no smaller than its window size plus the grace "
        "period. Got size=[300000], grace=[0], retention=[60000]"
    )


def test_a_window_store_is_not_a_session_store() -> None:
    with pytest.raises(NotSupported, match="cannot be materialized in a session store"):
        builder().windowed_table("clicks", SIZE, LONGS, Materialized.as_(session_store()))
    with pytest.raises(NotSupported, match="cannot be materialized in a window store"):
        builder().sessioned_table("clicks", LONGS, Materialized.as_(window_store()))


def test_consumed_and_materialized_may_not_disagree() -> None:
    with pytest.raises(TopologyError, match="different value serdes"):
        builder().table("clicks", LONGS, Materialized.with_(Serdes.string(), Serdes.string()))


# ---- Consumed


def test_a_timestamp_column_a_reset_policy_and_partitions() -> None:
    built = builder()
    consumed = ORDERS.with_timestamp(col("amount")).with_offset_reset("latest").with_partitions(3).named("orders")
    built.stream("orders-topic", consumed).to("copy")
    first, second = built.build().statements
    assert first.text.startswith("CREATE STREAM `orders` (")
    assert first.text.endswith("PARTITIONS=3, TIMESTAMP='`amount`');")
    assert second.properties == {"auto.offset.reset": "latest"}


def test_a_timestamp_extractor_names_a_column() -> None:
    with pytest.raises(TopologyError, match="must name a column"):
        ORDERS.with_timestamp(col("amount") * 2)
    with pytest.raises(UnknownColumn):
        builder().stream("orders", ORDERS.with_timestamp("amuont"))
    with pytest.raises(TopologyError, match="is not a reset policy"):
        ORDERS.with_offset_reset("yesterday")


def test_names_are_the_same_each_time_and_are_not_used_twice() -> None:
    def declare() -> list[str]:
        built = builder()
        built.stream("a").filter(col("value") == "x").to("b")
        built.windowed_table("c", SIZE)
        return texts(built)

    assert declare() == declare()
    twice = builder()
    twice.table("a", LONGS, Materialized.as_("t"))
    with pytest.raises(TopologyError, match='two nodes are called "t"'):
        twice.table("b", LONGS, Materialized.as_("t"))
    with pytest.raises(TopologyError, match="cannot be the name of a store"):
        twice.table("b", LONGS, Materialized.as_("no spaces"))


def test_column_names_that_collide() -> None:
    built = builder()
    built.stream("a", Consumed.with_(Serdes.string(), Serdes.json({"key": str, "n": int})))
    assert "(`key_` STRING KEY, `key` STRING, `n` BIGINT)" in last(built)
    with pytest.raises(TopologyError, match='key and value both have a column "n"'):
        builder().stream("a", Consumed.with_(Serdes.string().named("n"), Serdes.json({"n": int})))
