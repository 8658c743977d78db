"""A topology has the plans of the same SQL written by hand."""

from datetime import timedelta

from holdfast.streams import (
    Consumed,
    JoinWindows,
    Materialized,
    Serdes,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    aggregates,
    col,
)
from tests.streams.topologies import LONGS, ORDERS, USERS, builder, planned, plans_of

ORDERS_SQL = """
CREATE STREAM `orders` (`key` STRING KEY, `customer` STRING, `amount` DOUBLE, `city` STRING)
  WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON');
"""


def check(built: StreamsBuilder, script: str, **properties: str) -> None:
    assert (
        plans_of(built) == planned([(script, {name.replace("_", "."): text for name, text in properties.items()})])[0]
    )


def test_a_filter_and_a_projection() -> None:
    built = builder()
    stream = built.stream("orders", ORDERS.named("orders")).filter(lambda value: value["amount"] > 5)
    stream.map_values({"total": col("amount") * 2, "city": col("city")}).to("out")
    check(
        built,
        ORDERS_SQL
        + """CREATE STREAM `shop-to-1` WITH (KAFKA_TOPIC='out') AS
             SELECT `key`, `amount` * 2 AS `total`, `city` FROM `orders` WHERE `amount` > 5;""",
    )


def test_a_windowed_aggregation_with_final_results() -> None:
    built = builder()
    grouped = built.stream("orders", ORDERS.named("orders")).group_by(col("city"))
    windows = grouped.windowed_by(TimeWindows.of(timedelta(minutes=1)).grace(timedelta(seconds=10)))
    total = windows.aggregate({"total": aggregates.sum("amount"), "orders": aggregates.count()})
    total.suppress(Suppressed.until_window_closes(), "totals").to_stream().to("totals")
    check(
        built,
        ORDERS_SQL
        + """CREATE TABLE `totals` AS
             SELECT `city` AS `key`, SUM(`amount`) AS `total`, COUNT(*) AS `orders` FROM `orders`
             WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 10 SECONDS) GROUP BY `city` EMIT FINAL;""",
    )


def test_joins() -> None:
    built = builder()
    stream = built.stream("orders", ORDERS.named("orders"))
    users = built.table("users", USERS, Materialized.as_("users"))
    paid = built.stream("paid", Consumed.with_(Serdes.string(), Serdes.json({"method": str})).named("paid"))
    stream.left_join(users, lambda order, user: {"amount": order["amount"], "name": user["name"]}).to("named")
    within = JoinWindows.of(timedelta(minutes=5))
    stream.join(paid, lambda order, paid: {"city": order["city"], "method": paid["method"]}, within).to("settled")
    check(
        built,
        ORDERS_SQL
        + """CREATE TABLE `users` (`key` STRING PRIMARY KEY, `name` STRING, `level` BIGINT)
               WITH (KAFKA_TOPIC='users', VALUE_FORMAT='JSON');
             CREATE STREAM `paid` (`key` STRING KEY, `method` STRING) WITH (KAFKA_TOPIC='paid', VALUE_FORMAT='JSON');
             CREATE STREAM `shop-to-1` WITH (KAFKA_TOPIC='named') AS
               SELECT L.`key` AS `key`, L.`amount` AS `amount`, R.`name` AS `name`
               FROM `orders` L LEFT JOIN `users` R ON L.`key` = R.`key`;
             CREATE STREAM `shop-to-2` WITH (KAFKA_TOPIC='settled') AS
               SELECT L.`key` AS `key`, L.`city` AS `city`, R.`method` AS `method`
               FROM `orders` L JOIN `paid` R WITHIN 5 MINUTES ON L.`key` = R.`key`;""",
    )


def test_windowed_tables() -> None:
    built = builder()
    clicks = built.windowed_table(
        "clicks",
        timedelta(minutes=5),
        LONGS.for_changelog(),
        Materialized.as_("clicks").with_retention(timedelta(days=2)),
    )
    clicks.filter(col("value") > 2, Materialized.as_("busy"))
    built.sessioned_table("visits", LONGS, Materialized.as_("visits"))
    check(
        built,
        """CREATE TABLE `clicks` (`key` STRING PRIMARY KEY, `value` BIGINT)
             WITH (KAFKA_TOPIC='clicks', VALUE_FORMAT='KAFKA', WINDOW_TYPE='TUMBLING', WINDOW_SIZE='5 MINUTES',
                   WINDOW_TOPIC='CHANGELOG', RETENTION='2 DAYS');
           CREATE MATERIALIZED VIEW `busy` AS SELECT `key`, `value` FROM `clicks` WHERE `value` > 2;
           CREATE TABLE `visits` (`key` STRING PRIMARY KEY, `value` BIGINT)
             WITH (KAFKA_TOPIC='visits', VALUE_FORMAT='KAFKA', WINDOW_TYPE='SESSION');""",
    )


def test_an_aggregation_of_values_in_the_format_of_kafka() -> None:
    built = builder()
    built.stream("longs", LONGS.named("longs")).group_by_key().reduce(max, Materialized.as_("most"))
    check(
        built,
        """CREATE STREAM `longs` (`key` STRING KEY, `value` BIGINT) WITH (KAFKA_TOPIC='longs', VALUE_FORMAT='KAFKA');
           CREATE MATERIALIZED VIEW `most` AS SELECT `key`, MAX(`value`) AS `value` FROM `longs` GROUP BY `key`;""",
        holdfast_any_value_format="true",
    )
