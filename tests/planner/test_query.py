"""The steps of queries: joins, windows, new keys, rows from arrays; and what is named in them."""

import json
from typing import Any

import pytest

from holdfast.catalog.fold import fold
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.errors import NotSupported
from holdfast.planner.commands import commands_for
from holdfast.sql.bind.statement import bind
from holdfast.sql.plan_text import java_double
from holdfast.sql.syntax.parse import statements

SCRIPT = """
CREATE STREAM orders (id INT KEY, customer STRING, amount INT, tags ARRAY<STRING>)
  WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON');
CREATE STREAM paid (id INT KEY, method STRING) WITH (KAFKA_TOPIC='paid', VALUE_FORMAT='JSON');
CREATE TABLE customers (name STRING PRIMARY KEY, city STRING) WITH (KAFKA_TOPIC='customers', VALUE_FORMAT='JSON');
CREATE TABLE cities (city STRING PRIMARY KEY, land STRING) WITH (KAFKA_TOPIC='cities', FORMAT='JSON');
CREATE STREAM sessions (id INT KEY, n BIGINT)
  WITH (KAFKA_TOPIC='sessions', VALUE_FORMAT='JSON', WINDOW_TYPE='SESSION');
CREATE TABLE hours (id INT PRIMARY KEY, n BIGINT)
  WITH (KAFKA_TOPIC='hours', VALUE_FORMAT='JSON', WINDOW_TYPE='TUMBLING', WINDOW_SIZE='1 HOUR',
        WINDOW_TOPIC='CHANGELOG', RETENTION='2 DAYS');
CREATE TYPE place AS STRUCT<city STRING, zip INT>;
"""


def catalog_of(script: str, catalog: Catalog = EMPTY) -> Catalog:
    for number, parsed in enumerate(statements(script, lambda: catalog.types)):  # noqa: B023
        catalog = fold(commands_for(bind(parsed.statement, catalog), text=parsed.text, number=number), catalog)
    return catalog


CATALOG = catalog_of(SCRIPT)


def plan_of(text: str, catalog: Catalog = CATALOG) -> dict[str, Any]:
    (parsed,) = statements(text, lambda: catalog.types)
    (command,) = commands_for(bind(parsed.statement, catalog), text=text, number=3)
    assert command.plan is not None
    return json.loads(command.plan)


def steps(text: str, catalog: Catalog = CATALOG) -> dict[str, dict[str, Any]]:
    """The steps of a query's plan by their context, from the sink down."""
    found: dict[str, dict[str, Any]] = {}

    def collect(step: dict[str, Any]) -> None:
        found[step["properties"]["queryContext"]] = step
        for name in ("source", "leftSource", "rightSource"):
            if name in step:
                collect(step[name])

    collect(plan_of(text, catalog)["queryPlan"]["physicalPlan"])
    return found


# ---- joins


def test_both_sides_of_a_join_are_renamed_and_a_stream_is_keyed_by_the_condition():
    text = (
        "CREATE STREAM s AS SELECT o.customer, o.amount, c.city FROM orders o JOIN customers c ON o.customer = c.name"
    )
    found = steps(text)
    assert list(found) == [
        "S", "Project", "Join", "PrependAliasLeft", "LeftSourceKeyed", "KafkaTopic_Left/Source", "PrependAliasRight",
        "KafkaTopic_Right/Source",
    ]  # fmt: skip
    assert found["Join"]["@type"] == "streamTableJoinV1"
    assert (found["Join"]["joinType"], found["Join"]["keyColName"]) == ("INNER", "O_CUSTOMER")
    assert found["LeftSourceKeyed"]["keyExpression"] == ["CUSTOMER"]
    assert found["PrependAliasRight"]["selectExpressions"] == [
        "CITY AS C_CITY", "ROWTIME AS C_ROWTIME", "ROWPARTITION AS C_ROWPARTITION", "ROWOFFSET AS C_ROWOFFSET",
        "NAME AS C_NAME",
    ]  # fmt: skip
    assert found["Project"]["keyColumnNames"] == ["CUSTOMER"]
    assert found["Project"]["selectExpressions"] == ["O_AMOUNT AS AMOUNT", "C_CITY AS CITY"]
    assert plan_of(text)["queryPlan"]["sources"] == ["CUSTOMERS", "ORDERS"]


