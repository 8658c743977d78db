"""How long windows are retained follows from the plans of the queries that make or read them."""

import pytest
from sql.build import catalog_of

from holdfast.catalog.window_retention import window_retention_ms

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
SOURCES = """
CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE TABLE people (id STRING PRIMARY KEY, name STRING) WITH (KAFKA_TOPIC='people', VALUE_FORMAT='JSON');
CREATE MATERIALIZED VIEW names AS SELECT id, name FROM people;
CREATE TABLE w (id STRING PRIMARY KEY, n INT)
  WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON', WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 MINUTE', RETENTION='1 HOUR');
CREATE TABLE v (id STRING PRIMARY KEY, n INT)
  WITH (KAFKA_TOPIC='v', VALUE_FORMAT='JSON', WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 MINUTE');
CREATE MATERIALIZED VIEW m AS SELECT id, n FROM w;
CREATE TABLE made AS SELECT id, COUNT(*) AS n FROM s WINDOW TUMBLING (SIZE 1 MINUTE, RETENTION 2 DAYS) GROUP BY id;
"""
COUNT = "SELECT id, COUNT(*) AS n FROM s WINDOW {} GROUP BY id"


@pytest.mark.parametrize(
    ("query", "retention"),
    [
        (COUNT.format("TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 1 HOUR)"), HOUR + MINUTE + DAY),
        (COUNT.format("TUMBLING (SIZE 1 MINUTE)"), 2 * DAY),
        (COUNT.format("HOPPING (SIZE 2 DAYS, ADVANCE BY 1 DAY)"), 3 * DAY),
        (COUNT.format("TUMBLING (SIZE 1 MINUTE, RETENTION 2 DAYS, GRACE PERIOD 1 HOUR)"), 2 * DAY),
        (COUNT.format("SESSION (1 HOUR, GRACE PERIOD 1 MINUTE)"), HOUR + MINUTE + DAY),
        (COUNT.format("TUMBLING (SIZE 1 MINUTE)") + " EMIT FINAL", MINUTE + DAY),
        ("SELECT * FROM w", HOUR),
        ("SELECT * FROM m", HOUR),
        ("SELECT * FROM made WHERE n > 1", 2 * DAY),
        ("SELECT w.id AS id, v.n AS n FROM w JOIN v ON w.id = v.id", DAY + MINUTE),
        ("SELECT w.id AS id, name FROM w JOIN people ON w.id = people.id", HOUR),
        ("SELECT w.id AS id, name FROM w JOIN names ON w.id = names.id", HOUR),
        ("SELECT id, SUM(n) AS n FROM w GROUP BY id", None),
        ("SELECT * FROM people", None),
    ],
)
def test_windows_are_retained_as_the_query_says_or_where_they_come_from(query: str, retention: int | None):
    catalog = catalog_of(f"{SOURCES} CREATE TABLE t AS {query};")
    assert window_retention_ms(catalog.table("T"), catalog) == retention


def test_the_windows_of_a_table_over_a_topic_are_retained_as_it_says():
    catalog = catalog_of(SOURCES)
    assert window_retention_ms(catalog.table("W"), catalog) == HOUR
    assert window_retention_ms(catalog.table("PEOPLE"), catalog) is None
