"""Backfills of joins and windows over 1,000,000 records, compared with the same work in plain PySpark as one batch.

Both deliver their result: a stream's rows are in a topic at the end, a table's in the store, or with plain PySpark in
the driver. Runs alternate, so that both run under the same conditions.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.service import Record, load, read_topic, run, running, settle, wait_running
from holdfast.app import Service
from holdfast.kafka.port import TopicSpec
from holdfast.names import TopicName

RECORDS, KEYS, PAGES, ROUNDS = 1_000_000, 100_000, 1_000, 2
FIRST = 1_767_225_600_000
COLUMNS = {
    "clicks": "id BIGINT, page STRING",
    "views": "id BIGINT",
    "touches": "id BIGINT",
    "people": "name STRING",
    "homes": "city STRING",
}
STREAMS = {"clicks": (RECORDS, 7_919), "views": (RECORDS // 2, 104_729), "touches": (RECORDS // 2, 15_485_863)}
"""The number of records of each, and the step from one user to the next."""
VERSIONS = 5
"""Records of each row of a table."""
SETUP = "".join(
    f"CREATE STREAM {name} (user STRING KEY, {COLUMNS[name]}) WITH (KAFKA_TOPIC='bench_{name}', VALUE_FORMAT='JSON');"
    for name in STREAMS
)
PEOPLE, HOMES = (
    f"CREATE TABLE {name} (id STRING PRIMARY KEY, {COLUMNS[name]}) "
    f"WITH (KAFKA_TOPIC='bench_{name}', VALUE_FORMAT='JSON');"
    for name in ("people", "homes")
)


@dataclass(frozen=True, slots=True)
class Case:
    """One query, in both systems. `delivers`: its rows go to a topic; `records`: how many it reads."""

    title: str
    statements: str
    plain: str
    delivers: bool
    records: int


def latest(topic: str) -> str:
    """The rows of a table in plain Spark SQL: the last record of each key."""
    return f"(SELECT k, max_by(v, (partition, offset)) AS v FROM {topic} GROUP BY k)"


CASES = (
    Case(
        "stream-table join, 100,000 rows",
        f"{PEOPLE} CREATE STREAM result AS SELECT c.user, c.id, p.name FROM clicks c JOIN people p ON c.user = p.id;",
        "SELECT c.k AS key, to_json(struct(c.v.id, p.v.name)) AS value "
        f"FROM clicks c JOIN {latest('people')} p USING (k)",
        delivers=True,
        records=RECORDS + VERSIONS * KEYS,
    ),
    Case(
        "1-minute tumbling count, 1,000 keys",
        "CREATE TABLE result AS SELECT page, COUNT(*) AS n FROM clicks WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY page;",
        "SELECT v.page, window(timestamp, '1 minute').start AS w, count(*) AS n FROM clicks GROUP BY 1, 2",
        delivers=False,
        records=RECORDS,
    ),
    Case(
        "stream-stream join within 1 minute",
        "CREATE STREAM result AS SELECT v.user, v.id AS seen, c.id AS touched "
        "FROM views v JOIN touches c WITHIN 1 MINUTE ON v.user = c.user;",
        "SELECT a.k AS key, to_json(struct(a.v.id AS seen, b.v.id AS touched)) AS value FROM views a JOIN touches b "
        "ON a.k = b.k AND b.timestamp BETWEEN a.timestamp - INTERVAL 1 MINUTE AND a.timestamp + INTERVAL 1 MINUTE",
        delivers=True,
        records=RECORDS,
    ),
    Case(
        "table-table join, 100,000 rows each",
        f"{PEOPLE} {HOMES} CREATE TABLE result AS "
        "SELECT p.id, p.name, h.city FROM people p JOIN homes h ON p.id = h.id;",
        f"SELECT k, p.v.name, h.v.city FROM {latest('people')} p JOIN {latest('homes')} h USING (k)",
        delivers=False,
        records=2 * VERSIONS * KEYS,
    ),
)


def events(name: str) -> Iterator[Record]:
    """Records over 1,000 seconds, with users in random order."""
    count, step = STREAMS[name]
    for i in range(count):
        value = b'{"id":%d,"page":"p%d"}' % (i, i % PAGES)
        yield Record(b"u%d" % (i * step % KEYS), value, FIRST + i * RECORDS // count)


def versions(name: str) -> Iterator[Record]:
    column = COLUMNS[name].split()[0].encode()
    for i in range(VERSIONS * KEYS):
        yield Record(b"u%d" % (i % KEYS), b'{"%s":"%s %d"}' % (column, column, i), FIRST)


def plain_spark(service: Service, case: Case) -> float:
    """Seconds of the same work as one batch job."""
    spark = service._sessions.large
    began = time.monotonic()
    for name, columns in COLUMNS.items():
        records = read_topic(service, f"bench_{name}")
        parsed = records.selectExpr(
            "CAST(key AS STRING) AS k", f"from_json(CAST(value AS STRING), '{columns}') AS v",
            "timestamp", "partition", "offset",
        )  # fmt: skip
        parsed.createOrReplaceTempView(name)
    result = spark.sql(case.plain)
    if case.delivers:
        options = {**service._engine._kafka_options, "topic": "bench_plain"}
        result.write.format("kafka").options(**options).save()
    else:
        result.toArrow()
    return time.monotonic() - began


def holdfast(service: Service, case: Case) -> float:
    """Seconds from the statements until the result has caught up and, for a stream, is delivered."""
    began = time.monotonic()
    run(service, case.statements)
    wait_running(service)
    if case.delivers:
        settle(service)
    took = time.monotonic() - began
    settle(service)
    made = [name for name in ("PEOPLE", "HOMES") if f"TABLE {name.lower()} " in case.statements]
    kind = "STREAM" if case.delivers else "TABLE"
    run(service, f"DROP {kind} result DELETE TOPIC;" + "".join(f"DROP TABLE {name};" for name in made))
    return took


def measure() -> list[str]:
    lines = [
        "| joins and windows, catching up | plain PySpark | Holdfast | of its rate |",
        "|---|--:|--:|--:|",
    ]
    with running() as service:
        topics = [TopicSpec(name=TopicName(f"bench_{name}"), partitions=2) for name in (*COLUMNS, "plain")]
        service._admin.create(*topics)
        for name in COLUMNS:
            made = events(name) if name in STREAMS else versions(name)
            load(service.settings.kafka or "", f"bench_{name}", made)
        run(service, SETUP)
        for case in CASES:
            plain, ours = [], []
            for _ in range(ROUNDS + 1):
                plain.append(plain_spark(service, case))
                ours.append(holdfast(service, case))
            best, own = min(plain[1:]), min(ours[1:])
            rate = f"{case.records / own:,.0f} records/s"
            lines.append(f"| {case.title} | {best:.1f} s | {own:.1f} s ({rate}) | {best / own:.2f} |")
    return lines


if __name__ == "__main__":
    print("\n".join(measure()))
