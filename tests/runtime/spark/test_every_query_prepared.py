"""The jobs of small ticks are planned once, whatever the queries do: none slows down the ticks of the others."""

import pytest
from runtime.driver import Driver, Record

from holdfast.metrics import REGISTRY

SOURCES = """
CREATE STREAM a (id STRING KEY, x INT, f STRING) WITH (KAFKA_TOPIC='a', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE STREAM b (id STRING KEY, y INT) WITH (KAFKA_TOPIC='b', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE TABLE t (id STRING PRIMARY KEY, x INT, f STRING) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE TABLE u (id STRING PRIMARY KEY, y INT) WITH (KAFKA_TOPIC='u', VALUE_FORMAT='JSON', PARTITIONS=1);
"""
QUERIES = {
    "join of streams": "CREATE STREAM q AS SELECT a.id AS id, x, y FROM a JOIN b WITHIN 1 MINUTE ON a.id = b.id;",
    "left join of streams": (
        "CREATE STREAM q AS SELECT a.id AS id, x, y FROM a LEFT JOIN b WITHIN 1 MINUTE GRACE PERIOD 1 MINUTE "
        "ON a.id = b.id;"
    ),
    "outer join of streams": (
        "CREATE STREAM q AS SELECT ROWKEY AS id, x, y FROM a FULL OUTER JOIN b WITHIN 1 MINUTE ON a.id = b.id;"
    ),
    "join with a table": "CREATE STREAM q AS SELECT a.id AS id, a.x, y FROM a LEFT JOIN u ON a.id = u.id;",
    "join of tables": "CREATE TABLE q AS SELECT ROWKEY AS id, x, y FROM t FULL OUTER JOIN u ON t.id = u.id;",
    "join by a foreign key": "CREATE TABLE q AS SELECT t.id AS id, x, y FROM t LEFT JOIN u ON t.f = u.id;",
    "several joins": (
        "CREATE STREAM q AS SELECT a.id AS id, a.x, b.y, t.f FROM a JOIN b WITHIN 1 MINUTE ON a.id = b.id "
        "JOIN t ON a.id = t.id;"
    ),
    "sessions": "CREATE TABLE q AS SELECT id, COUNT(*) AS n FROM a WINDOW SESSION (10 SECONDS) GROUP BY id;",
    "windows": "CREATE TABLE q AS SELECT f, COUNT(*) AS n FROM a WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY f;",
    "final windows": (
        "CREATE TABLE q AS SELECT f, COUNT(*) AS n FROM a WINDOW TUMBLING (SIZE 1 SECOND, GRACE PERIOD 0 SECONDS) "
        "GROUP BY f EMIT FINAL;"
    ),
    "elements": "CREATE TABLE q AS SELECT f, COLLECT_LIST(x) AS l, COUNT_DISTINCT(x) AS d FROM a GROUP BY f;",
    "groups of a table": "CREATE TABLE q AS SELECT f, SUM(x) AS n FROM t GROUP BY f;",
    "rows of a list": "CREATE STREAM q AS SELECT id, EXPLODE(SPLIT(f, ',')) AS f FROM a PARTITION BY id;",
}


def planned_jobs() -> float:
    return REGISTRY.get_sample_value("holdfast_spark_job_seconds_count", {"plan": "small"}) or 0.0


@pytest.mark.parametrize("name", QUERIES)
def test_a_small_tick_runs_as_a_prepared_job(engine, name):
    driver = Driver(engine, SOURCES + QUERIES[name])
    before = planned_jobs()
    for i in range(2):
        for topic, value in {"t": '{"X":1,"F":"k"}', "u": '{"Y":2}', "a": '{"X":3,"F":"k"}', "b": '{"Y":4}'}.items():
            driver.tick([Record(topic, b"k", value.encode(), timestamp=i * 5_000)])
    assert driver.sent("Q")
    assert planned_jobs() == before
    driver.close()
