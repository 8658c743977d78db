"""(a) and (c): backfill of 1,000,000 JSON records with a GROUP BY over 100,000 keys.

The baseline is plain PySpark in the same process and with the same session: the same read, parse and aggregation,
once, as a batch. Runs alternate, so that both run under the same conditions.
"""

import time

from bench.service import load_orders, read_topic, run, running, settle, wait_running
from holdfast.app import Service
from holdfast.kafka.port import TopicSpec
from holdfast.names import TopicName

RECORDS, KEYS, ROUNDS = 1_000_000, 100_000, 3
TOPIC = "bench_orders"
COLUMNS = "id BIGINT, user STRING, amount DOUBLE, city STRING"


def plain_spark(service: Service) -> float:
    """Seconds of the same work as one batch job."""
    spark = service._sessions.large
    started = time.monotonic()
    records = read_topic(service, TOPIC)
    records.createOrReplaceTempView("bench_records")
    parsed = f"SELECT from_json(CAST(value AS STRING), '{COLUMNS}') AS v FROM bench_records"
    sql = f"SELECT v.user, count(*) AS n, sum(v.amount) AS total FROM ({parsed}) GROUP BY v.user"
    rows = spark.sql(sql).toArrow()
    assert rows.num_rows == KEYS, rows.num_rows
    return time.monotonic() - started


def holdfast(service: Service, round_: int, queries: int) -> float:
    """Seconds from the statements to tables that have caught up."""
    names = [f"T{round_}_{queries}_{i}" for i in range(queries)]
    sql = "".join(
        f"CREATE TABLE {name} AS SELECT user, COUNT(*) AS n, SUM(amount + {i}) AS total FROM orders GROUP BY user;"
        for i, name in enumerate(names)
    )
    started = time.monotonic()
    run(service, sql)
    wait_running(service)
    took = time.monotonic() - started
    settle(service)
    run(service, "".join(f"DROP TABLE {name};" for name in names))
    return took


def measure() -> list[str]:
    with running() as service:
        service._admin.create(TopicSpec(name=TopicName(TOPIC), partitions=2))
        load_orders(service.settings.kafka or "", TOPIC, RECORDS, KEYS)
        run(service, f"CREATE STREAM orders ({COLUMNS}) WITH (KAFKA_TOPIC='{TOPIC}', VALUE_FORMAT='JSON');")
        plain, one, ten = [], [], []
        for round_ in range(ROUNDS + 1):
            plain.append(plain_spark(service))
            one.append(holdfast(service, round_, 1))
            ten.append(holdfast(service, round_, 10))
        best_plain, best_one, best_ten = min(plain[1:]), min(one[1:]), min(ten[1:])
    return [
        "| catch-up on 1,000,000 records, 100,000 keys | best of 3 | ratio | target |",
        "|---|--:|--:|--:|",
        f"| plain PySpark, one batch | {best_plain:.2f} s ({RECORDS / best_plain:,.0f}/s) | 1 | |",
        f"| (a) Holdfast, 1 query | {best_one:.2f} s ({RECORDS / best_one:,.0f}/s) "
        f"| {best_plain / best_one:.2f} of its rate | 0.8 |",
        f"| (c) Holdfast, 10 queries | {best_ten:.2f} s | {best_ten / best_one:.2f} times one | 2.5 |",
    ]


if __name__ == "__main__":
    print("\n".join(measure()))
