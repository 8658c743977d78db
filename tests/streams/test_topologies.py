"""Streams and tables as SQL: what each operation becomes, and what is folded into one query."""

import math
import operator
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from holdfast.errors import NotSupported, TopologyError, TypeMismatch, UnknownColumn
from holdfast.streams import (
    Consumed,
    JoinWindows,
    KStream,
    Materialized,
    Produced,
    Serdes,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    WindowedSerdes,
    aggregates,
    call,
    col,
    lit,
    row_time,
    sql,
    when,
    window_start,
)
from tests.streams.topologies import LONGS, ORDERS, USERS, builder, last, planned, texts

SIZE = timedelta(minutes=1)


def orders(built: StreamsBuilder) -> KStream[Any, Any]:
    return built.stream("orders", ORDERS.named("orders"))


def selected(change: Callable[[KStream[Any, Any]], KStream[Any, Any]]) -> str:
    """The SELECT of a stream over `orders`."""
    built = builder()
    change(orders(built)).to("out")
    planned([(each.text, each.properties) for each in built.build().statements])
    return last(built).partition(" AS ")[2].rstrip(";")


# ---- streams


def test_filters_and_projections_become_one_query() -> None:
    built = builder()
    large = orders(built).filter(col("amount") > 5).filter_not(col("city") == "Rome")
    large.map_values({"total": col("amount") * 2, "where": col("city")}).to("out")
    assert texts(built)[1] == (
        "CREATE STREAM `shop-to-1` WITH (KAFKA_TOPIC='out', KEY_FORMAT='KAFKA', VALUE_FORMAT='JSON') AS "
        "SELECT `key`, (`amount` * 2) AS `total`, `city` AS `where` FROM `orders` "
        "WHERE ((`amount` > 5) AND (NOT (`city` = 'Rome')));"
    )


def test_a_filter_after_a_projection_is_over_its_columns() -> None:
    text = selected(lambda s: s.map_values({"double": col("amount") * 2}).filter(col("double") > 5))
    assert text == "SELECT `key`, (`amount` * 2) AS `double` FROM `orders` WHERE ((`amount` * 2) > 5)"
    with pytest.raises(UnknownColumn, match="amount"):
        selected(lambda s: s.map_values({"double": col("amount") * 2}).filter(col("amount") > 5))


def test_a_lambda_is_called_once_with_expressions() -> None:
    assert selected(lambda s: s.filter(lambda value: value["amount"] > 5)).endswith("WHERE (`amount` > 5)")
    assert selected(lambda s: s.filter(lambda key, value: key == value["city"])).endswith("WHERE (`key` = `city`)")
    with pytest.raises(TopologyError) as caught:
        selected(lambda s: s.filter(lambda value: len(value["city"]) > 5))
    assert caught.value.message == "a lambda must compute an expression"
    with pytest.raises(TopologyError, match="neither true nor false"):
        selected(lambda s: s.filter(lambda value: value["amount"] > 5 and value["city"] == "Rome"))


def test_a_single_value_has_the_format_of_its_type() -> None:
    built = builder()
    stream = orders(built)
    stream.map_values(col("amount") * 2).to("doubles")
    stream.map_values(col("amount") > 5).to("flags")
    _, doubles, flags = texts(built)
    assert "KEY_FORMAT='KAFKA', VALUE_FORMAT='KAFKA') AS SELECT `key`, (`amount` * 2) AS `value`" in doubles
    assert "VALUE_FORMAT='JSON', WRAP_SINGLE_VALUE=FALSE)" in flags


def test_a_new_key_repartitions_and_copies_its_column() -> None:
    assert selected(lambda s: s.select_key(col("city"))) == (
        "SELECT `city` AS `key`, `customer`, `amount`, AS_VALUE(`city`) AS `city` FROM `orders` PARTITION BY `city`"
    )
    built = builder()
    orders(built).select_key({"c": col("customer"), "town": col("city")}).map_values({"n": col("amount")}).to("out")
    assert "KEY_FORMAT='JSON'" in last(built)
    assert last(built).endswith(
        "SELECT `customer` AS `c`, `city` AS `town`, `amount` AS `n` FROM `orders` PARTITION BY `customer`, `city`;"
    )


def test_serdes_of_an_output_and_its_partitions() -> None:
    built = builder()
    produced = Produced.with_(Serdes.json(str), Serdes.delimited("a DOUBLE", "|")).with_partitions(4).named("result")
    orders(built).map_values({"a": col("amount")}).to("out", produced)
    assert last(built).startswith(
        "CREATE STREAM `result` WITH (KAFKA_TOPIC='out', KEY_FORMAT='JSON', VALUE_FORMAT='DELIMITED', "
        "VALUE_DELIMITER='|', PARTITIONS=4) AS "
    )


