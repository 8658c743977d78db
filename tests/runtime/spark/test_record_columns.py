"""Which plans read the place of a table's records: what they rename on the way to a join does not count."""

import pytest

from holdfast.catalog.fold import apply_plan
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.planner.commands import commands_for
from holdfast.runtime.plan.codec import decode
from holdfast.runtime.plan.steps import Step
from holdfast.runtime.spark.record_columns import reads_records, table_sources
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import statements

SETUP = """
CREATE STREAM s (id STRING KEY, m INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE TABLE t (id STRING PRIMARY KEY, n INT, other STRING) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
CREATE TABLE u (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='u', VALUE_FORMAT='JSON');
"""


def plan_of(text: str) -> Step:
    catalog: Catalog = EMPTY
    for parsed in statements(SETUP + text):
        for command in commands_for(bind(parsed.statement, catalog), text=parsed.text, number=0):
            assert command.plan is not None
            catalog = apply_plan(catalog, command, command.plan)
    (entry,) = catalog.queries.values()
    query = decode(entry.plan).query
    assert query is not None
    return query.physical_plan


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("CREATE STREAM j AS SELECT s.id, m, n FROM s JOIN t ON s.id = t.id;", False),
        ("CREATE STREAM j AS SELECT s.id, m, n, s.ROWOFFSET AS o FROM s JOIN t ON s.id = t.id;", False),
        ("CREATE STREAM j AS SELECT s.id, m, t.ROWOFFSET AS o FROM s JOIN t ON s.id = t.id;", True),
        ("CREATE STREAM j AS SELECT s.id, m FROM s JOIN t ON s.id = t.id WHERE t.ROWPARTITION = 1;", True),
        ("CREATE TABLE j AS SELECT t.id, t.n FROM t LEFT JOIN u ON t.id = u.id;", False),
        ("CREATE TABLE j AS SELECT t.id, u.ROWOFFSET AS o FROM t LEFT JOIN u ON t.id = u.id;", True),
        ("CREATE TABLE j AS SELECT t.id, u.ROWOFFSET AS o FROM t JOIN u ON t.other = u.id;", True),
        ("CREATE TABLE c AS SELECT id, n FROM t WHERE ROWTIME > 1;", False),
        ("CREATE TABLE c AS SELECT id, n + ROWPARTITION AS p FROM t;", True),
        ("CREATE TABLE c AS SELECT n, COUNT(*) AS c FROM t GROUP BY n;", False),
        ("CREATE TABLE c AS SELECT n, SUM(ROWOFFSET) AS c FROM t GROUP BY n;", True),
        ("CREATE TABLE c AS SELECT ROWPARTITION AS p, COUNT(*) AS c FROM t GROUP BY ROWPARTITION;", True),
        ("CREATE TABLE c AS SELECT ROWPARTITION AS p, COUNT(*) AS c FROM s GROUP BY ROWPARTITION;", False),
    ],
)
def test_what_reads_them(text: str, reads: bool) -> None:
    assert reads_records(plan_of(text)) is reads


def test_all_tables_of_a_plan_are_found() -> None:
    top = plan_of("CREATE TABLE j AS SELECT t.id, u.ROWOFFSET AS o FROM t LEFT JOIN u ON t.id = u.id;")
    assert [step.topic_name for step in table_sources(top)] == ["t", "u"]
