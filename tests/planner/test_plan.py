"""Plans, whole, as they are written to the command topic."""

import json
from typing import Any

from holdfast.catalog.fold import apply, fold
from holdfast.catalog.objects import QueryState, TopicSettings
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.planner.commands import commands_for, replan
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import parse, statements

KAFKA = {"format": "KAFKA", "properties": {}}
JSON = {"format": "JSON", "properties": {}}
FORMATS = {"keyFormat": KAFKA, "valueFormat": JSON}
JSON_KEYS = {"keyFormat": JSON, "valueFormat": JSON}

VIEWS = "CREATE STREAM views (id INT KEY, page STRING, took INT) WITH (KAFKA_TOPIC='v', VALUE_FORMAT='JSON')"
VIEWS_SCHEMA = "`ID` INTEGER KEY, `PAGE` STRING, `TOOK` INTEGER"
USERS = "CREATE TABLE users (id STRING PRIMARY KEY, name STRING) WITH (KAFKA_TOPIC='u', VALUE_FORMAT='JSON')"
USERS_SCHEMA = "`ID` STRING KEY, `NAME` STRING"


def catalog_of(*texts: str) -> Catalog:
    catalog = EMPTY
    for text in texts:
        (parsed,) = parse(text)
        catalog = fold(commands_for(bind(parsed.statement, catalog), text=text, number=0), catalog)
    return catalog


CATALOG = catalog_of(VIEWS, USERS)


def plan_of(text: str, *, number: int = 7) -> dict[str, Any]:
    (parsed,) = parse(text)
    (command,) = commands_for(bind(parsed.statement, CATALOG), text=parsed.text, number=number)
    assert command.plan is not None
    return json.loads(command.plan)


def ddl(kind: str, name: str, schema: str, topic: str, **changes: Any) -> dict[str, Any]:
    return {
        "@type": f"create{kind}V1",
        "sourceName": name,
        "schema": schema,
        "timestampColumn": None,
        "topicName": topic,
        "formats": FORMATS,
        "windowInfo": None,
        "orReplace": False,
        "isSource": False,
        **changes,
    }


def step(tag: str, path: str, **rest: Any) -> dict[str, Any]:
    return {"@type": tag, "properties": {"queryContext": path}, **rest}


VIEWS_SOURCE = step(
    "streamSourceV1",
    "KsqlTopic/Source",
    topicName="v",
    formats=FORMATS,
    timestampColumn=None,
    sourceSchema=VIEWS_SCHEMA,
    pseudoColumnVersion=1,
)


def test_a_stream_over_a_topic():
    with_ = "WITH (KAFKA_TOPIC='x', FORMAT='JSON', TIMESTAMP='ts')"
    text = f"CREATE SOURCE STREAM s (ts BIGINT, id INT KEY) {with_}"
    assert plan_of(text) == {
        "@type": "ksqlPlanV1",
        "statementText": text,
        "ddlCommand": ddl(
            "Stream",
            "S",
            "`TS` BIGINT, `ID` INTEGER KEY",
            "x",
            timestampColumn={"column": "TS", "format": None},
            formats={**JSON_KEYS, "keyFeatures": ["UNWRAP_SINGLES"]},
            isSource=True,
        ),
        "queryPlan": None,
    }


def test_filter_and_project():
    text = "CREATE STREAM fast AS SELECT v.id AS k, UCASE(page) p, -took FROM views v WHERE v.took < 5 OR page IS NULL"
    assert plan_of(text) == {
        "@type": "ksqlPlanV1",
        "statementText": text,
        "ddlCommand": ddl("Stream", "FAST", "`K` INTEGER KEY, `P` STRING, `KSQL_COL_0` INTEGER", "FAST"),
        "queryPlan": {
            "sources": ["VIEWS"],
            "sink": "FAST",
            "physicalPlan": step(
                "streamSinkV1",
                "FAST",
                source=step(
                    "streamSelectV1",
                    "Project",
                    source=step(
                        "streamFilterV1",
                        "WhereFilter",
                        source=VIEWS_SOURCE,
                        filterExpression="((TOOK < 5) OR (PAGE IS NULL))",
                    ),
                    keyColumnNames=["K"],
                    selectedKeys=None,
                    selectExpressions=["UCASE(PAGE) AS P", "-TOOK AS KSQL_COL_0"],
                ),
                formats=FORMATS,
                topicName="FAST",
                timestampColumn=None,
            ),
            "queryId": "CSAS_FAST_7",
            "runtimeId": None,
        },
    }