def test_the_key_of_a_join_is_the_side_that_is_selected():
    text = "CREATE STREAM s AS SELECT p.id, o.amount FROM orders o JOIN paid p WITHIN 2 HOURS ON p.id = o.id"
    join = steps(text)["Join"]
    assert join["keyColName"] == "P_ID"
    assert (join["beforeMillis"], join["afterMillis"], join["graceMillis"]) == (7200, 7200, None)


def test_within_has_two_sides_and_a_grace_period():
    text = (
        "CREATE STREAM s AS SELECT o.id, method FROM orders o "
        "LEFT JOIN paid p WITHIN (1 SECOND, 1 DAY) GRACE PERIOD 5 MINUTES ON o.id = p.id"
    )
    join = steps(text)["Join"]
    assert (join["joinType"], join["beforeMillis"], join["afterMillis"], join["graceMillis"]) == ("LEFT", 1, 86400, 300)


def test_a_join_without_a_plain_key_column_gets_one():
    text = "CREATE STREAM s AS SELECT * FROM orders o FULL JOIN paid p WITHIN 1 DAY ON o.id = p.id"
    assert plan_of(text)["ddlCommand"]["schema"].startswith("`ROWKEY` INTEGER KEY, `O_ID` INTEGER, `O_CUSTOMER`")
    text = "CREATE STREAM s AS SELECT rowkey AS k, method FROM orders o JOIN paid p WITHIN 1 DAY ON o.id + 1 = p.id + 0"
    found = steps(text)
    assert found["Join"]["keyColName"] == "ROWKEY"
    assert found["PrependAliasLeft"]["keyColumnNames"] == ["O_KSQL_COL_0"]
    assert found["Project"]["keyColumnNames"] == ["K"]


def test_names_that_clash_are_given_the_alias_and_others_are_not():
    text = (
        "CREATE STREAM s AS SELECT o.id, p.id, amount, p.rowtime FROM orders o JOIN paid p WITHIN 1 DAY ON o.id = p.id"
    )
    assert plan_of(text)["ddlCommand"]["schema"] == (
        "`O_ID` INTEGER KEY, `P_ID` INTEGER, `AMOUNT` INTEGER, `P_ROWTIME` BIGINT"
    )


def test_a_foreign_key_keeps_the_key_of_the_left_table():
    text = "CREATE TABLE t AS SELECT c.name, land FROM customers c JOIN cities t ON c.city = t.city"
    found = steps(text)
    assert found["Join"]["@type"] == "fkTableTableJoinV1"
    assert found["Join"]["leftJoinExpression"] == "C_CITY"
    assert "LeftSourceKeyed" not in found


def test_the_second_join_takes_the_rows_of_the_first():
    text = (
        "CREATE STREAM s AS SELECT o.id, method, c.city FROM orders o JOIN paid p WITHIN 1 DAY ON o.id = p.id "
        "JOIN customers c ON o.customer = c.name"
    )
    with pytest.raises(Exception, match=r"O.CUSTOMER or C.NAME is missing"):
        plan_of(text)
    found = steps(text.replace("o.id, method", "o.customer, o.id, method"))
    assert found["Join"]["leftSource"]["properties"]["queryContext"] == "LeftSourceKeyed"
    assert found["LeftSourceKeyed"]["keyExpression"] == ["O_CUSTOMER"]
    assert found["LeftSourceKeyed"]["source"]["properties"]["queryContext"] == "L_Join"


def test_key_formats_that_differ_are_brought_together():
    text = "CREATE TABLE t AS SELECT * FROM customers c JOIN cities t ON c.name = t.city"
    found = steps(text)
    assert found["Join"]["@type"] == "tableTableJoinV1"
    assert found["RightSourceKeyed"]["@type"] == "tableSelectKeyV1"
    assert found["RightSourceKeyed"]["internalFormats"]["keyFormat"]["format"] == "KAFKA"


def test_windowed_keys_meet_only_keys_of_the_same_windows():
    with pytest.raises(NotSupported, match="ORDERS and SESSIONS cannot be joined"):
        plan_of("CREATE STREAM s AS SELECT * FROM orders o JOIN sessions e WITHIN 1 DAY ON o.id = e.id")


# ---- new keys, rows from arrays


