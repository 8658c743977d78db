"""CREATE OR REPLACE: which plans a query can go on with, and which step forbids it."""

from dataclasses import replace

import pytest

from holdfast.catalog.fold import fold
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.errors import NotSupported
from holdfast.planner.commands import commands_for
from holdfast.planner.upgrade import check_upgrade
from holdfast.runtime.plan.codec import decode
from holdfast.runtime.plan.document import QueryPlan
from holdfast.runtime.plan.steps import ExpressionText
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import statements

SCRIPT = """
CREATE STREAM s (id INT KEY, a STRING, b INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE TABLE t (id INT PRIMARY KEY, x STRING) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
CREATE STREAM p AS SELECT id, a FROM s WHERE b > 1;
CREATE STREAM over_p AS SELECT id, a FROM p;
CREATE TABLE g AS SELECT a, COUNT(*) AS n FROM s GROUP BY a;
CREATE TABLE h AS SELECT a, COUNT(*) AS n FROM s GROUP BY a HAVING COUNT(*) > 1;
CREATE TABLE i AS SELECT id, SUM(b) AS n FROM s GROUP BY id;
CREATE TABLE w AS SELECT a, COUNT(*) AS n FROM s WINDOW TUMBLING (SIZE 1 DAY) GROUP BY a;
CREATE STREAM j AS SELECT s.id AS id, a, x FROM s JOIN t ON s.id = t.id;
CREATE TABLE f AS SELECT id, x FROM t WHERE x <> '';
CREATE STREAM k AS SELECT * FROM s PARTITION BY b;
CREATE STREAM both AS SELECT id, a FROM s;
INSERT INTO both SELECT id, a FROM p;
"""


def catalog_of(script: str, catalog: Catalog = EMPTY) -> Catalog:
    for number, parsed in enumerate(statements(script, lambda: catalog.types)):  # noqa: B023
        catalog = fold(commands_for(bind(parsed.statement, catalog), text=parsed.text, number=number), catalog)
    return catalog


CATALOG = catalog_of(SCRIPT)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE OR REPLACE STREAM p AS SELECT id, a, b * 2 AS c, ROWTIME AS came FROM s WHERE b > 5 AND a <> 'x'",
        "CREATE OR REPLACE STREAM p AS SELECT id, a FROM s",
        "CREATE OR REPLACE STREAM p AS SELECT id, UCASE(a) AS a FROM s",
        "CREATE OR REPLACE TABLE g AS SELECT a, COUNT(*) AS n, LEN(a) AS l FROM s WHERE a <> 'x' GROUP BY a",
        "CREATE OR REPLACE TABLE g AS SELECT a, COUNT(*) AS n FROM s WHERE b > 1 AND ROWOFFSET > 0 GROUP BY a",
        "CREATE OR REPLACE TABLE h AS SELECT a, COUNT(*) AS n FROM s GROUP BY a HAVING COUNT(*) > 3",
        "CREATE OR REPLACE TABLE h AS SELECT a, COUNT(*) AS n, UCASE(a) AS u FROM s WHERE b > 1 GROUP BY a "
        "HAVING COUNT(*) > 3",
        "CREATE OR REPLACE TABLE i AS SELECT id, SUM(b) AS n FROM s WHERE a <> 'x' AND id > 2 GROUP BY id",
        "CREATE OR REPLACE TABLE f AS SELECT id, x, LEN(x) AS l FROM t",
    ],
)
def test_filters_and_projections_may_change(text):
    name = text.split()[4].upper()
    after = catalog_of(text + ";", CATALOG)
    before = CATALOG.writers(name)[0]
    (query,) = after.writers(name)
    assert query.id == before.id
    assert query.plan != before.plan
    # It stays before those that read it.
    assert list(after.queries) == list(CATALOG.queries)
    assert list(after.objects) == list(CATALOG.objects)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("CREATE OR REPLACE STREAM p AS SELECT id, b FROM s", "These columns would be changed, missing or moved: A."),
        ("CREATE OR REPLACE STREAM p AS SELECT id, b, a FROM s",
         "These columns would be changed, missing or moved: A."),
        ("CREATE OR REPLACE STREAM p WITH (KAFKA_TOPIC='q') AS SELECT id, a FROM s",
         "Its topic would change from P to q."),
        ("CREATE OR REPLACE STREAM p WITH (VALUE_FORMAT='DELIMITED') AS SELECT id, a FROM s",
         "Its value format would change from JSON to DELIMITED."),
        ("CREATE OR REPLACE TABLE w AS SELECT a, COUNT(*) AS n FROM s WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY a "
         "EMIT FINAL",
         "Its window would change from TUMBLING of 86400 seconds to TUMBLING of 3600 seconds, EMIT FINAL."),
        ("CREATE OR REPLACE TABLE w AS SELECT a, COUNT(*) AS n FROM s GROUP BY a",
         "Its window would change from TUMBLING of 86400 seconds to none."),
        ("CREATE OR REPLACE STREAM p WITH (WRAP_SINGLE_VALUE=FALSE) AS SELECT id, a FROM s",
         "Its wrapping of values would change from none to UNWRAP_SINGLES."),
        ("CREATE OR REPLACE STREAM p AS SELECT b, a FROM s PARTITION BY b",
         "Its key would change from (`ID` INTEGER KEY) to (`B` INTEGER KEY)."),
        ("CREATE OR REPLACE TABLE p AS SELECT a, COUNT(*) AS n FROM s GROUP BY a", "It would become a table."),
        ("CREATE OR REPLACE TABLE g AS SELECT a, COUNT(*) AS n, SUM(b) AS m FROM s GROUP BY a",
         "The aggregation functions of step streamAggregateV1 (Aggregate/Aggregate) would change."),
        ("CREATE OR REPLACE TABLE g AS SELECT UCASE(a) AS a, COUNT(*) AS n FROM s GROUP BY UCASE(a)",
         "The group by expressions of step streamGroupByV2 (Aggregate/GroupBy) would change."),
        ("CREATE OR REPLACE TABLE w AS SELECT a, COUNT(*) AS n FROM s WINDOW TUMBLING (SIZE 1 DAY) GROUP BY a",
         "Step streamWindowedAggregateV1 (Aggregate/Aggregate) cannot be changed in place."),
        ("CREATE OR REPLACE STREAM j AS SELECT s.id AS id, a, x FROM s JOIN t ON s.id = t.id WHERE b > 1",
         "Step streamTableJoinV1 (Join) cannot be changed in place."),
        ("CREATE OR REPLACE STREAM both AS SELECT id, a FROM s WHERE b > 1",
         "Several queries write to it: CSAS_BOTH_11, INSERTQUERY_12."),
        ("CREATE OR REPLACE STREAM s AS SELECT id, a FROM p", "It reads a topic; no query maintains it."),
        ("CREATE OR REPLACE STREAM p (id INT KEY, a STRING) WITH (KAFKA_TOPIC='P', VALUE_FORMAT='JSON')",
         "It is maintained by a query, and would become an object over a topic."),
        ("CREATE OR REPLACE STREAM s (id INT KEY, a STRING) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON')",
         "These columns would be changed, missing or moved: B."),
    ],
)  # fmt: skip
def test_the_step_that_forbids_it_is_named(text, why):
    with pytest.raises(NotSupported) as refused:
        catalog_of(text + ";", CATALOG)
    assert refused.value.detail == why
    assert refused.value.hint
    assert refused.value.position is not None