def test_a_type_error_is_raised_where_the_operation_is_written() -> None:
    with pytest.raises(TypeMismatch):
        orders(builder()).filter(col("amount") > "5")
    with pytest.raises(TypeMismatch, match="a filter needs a condition"):
        orders(builder()).filter(col("amount") + 1)
    with pytest.raises(UnknownColumn) as caught:
        orders(builder()).map_values(col("amuont"))
    assert caught.value.hint == 'Did you mean "amount"?'


# ---- groups


def test_a_count_is_a_materialized_view_unless_it_is_logged() -> None:
    built = builder()
    grouped = orders(built).group_by_key()
    grouped.count(Materialized.as_("counts"))
    grouped.count(Materialized.as_("logged").with_logging_enabled())
    _, stored, logged = texts(built)
    select = "SELECT `key`, COUNT(*) AS `value` FROM `orders` GROUP BY `key`;"
    assert stored == f"CREATE MATERIALIZED VIEW `counts` AS {select}"
    assert logged == (
        "CREATE TABLE `logged` WITH (KAFKA_TOPIC='logged', KEY_FORMAT='KAFKA', VALUE_FORMAT='KAFKA') AS " + select
    )


def test_a_table_that_only_writes_a_topic_is_one_object() -> None:
    built = builder()
    orders(built).group_by(col("city")).count(Materialized.as_("counts")).to_stream().to("out")
    assert texts(built)[1:] == [
        "CREATE TABLE `counts` WITH (KAFKA_TOPIC='out', KEY_FORMAT='KAFKA', VALUE_FORMAT='KAFKA') AS "
        "SELECT `city` AS `key`, COUNT(*) AS `value` FROM `orders` GROUP BY `city`;"
    ]


def test_aggregates_of_several_columns() -> None:
    built = builder()
    orders(built).filter(col("amount") > 0).group_by({"c": col("customer"), "d": col("city")}).aggregate(
        {
            "total": aggregates.sum("amount"),
            "best": aggregates.max(col("amount") * 2),
            "last": aggregates.latest("city"),
        }
    ).to_stream().to("out")
    assert last(built).endswith(
        "VALUE_FORMAT='JSON') AS SELECT `customer` AS `c`, `city` AS `d`, SUM(`amount`) AS `total`, "
        "MAX((`amount` * 2)) AS `best`, LATEST_BY_OFFSET(`city`) AS `last` FROM `orders` WHERE (`amount` > 0) "
        "GROUP BY `customer`, `city`;"
    )


@pytest.mark.parametrize(("reducer", "function"), [(max, "MAX"), (min, "MIN"), (operator.add, "SUM")])
def test_a_reducer_that_is_an_aggregate_of_sql(reducer: Any, function: str) -> None:
    built = builder()
    built.stream("longs", LONGS.named("longs")).group_by_key().reduce(reducer, Materialized.as_("r"))
    assert last(built) == (
        f"CREATE MATERIALIZED VIEW `r` AS SELECT `key`, {function}(`value`) AS `value` FROM `longs` GROUP BY `key`;"
    )
    planned([(each.text, each.properties) for each in built.build().statements])


def test_a_reducer_needs_a_single_value_and_annotations() -> None:
    with pytest.raises(TopologyError, match="values have several"):
        orders(builder()).group_by_key().reduce(max)
    with pytest.raises(NotSupported, match="needs a function with annotations"):
        builder().stream("longs", LONGS).group_by_key().reduce(lambda a, b: a + b)


# ---- windows


@pytest.mark.parametrize(
    ("windows", "clause"),
    [
        (TimeWindows.of(SIZE), "WINDOW TUMBLING (SIZE 1 MINUTE)"),
        (
            TimeWindows.of(SIZE).advance_by(timedelta(seconds=20)),
            "WINDOW HOPPING (SIZE 1 MINUTE, ADVANCE BY 20 SECONDS)",
        ),
        (TimeWindows.of(SIZE).grace(timedelta(0)), "WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 0 SECONDS)"),
        (SessionWindows.with_gap(SIZE).grace(timedelta(hours=1)), "WINDOW SESSION (1 MINUTE, GRACE PERIOD 1 HOUR)"),
    ],
    ids=["tumbling", "hopping", "grace", "session"],
)
def test_windows(windows: Any, clause: str) -> None:
    built = builder()
    orders(built).group_by_key().windowed_by(windows).count(Materialized.as_("w"))
    assert last(built) == (
        f"CREATE MATERIALIZED VIEW `w` AS SELECT `key`, COUNT(*) AS `value` FROM `orders` {clause} GROUP BY `key`;"
    )
    planned([(each.text, each.properties) for each in built.build().statements])