def test_aggregate_by_another_column():
    text = (
        "CREATE TABLE stats WITH (KAFKA_TOPIC='stats') AS SELECT COUNT(*) AS n, page, SUM(took + 1) / COUNT(*) AS mean "
        "FROM views WHERE id > 0 GROUP BY page HAVING COUNT(*) > 1 EMIT CHANGES"
    )
    query = plan_of(text)["queryPlan"]
    assert query["queryId"] == "CTAS_STATS_7"
    assert query["physicalPlan"] == step(
        "tableSinkV1",
        "STATS",
        source=step(
            "tableSelectV1",
            "Aggregate/Project",
            source=step(
                "tableFilterV1",
                "Aggregate/HavingFilter",
                source=step(
                    "streamAggregateV1",
                    "Aggregate/Aggregate",
                    source=step(
                        "streamGroupByV2",
                        "Aggregate/GroupBy",
                        source=step(
                            "streamSelectV1",
                            "Aggregate/Prepare",
                            source=step(
                                "streamFilterV1", "WhereFilter", source=VIEWS_SOURCE, filterExpression="(ID > 0)"
                            ),
                            keyColumnNames=["ID"],
                            selectedKeys=None,
                            selectExpressions=[
                                "ROWTIME AS ROWTIME",
                                "PAGE AS PAGE",
                                "TOOK AS TOOK",
                                "ID AS ID",
                                "(TOOK + 1) AS KSQL_INTERNAL_COL_4",
                            ],
                        ),
                        internalFormats=FORMATS,
                        groupByExpressions=["PAGE"],
                    ),
                    internalFormats=FORMATS,
                    nonAggregateColumns=["ROWTIME", "PAGE", "TOOK", "ID"],
                    aggregationFunctions=[
                        "COUNT(ROWTIME)",
                        "SUM(KSQL_INTERNAL_COL_4)",
                        "COUNT(ROWTIME)",
                        "COUNT(ROWTIME)",
                    ],
                ),
                filterExpression="(KSQL_AGG_VARIABLE_3 > 1)",
            ),
            keyColumnNames=["PAGE"],
            selectExpressions=[
                "KSQL_AGG_VARIABLE_0 AS N",
                "(KSQL_AGG_VARIABLE_1 / KSQL_AGG_VARIABLE_2) AS MEAN",
            ],
            internalFormats=FORMATS,
        ),
        formats=FORMATS,
        topicName="stats",
        timestampColumn=None,
    )


def test_grouping_by_the_key_moves_nothing():
    text = "CREATE TABLE t AS SELECT id, MAX(took) AS m FROM views GROUP BY id"
    aggregate = plan_of(text)["queryPlan"]["physicalPlan"]["source"]["source"]
    assert aggregate["source"]["@type"] == "streamGroupByKeyV1"
    assert "groupByExpressions" not in aggregate["source"]


def test_a_key_of_several_columns_goes_through_the_query_as_json():
    text = "CREATE TABLE t WITH (KEY_FORMAT='JSON') AS SELECT page, id, COUNT(*) AS n FROM views GROUP BY id, page"
    plan = plan_of(text)
    assert plan["ddlCommand"]["schema"] == "`ID` INTEGER KEY, `PAGE` STRING KEY, `N` BIGINT"
    project = plan["queryPlan"]["physicalPlan"]["source"]
    assert project["keyColumnNames"] == ["ID", "PAGE"]
    assert project["internalFormats"] == JSON_KEYS