def test_what_a_terminated_query_kept_cannot_be_replaced():
    (entry,) = CATALOG.writers("OVER_P")
    with pytest.raises(NotSupported) as refused:
        catalog_of("CREATE OR REPLACE STREAM over_p AS SELECT id, a FROM p;", CATALOG.without_query(entry.id))
    assert refused.value.detail == f"Query {entry.id}, which maintained it, was terminated."


def test_a_stream_over_a_topic_gets_columns_at_the_end():
    columns, with_ = "(id INT KEY, a STRING, b INT, c DOUBLE)", "WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON')"
    after = catalog_of(f"CREATE OR REPLACE STREAM s {columns} {with_};", CATALOG)
    assert [column.name for column in after.stream("S").schema.value] == ["A", "B", "C"]
    assert list(after.objects) == list(CATALOG.objects)
    assert after.queries == CATALOG.queries
    # A query over it may then take them up.
    again = catalog_of("CREATE OR REPLACE STREAM p AS SELECT id, a, c FROM s WHERE b > 1;", after)
    assert again.stream("P").schema.value[-1].name == "C"


def test_a_column_that_the_state_has_must_stay():
    """As a plan of another planner may have it: its projection reads a column that is neither key nor aggregate."""
    old, new = (_carrying(text) for text in ("B AS X", "ID AS X"))
    check_upgrade(old, old)
    with pytest.raises(NotSupported) as refused:
        check_upgrade(old, new)
    assert refused.value.detail == (
        "The non aggregate columns of step streamAggregateV1 (Aggregate/Aggregate) would change."
    )


def _carrying(select: str) -> QueryPlan:
    after = catalog_of("CREATE TABLE c AS SELECT a, COUNT(*) AS n FROM s WHERE b > id GROUP BY a;", CATALOG)
    query = decode(after.writers("C")[0].plan).query
    sink = query.physical_plan
    projected = replace(sink.source, select_expressions=(ExpressionText(select),))
    return replace(query, physical_plan=replace(sink, source=projected))