def test_the_retention_of_a_windowed_store() -> None:
    built = builder()
    stream = orders(built).group_by_key()
    grouped = stream.windowed_by(TimeWindows.of(SIZE).grace(SIZE))
    grouped.count(Materialized.as_("w").with_retention(timedelta(minutes=2)))
    assert "WINDOW TUMBLING (SIZE 1 MINUTE, RETENTION 2 MINUTES, GRACE PERIOD 1 MINUTE)" in last(built)
    with pytest.raises(TopologyError) as caught:
        grouped.count(Materialized.as_("short").with_retention(SIZE))
    assert caught.value.message == (
        "The retention period of the window store short must be no smaller than its window size plus the grace period. "
        "Got size=[60000], grace=[60000], retention=[60000]"
    )
    with pytest.raises(TopologyError) as caught:
        stream.windowed_by(SessionWindows.with_gap(SIZE).grace(SIZE)).count(
            Materialized.as_("short").with_retention(SIZE)
        )
    assert caught.value.message == (
        "The retention period of the session store short must be no smaller than the session inactivity gap plus the "
        "grace period. Got gap=[60000], grace=[60000], retention=[60000]"
    )
    with pytest.raises(TopologyError, match="has no windows to drop"):
        stream.count(Materialized.as_("plain").with_retention(SIZE))


def test_suppressed_windows_have_only_final_results() -> None:
    built = builder()
    counts = orders(built).group_by_key().windowed_by(TimeWindows.of(SIZE)).count()
    counts.suppress(Suppressed.until_window_closes()).to_stream().to("out")
    assert texts(built)[1:] == [
        "CREATE TABLE `shop-suppress-2` WITH (KAFKA_TOPIC='out', KEY_FORMAT='KAFKA', VALUE_FORMAT='KAFKA') AS "
        "SELECT `key`, COUNT(*) AS `value` FROM `orders` WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY `key` EMIT FINAL;"
    ]


def test_what_cannot_be_suppressed_and_windows_that_are_refused() -> None:
    with pytest.raises(NotSupported, match="only the windows of an aggregation"):
        builder().table("users", USERS).suppress(Suppressed.until_window_closes())
    with pytest.raises(NotSupported, match="suppressed for a duration"):
        Suppressed.until_time_limit(SIZE)
    with pytest.raises(NotSupported) as caught:
        SlidingWindows.of_time_difference(SIZE)
    assert "advance_by" in str(caught.value.hint)
    with pytest.raises(TopologyError, match="must not be longer"):
        TimeWindows.of(SIZE).advance_by(2 * SIZE)
    with pytest.raises(TopologyError, match="is not a window"):
        orders(builder()).group_by_key().windowed_by(SIZE)  # type: ignore[call-overload]


# ---- tables


def test_the_rows_of_a_table() -> None:
    built = builder()
    users = built.table("users", USERS.named("users"))
    users.filter(col("level") > 2).map_values({"who": call("UCASE", col("name"))}, Materialized.as_("seniors"))
    users.group_by(col("level")).count(Materialized.as_("levels"))
    _, seniors, levels = texts(built)
    assert seniors == (
        "CREATE MATERIALIZED VIEW `seniors` AS SELECT `key`, UCASE(`name`) AS `who` FROM `users` WHERE (`level` > 2);"
    )
    assert levels.endswith("SELECT `level` AS `key`, COUNT(*) AS `value` FROM `users` GROUP BY `level`;")
    planned([(each.text, each.properties) for each in built.build().statements])


def test_the_changes_of_a_table_are_a_stream_over_its_topic() -> None:
    built = builder()
    counts = orders(built).group_by(col("city")).count(Materialized.as_("counts"))
    counts.to_stream().filter(col("value") > 2).to("many")
    _, table, changes, many = texts(built)
    assert table.startswith("CREATE TABLE `counts` WITH (KAFKA_TOPIC='counts', ")
    assert changes == (
        "CREATE STREAM `shop-to-stream-1` (`key` STRING KEY, `value` BIGINT) "
        "WITH (KAFKA_TOPIC='counts', KEY_FORMAT='KAFKA', VALUE_FORMAT='KAFKA');"
    )
    assert many.endswith("SELECT `key`, `value` FROM `shop-to-stream-1` WHERE (`value` > 2);")
    planned([(each.text, each.properties) for each in built.build().statements])