def test_a_table_from_a_table():
    text = "CREATE TABLE bobs AS SELECT * FROM users WHERE name = 'Bob'"
    assert plan_of(text)["queryPlan"]["physicalPlan"] == step(
        "tableSinkV1",
        "BOBS",
        source=step(
            "tableSelectV1",
            "Project",
            source=step(
                "tableFilterV1",
                "WhereFilter",
                source=step(
                    "tableSourceV2",
                    "KsqlTopic/Source",
                    topicName="u",
                    formats=FORMATS,
                    timestampColumn=None,
                    sourceSchema=USERS_SCHEMA,
                    pseudoColumnVersion=1,
                    stateStoreFormats=FORMATS,
                ),
                filterExpression="(NAME = 'Bob')",
            ),
            keyColumnNames=["ID"],
            selectExpressions=["NAME AS NAME"],
            internalFormats=FORMATS,
        ),
        formats=FORMATS,
        topicName="BOBS",
        timestampColumn=None,
    )


def test_drop():
    assert plan_of("DROP TABLE users") == {
        "@type": "ksqlPlanV1",
        "statementText": "DROP TABLE users",
        "ddlCommand": {"@type": "dropSourceV1", "sourceName": "USERS"},
        "queryPlan": None,
    }


def test_commands_carry_what_replay_needs():
    settings = "PARTITIONS=3, REPLICAS=2, CLEANUP_POLICY='compact'"
    (parsed,) = parse(f"CREATE STREAM s WITH ({settings}) AS SELECT * FROM views")
    (command,) = commands_for(
        bind(parsed.statement, CATALOG), text=parsed.text, number=9, properties={"auto.offset.reset": "latest"}
    )
    assert str(command.id) == "stream/S/create"
    catalog = apply(CATALOG, command)
    assert catalog.stream("S").topic_settings == TopicSettings(3, 2, cleanup_policy="compact")
    assert catalog.queries["CSAS_S_9"].properties["auto.offset.reset"] == "latest"
    assert catalog.queries["CSAS_S_9"].plan == command.plan


def test_terminate_is_a_command_for_each_query():
    script = "CREATE STREAM a AS SELECT * FROM views; CREATE STREAM b AS SELECT * FROM views;"
    catalog = CATALOG
    for number, parsed in enumerate(statements(script)):
        catalog = fold(commands_for(bind(parsed.statement, catalog), text=parsed.text, number=number), catalog)
    (parsed,) = parse("TERMINATE ALL")
    commands = commands_for(bind(parsed.statement, catalog), text=parsed.text, number=2)
    assert [str(command.id) for command in commands] == ["terminate/CSAS_A_0/execute", "terminate/CSAS_B_1/execute"]
    assert not fold(commands, catalog).queries
    (parsed,) = parse("PAUSE ALL")
    paused = commands_for(bind(parsed.statement, catalog), text=parsed.text, number=2)
    assert [str(command.id) for command in paused] == ["pause/CSAS_A_0/execute", "pause/CSAS_B_1/execute"]
    (parsed,) = parse("RESUME csas_a_0")
    (resumed,) = commands_for(bind(parsed.statement, catalog), text=parsed.text, number=4)
    states = {id_: entry.state for id_, entry in fold([*paused, resumed], catalog).queries.items()}
    assert states == {"CSAS_A_0": QueryState.RUNNING, "CSAS_B_1": QueryState.PAUSED}


def test_a_command_without_a_plan_is_planned_as_it_was_written():
    (parsed,) = parse("CREATE STREAM s AS SELECT * FROM views")
    (command,) = commands_for(bind(parsed.statement, CATALOG), text=parsed.text, number=5)
    bare = type(command)(id=command.id, statement=command.statement, offset=5)
    assert apply(CATALOG, bare, replan=replan) == apply(CATALOG, command.written_at(5))
