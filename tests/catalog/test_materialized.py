"""Materialized views in the catalog: made, altered and dropped by commands, as their records say."""

from holdfast.catalog.commands import CommandId, decode_command, encode_command
from holdfast.catalog.fold import fold
from holdfast.catalog.objects import MaterializedView, QueryState
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.planner.commands import commands_for
from holdfast.runtime.plan import json_text
from holdfast.runtime.plan.codec import decode
from holdfast.runtime.plan.steps import CollectionSource, TableKeep, walk
from holdfast.runtime.plan.windows import WindowType
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import parse

SETUP = """
CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE MATERIALIZED VIEW v WITH (RETAIN HISTORY FOR '1h') AS SELECT id, SUM(n) AS n FROM s GROUP BY id;
CREATE MATERIALIZED VIEW w AS SELECT id, COUNT(*) AS c FROM s WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY id;
CREATE TABLE over WITH (KAFKA_TOPIC='over') AS SELECT id, n + 1 AS m FROM v;
"""


def run(text: str, catalog: Catalog = EMPTY) -> Catalog:
    """Through the records of the command topic."""
    for parsed in parse(text):
        bound = bind(parsed.statement, catalog)
        for command in commands_for(bound, text=parsed.text, number=len(catalog.objects)):
            catalog = fold([decode_command(*encode_command(command))], catalog)
    return catalog


def test_what_a_command_makes() -> None:
    catalog = run(SETUP)
    view, windowed = catalog.materialized_views
    assert (view.name, view.KIND, view.topic, view.retain_ms) == ("V", "materialized view", None, 3_600_000)
    assert str(view.schema) == "`ID` STRING KEY, `N` INTEGER"
    assert view.statement.startswith("CREATE MATERIALIZED VIEW v")
    assert windowed.window is not None
    assert windowed.window.type is WindowType.TUMBLING
    assert set(catalog.topics) == {"s", "over"}
    assert [query.id for query in catalog.writers("V")] == [view.query]
    assert catalog.origin(catalog.object("OVER")) is view


def test_the_plan_has_no_topic_and_names_what_it_reads() -> None:
    catalog = run(SETUP)
    plan = decode(catalog.writers("V")[0].plan).query
    assert plan is not None
    assert isinstance(plan.physical_plan, TableKeep)
    assert plan.query_id == "CMVAS_V_1"
    reader = decode(catalog.writers("OVER")[0].plan).query
    assert reader is not None
    (source,) = (step for step in walk(reader.physical_plan) if isinstance(step, CollectionSource))
    assert (source.source_name, source.source_schema) == ("V", "`ID` STRING KEY, `N` INTEGER")
    assert b'"topicName":"over"' in catalog.writers("OVER")[0].plan.replace(b" ", b"")


def test_how_long_it_keeps_its_history_is_altered() -> None:
    catalog = run("ALTER MATERIALIZED VIEW v SET (RETAIN HISTORY FOR '5 minutes');", run(SETUP))
    assert catalog.table("V").retain_ms == 300_000
    catalog = run("ALTER MATERIALIZED VIEW v RESET (RETAIN HISTORY);", catalog)
    assert catalog.table("V").retain_ms is None
    assert isinstance(catalog.table("V"), MaterializedView)


def test_a_replaced_one_keeps_its_place_and_its_query() -> None:
    before = run("CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');")
    before = run("CREATE MATERIALIZED VIEW m AS SELECT id, n FROM t;", before)
    after = run("CREATE OR REPLACE MATERIALIZED VIEW m AS SELECT id, n, n * 2 AS d FROM t WHERE n > 1;", before)
    assert list(after.objects) == list(before.objects)
    assert list(after.queries) == list(before.queries)
    assert [column.name for column in after.table("M").schema.columns] == ["ID", "N", "D"]


def test_a_dropped_one_takes_its_query_and_holds_along() -> None:
    catalog = run("TERMINATE CTAS_OVER_3; DROP TABLE over; CREATE HOLD h ON v;", run(SETUP))
    catalog = run("DROP MATERIALIZED VIEW v CASCADE;", catalog)
    assert ("V" in catalog.objects, dict(catalog.holds), catalog.writers("V")) == (False, {}, ())


def test_a_plan_of_a_later_release_leaves_the_name_taken() -> None:
    (parsed,) = parse("CREATE MATERIALIZED VIEW v AS SELECT id, SUM(n) AS n FROM s GROUP BY id;")
    catalog = run(SETUP.split("CREATE MATERIALIZED", maxsplit=1)[0])
    (command,) = commands_for(bind(parsed.statement, catalog), text=parsed.text, number=9)
    key, value = encode_command(command)
    assert command.id == CommandId("materialized_view", "V", "create")
    document = json_text.read(value)
    assert isinstance(document, dict)
    later = json_text.write(document).replace(b"tableKeepV1", b"tableKeepV9")
    catalog = fold([decode_command(key, later)], catalog)
    assert isinstance(catalog.find("V"), MaterializedView)
    (entry,) = catalog.queries.values()
    assert (entry.state, entry.sink) == (QueryState.INCOMPATIBLE, "V")
    assert "tableKeepV9" in (entry.reason or "")