def test_a_star_after_partition_by_has_the_new_key_first_and_the_old_one_last():
    plan = plan_of("CREATE STREAM s AS SELECT * FROM orders PARTITION BY customer")
    assert plan["ddlCommand"]["schema"] == (
        "`CUSTOMER` STRING KEY, `AMOUNT` INTEGER, `TAGS` ARRAY<STRING>, `ID` INTEGER"
    )
    assert steps("CREATE STREAM s AS SELECT * FROM orders PARTITION BY id").keys() == {
        "S",
        "Project",
        "KsqlTopic/Source",
    }


def test_partition_by_an_expression_and_by_nothing():
    text = "CREATE STREAM s AS SELECT UCASE(customer) AS c, amount FROM orders PARTITION BY UCASE(customer)"
    found = steps(text)
    assert found["PartitionBy"]["keyExpression"] == ["UCASE(CUSTOMER)"]
    assert (found["Project"]["keyColumnNames"], found["Project"]["selectExpressions"]) == (["C"], ["AMOUNT AS AMOUNT"])
    schema = plan_of("CREATE STREAM s AS SELECT id, amount FROM orders PARTITION BY NULL")["ddlCommand"]["schema"]
    assert schema == "`ID` INTEGER, `AMOUNT` INTEGER"


def test_table_functions_are_a_step_before_the_projection():
    found = steps("CREATE STREAM s AS SELECT id, UCASE(EXPLODE(tags)) AS tag, EXPLODE(ARRAY[1, 2]) AS n FROM orders")
    assert found["FlatMap"]["tableFunctions"] == ["EXPLODE(TAGS)", "EXPLODE(ARRAY[1, 2])"]
    assert found["Project"]["selectExpressions"] == ["UCASE(KSQL_SYNTH_0) AS TAG", "KSQL_SYNTH_1 AS N"]


# ---- windows


@pytest.mark.parametrize(
    ("window", "info"),
    [
        ("TUMBLING (SIZE 10 SECONDS)", {"type": "TUMBLING", "size": 10, "emitStrategy": "CHANGES"}),
        ("HOPPING (SIZE 1 MINUTE, ADVANCE BY 5 SECONDS)", {"type": "HOPPING", "size": 60, "emitStrategy": "CHANGES"}),
        ("SESSION (1 MINUTE)", {"type": "SESSION", "size": None, "emitStrategy": "CHANGES"}),
    ],
)
def test_a_windowed_aggregate_makes_a_windowed_table(window, info):
    text = f"CREATE TABLE t AS SELECT id, COUNT(*) n, windowstart AS begun FROM orders WINDOW {window} GROUP BY id"
    found = steps(text)
    assert found["Aggregate/Aggregate"]["@type"] == "streamWindowedAggregateV1"
    assert found["Aggregate/Aggregate"]["nonAggregateColumns"] == ["ID", "ROWTIME"]
    assert found["Aggregate/Project"]["selectExpressions"] == ["KSQL_AGG_VARIABLE_0 AS N", "WINDOWSTART AS BEGUN"]
    assert plan_of(text)["ddlCommand"]["windowInfo"] == info


def test_emit_final_closes_a_window_without_grace_unless_one_is_given():
    text = "CREATE TABLE t AS SELECT id, COUNT(*) n FROM orders WINDOW TUMBLING (SIZE 1 DAY{}) GROUP BY id EMIT FINAL"
    plain = steps(text.format(""))["Aggregate/Aggregate"]["windowExpression"]
    assert (plain["emitStrategy"], plain["gracePeriod"]) == ("FINAL", {"value": 0, "timeUnit": "MILLISECONDS"})
    given = steps(text.format(", GRACE PERIOD 2 HOURS"))["Aggregate/Aggregate"]["windowExpression"]
    assert given["gracePeriod"] == {"value": 2, "timeUnit": "HOURS"}


def test_a_windowed_stream_stays_windowed():
    plan = plan_of("CREATE STREAM s AS SELECT id, n, windowend AS ended FROM sessions")
    assert plan["ddlCommand"]["windowInfo"]["type"] == "SESSION"
    source = plan["queryPlan"]["physicalPlan"]["source"]["source"]
    assert source["@type"] == "windowedStreamSourceV1"