def test_a_windowed_table_is_filtered_and_its_windows_are_columns() -> None:
    built = builder()
    clicks = built.windowed_table("clicks", SIZE, LONGS.named("clicks"))
    clicks.filter((col("value") > 2) & (window_start() > 0)).map_values(col("value") * 2, Materialized.as_("busy"))
    assert last(built) == (
        "CREATE MATERIALIZED VIEW `busy` AS SELECT `key`, (`value` * 2) AS `value` FROM `clicks` "
        "WHERE ((`value` > 2) AND (WINDOWSTART > 0));"
    )
    planned([(each.text, each.properties) for each in built.build().statements])


# ---- joins


def joined(change: Callable[[StreamsBuilder, KStream[Any, Any]], Any]) -> str:
    built = builder()
    result = change(built, orders(built))
    (result if isinstance(result, KStream) else result.to_stream()).to("out")
    planned([(each.text, each.properties) for each in built.build().statements])
    return last(built).partition(" AS ")[2].rstrip(";")


def test_a_stream_joins_a_table_in_the_query_that_filters_it() -> None:
    assert joined(
        lambda built, stream: stream.filter(col("amount") > 5).join(
            built.table("users", USERS.named("users")), lambda o, u: {"amount": o["amount"], "name": u["name"]}
        )
    ) == (
        "SELECT L.`key` AS `key`, L.`amount` AS `amount`, R.`name` AS `name` FROM `orders` AS L JOIN `users` AS R "
        "ON L.`key` = R.`key` WHERE (L.`amount` > 5)"
    )


def test_a_stream_joins_a_table_by_an_expression() -> None:
    text = joined(
        lambda built, stream: stream.left_join(built.table("users", USERS.named("users")), on=col("customer"))
    )
    assert text == (
        "SELECT L.`customer` AS `key`, AS_VALUE(L.`customer`) AS `customer`, L.`amount` AS `amount`, "
        "L.`city` AS `city`, R.`name` AS `name`, R.`level` AS `level` "
        "FROM `orders` AS L LEFT JOIN `users` AS R ON L.`customer` = R.`key`"
    )


def test_streams_join_within_windows() -> None:
    windows = JoinWindows.of(SIZE).after(timedelta(hours=1)).grace(timedelta(minutes=10))
    text = joined(
        lambda built, stream: stream.outer_join(
            built.stream("paid", Consumed.with_(Serdes.string(), Serdes.json({"method": str})).named("paid")),
            lambda order, paid: {"amount": order["amount"], "method": paid["method"]},
            windows,
        )
    )
    assert text == (
        "SELECT ROWKEY AS `key`, L.`amount` AS `amount`, R.`method` AS `method` FROM `orders` AS L FULL OUTER JOIN "
        "`paid` AS R WITHIN (1 MINUTE, 1 HOUR) GRACE PERIOD 10 MINUTES ON L.`key` = R.`key`"
    )
    with pytest.raises(TopologyError, match="needs windows"):
        joined(lambda built, stream: stream.join(built.stream("paid", LONGS)))
    with pytest.raises(TopologyError, match="has no windows"):
        joined(lambda built, stream: stream.left_join(built.table("users", USERS), None, windows))


def test_tables_join_by_key_and_by_foreign_key() -> None:
    built = builder()
    stock = built.table(
        "stock", Consumed.with_(Serdes.string(), Serdes.json("pieces INT, place STRING")).named("stock")
    )
    places = built.table("places", Consumed.with_(Serdes.string(), Serdes.json("hall STRING")).named("places"))
    stock.join(
        places, lambda s, p: {"hall": p["hall"], "pieces": s["pieces"]}, Materialized.as_("by_hall"), on=col("place")
    )
    stock.outer_join(places, lambda s, p: {"both": s["pieces"], "hall": p["hall"]}, Materialized.as_("whole"))
    by_hall, whole = texts(built)[2:]
    assert by_hall.endswith(
        "SELECT L.`key` AS `key`, R.HALL AS `hall`, L.PIECES AS `pieces` FROM `stock` AS L JOIN `places` AS R "
        "ON L.PLACE = R.`key`;"
    )
    assert whole.endswith("FROM `stock` AS L FULL OUTER JOIN `places` AS R ON L.`key` = R.`key`;")
    planned([(each.text, each.properties) for each in built.build().statements])


def test_a_projected_right_side_becomes_an_object_of_its_own() -> None:
    built = builder()
    users = built.table("users", USERS.named("users")).filter(col("level") > 2)
    orders(built).join(users, lambda _, user: {"name": user["name"]}).to("out")
    _, _, seniors, result = texts(built)
    assert seniors.startswith("CREATE MATERIALIZED VIEW `shop-select-1` AS SELECT")
    assert "JOIN `shop-select-1` AS R" in result
    planned([(each.text, each.properties) for each in built.build().statements])


def test_columns_of_both_sides_need_names() -> None:
    built = builder()
    stream, table = built.stream("a", LONGS), built.table("b", LONGS)
    with pytest.raises(TopologyError, match='both sides of the join have a column "value"'):
        stream.join(table)


# ---- expressions


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (col("amount") >= 1.5, "(`amount` >= 1.5E0)"),
        (-col("amount") < -3, "(-`amount` < -3)"),
        (~(col("city") == "O'Hara") | col("city").is_null(), "((NOT (`city` = 'O''Hara')) OR (`city` IS NULL))"),
        (col("amount").between(1, 2), "(`amount` BETWEEN 1 AND 2)"),
        (col("city").in_(["Oslo", "Rome"]), "(`city` IN ('Oslo', 'Rome'))"),
        (col("city").like("R%"), "(`city` LIKE 'R%')"),
        (row_time() > 5, "(ROWTIME > 5)"),
        (when(col("amount") > 5, "many").otherwise("few") == "few",
         "((CASE WHEN (`amount` > 5) THEN 'many' ELSE 'few' END) = 'few')"),
        (sql("LEN(`city`) > 3"), "(LEN(`city`) > 3)"),
        (col("AMOUNT").cast(int) == lit(3), "(CAST(`amount` AS BIGINT) = 3)"),
        (call("len", col("city")) % 2 == 0, "((LEN(`city`) % 2) = 0)"),
        (1 - col("amount") > 0, "((1 - `amount`) > 0)"),
        (col("amount") > -1e300, "(`amount` > -1e+300)"),
        (col("amount") > 1e-7, "(`amount` > 1e-07)"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)  # fmt: skip
def test_an_expression_is_quoted_sql(expression: Any, text: str) -> None:
    assert selected(lambda s: s.filter(expression)).partition(" WHERE ")[2] == text


def test_an_aware_datetime_is_a_constant_in_utc() -> None:
    eastern = timezone(timedelta(hours=1, minutes=30))
    assert repr(lit(datetime(2024, 1, 31, 7, 30, tzinfo=eastern))) == "Expr('2024-01-31T06:00:00.000')"


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan, Decimal("NaN")])
def test_a_number_that_is_not_finite_is_no_constant(number: Any) -> None:
    with pytest.raises(TypeMismatch, match="cannot be a constant of SQL"):
        lit(number)


# ---- topologies


def test_only_what_is_used_is_created() -> None:
    built = builder()
    grouped = orders(built).group_by_key()
    grouped.count()
    grouped.count(Materialized.as_("counts"))
    assert len(texts(built)) == 2
    assert [node.name for node in built.build().created] == ["orders", "counts"]


def test_a_description_has_every_object_with_its_store_topic_and_statement() -> None:
    built = builder()
    windowed = orders(built).group_by_key().windowed_by(TimeWindows.of(SIZE))
    windowed.count(Materialized.as_("per_minute"))
    built.sessioned_table("visits", LONGS, Materialized.as_("visits"))
    description = built.build().describe()
    assert description.startswith("Application: shop\n\nStream: orders (stream over topic orders)\n")
    assert "  rows: (key STRING) -> (value BIGINT), per window of 1 MINUTE\n  store: window store\n  <-- orders\n" in (
        description
    )
    assert (
        "Table: visits (table over topic visits)\n  rows: (key STRING) -> (value BIGINT), per session\n" in description
    )
    assert all(text in description for text in texts(built))


def test_a_picture_has_every_object_and_topic() -> None:
    built = builder()
    stream = orders(built)
    stream.join(built.table("users", USERS, Materialized.as_("users")), lambda _, user: {"n": user["name"]}).to("named")
    stream.group_by_key().count(Materialized.as_("counts"))
    picture = built.build().picture()
    assert picture.startswith("<svg")
    for name in ("orders", "users", "counts", "topic/named", "counts/store"):
        assert f'data-node="{name}"' in picture


def test_a_windowed_stream_keeps_its_windows() -> None:
    built = builder()
    serde = WindowedSerdes.time_windowed(Serdes.string(), SIZE)
    built.stream("clicks", Consumed.with_(serde, Serdes.long()).named("clicks")).filter(col("value") > 1).to("many")
    plans, catalog = planned([(each.text, each.properties) for each in built.build().statements])
    assert len(plans) == 2
    windows = {found.topic: found.window for found in catalog.streams}
    assert windows["many"] == windows["clicks"]