def test_a_windowed_table_is_read_with_its_layout_and_retention():
    found = steps("CREATE TABLE t AS SELECT id, n * 2 AS n FROM hours")
    source = found["KsqlTopic/Source"]
    assert source["@type"] == "windowStoreSourceV1"
    assert source["windowInfo"] == {"type": "TUMBLING", "size": 3600.0, "emitStrategy": "CHANGES"}
    assert (source["windowTopic"], source["retention"]) == ("CHANGELOG", 172800.0)
    command = plan_of("CREATE TABLE t AS SELECT id, n * 2 AS n FROM hours")["ddlCommand"]
    assert (command["@type"], command["windowInfo"]) == ("createTableV1", source["windowInfo"])


def test_the_windows_of_a_query_are_read_with_the_source_of_ksqldb():
    catalog = catalog_of(
        "CREATE TABLE c AS SELECT id, COUNT(*) AS n FROM orders WINDOW SESSION (1 HOUR) GROUP BY id;", CATALOG
    )
    found = steps("CREATE TABLE t AS SELECT * FROM c", catalog)
    assert found["KsqlTopic/Source"]["@type"] == "windowedTableSourceV1"


def test_a_table_is_grouped_by_steps_that_can_take_back():
    found = steps("CREATE TABLE t AS SELECT city, COUNT(*) n FROM customers GROUP BY city")
    assert [found[f"Aggregate/{name}"]["@type"] for name in ("Aggregate", "GroupBy", "Prepare")] == [
        "tableAggregateV1",
        "tableGroupByV2",
        "tableSelectV1",
    ]


# ---- other statements


def test_insert_into_select_is_a_query_without_an_object_of_its_own():
    catalog = catalog_of("CREATE STREAM both AS SELECT id, amount FROM orders;", CATALOG)
    (parsed,) = statements("INSERT INTO both SELECT id, LEN(method) AS amount FROM paid")
    (command,) = commands_for(bind(parsed.statement, catalog), text="", number=8)
    plan = json.loads(command.plan or b"")
    assert (str(command.id), plan["ddlCommand"]) == ("stream/BOTH/insert", None)
    assert (plan["queryPlan"]["queryId"], plan["queryPlan"]["sink"]) == ("INSERTQUERY_8", "BOTH")
    assert [q.id for q in fold([command], catalog).writers("BOTH")] == ["CSAS_BOTH_0", "INSERTQUERY_8"]


def test_a_named_type_is_what_it_stands_for():
    plan = plan_of("CREATE STREAM s (id INT KEY, at_ place) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON')")
    assert plan["ddlCommand"]["schema"] == "`ID` INTEGER KEY, `AT_` STRUCT<`CITY` STRING, `ZIP` INTEGER>"
    after = catalog_of("DROP TYPE place;", CATALOG)
    assert (list(CATALOG.types), list(after.types)) == (["PLACE"], [])


def test_altering_adds_columns():
    altered = catalog_of("ALTER STREAM paid ADD COLUMN at_ BIGINT, ADD note STRING;", CATALOG).stream("PAID")
    assert str(altered.schema) == "`ID` INTEGER KEY, `METHOD` STRING, `AT_` BIGINT, `NOTE` STRING"


def test_how_long_a_table_keeps_its_history_is_in_the_command():
    create = "CREATE TABLE kept (id INT PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='kept', VALUE_FORMAT='JSON', {});"
    for written in ("RETAIN HISTORY = FOR '1h'", "RETAIN HISTORY FOR '60 minutes'", "RETAIN_HISTORY = '1h'"):
        assert catalog_of(create.format(written), CATALOG).table("KEPT").retain_ms == 3_600_000
    kept = catalog_of(create.format("RETAIN HISTORY = FOR '1h'"), CATALOG)
    longer = catalog_of("ALTER TABLE kept SET (RETAIN HISTORY = FOR '2 days');", kept)
    assert longer.table("KEPT").retain_ms == 172_800_000
    assert longer.table("KEPT").schema == kept.table("KEPT").schema
    assert catalog_of("ALTER TABLE kept RESET (RETAIN HISTORY);", longer).table("KEPT").retain_ms is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (4.9e-324, "4.9E-324"), (1.7976931348623157e308, "1.7976931348623157E308"), (0.0, "0.0"), (1e7, "1.0E7"),
        (9999999.0, "9999999.0"), (0.001, "0.001"), (0.00099, "9.9E-4"), (-2.5e-10, "-2.5E-10"), (100.0, "100.0"),
    ],
)  # fmt: skip
def test_doubles_are_written_as_java_does(value, text):
    assert java_double(value) == text
