"""The whole text that people see, for every step and command."""

from datetime import timedelta
from textwrap import dedent, indent

import pytest

from holdfast.explain.text import explain
from holdfast.names import ObjectName, QueryId, TopicName
from holdfast.runtime.plan import ddl
from holdfast.runtime.plan.document import Plan, QueryPlan
from holdfast.runtime.plan.formats import (
    FormatInfo,
    FormatProperties,
    Formats,
    SerdeFeature,
    SerdeOption,
    TimestampColumn,
)
from holdfast.runtime.plan.steps import (
    STEP_TYPES,
    CollectionSource,
    ExpressionText,
    FkTableTableJoin,
    JoinType,
    RefinementInfo,
    SchemaText,
    Step,
    StepProperties,
    StreamAggregate,
    StreamFilter,
    StreamFlatMap,
    StreamGroupBy,
    StreamGroupByKey,
    StreamGroupByV1,
    StreamSelect,
    StreamSelectKey,
    StreamSelectKeyV1,
    StreamSink,
    StreamSource,
    StreamStreamJoin,
    StreamTableJoin,
    StreamWindowedAggregate,
    TableAggregate,
    TableFilter,
    TableGroupBy,
    TableGroupByV1,
    TableIndex,
    TableKeep,
    TableSelect,
    TableSelectKey,
    TableSink,
    TableSource,
    TableSourceV1,
    TableSuppress,
    TableTableJoin,
    WindowedStreamSource,
    WindowedTableSource,
    WindowStoreSource,
)
from holdfast.runtime.plan.windows import (
    Duration,
    HoppingWindow,
    OutputRefinement,
    SessionWindow,
    TimeUnit,
    TumblingWindow,
    WindowInfo,
    WindowText,
    WindowTime,
    WindowTopic,
    WindowType,
)

HERE = StepProperties(query_context="Here")
KAFKA = FormatInfo(format="KAFKA")
JSON = FormatInfo(format="JSON", properties=FormatProperties())
PIPED = FormatInfo(format="DELIMITED", properties=FormatProperties(delimiter="|"))
FORMATS = Formats(key_format=KAFKA, value_format=JSON)
SCHEMA = SchemaText("`ID` INTEGER KEY, `V` STRING")
TOPIC = TopicName("orders")
SECOND = Duration.of(timedelta(seconds=1))


def texts(*expressions: str) -> tuple[ExpressionText, ...]:
    return tuple(map(ExpressionText, expressions))


def seconds(value: int) -> WindowTime:
    return WindowTime(value=value, time_unit=TimeUnit.SECONDS)


STREAM = StreamSource(
    properties=StepProperties(query_context="Left"), topic_name=TOPIC, formats=FORMATS, source_schema=SCHEMA
)
TABLE = TableSourceV1(
    properties=StepProperties(query_context="Right"),
    topic_name=TopicName("users"),
    formats=FORMATS,
    source_schema=SCHEMA,
)

STREAM_TEXT = """\
->  Stream Source on topic orders  (Left)
      Schema: `ID` INTEGER KEY, `V` STRING
      Formats: key KAFKA, value JSON
"""
TABLE_TEXT = """\
->  Table Source V1 on topic users  (Right)
      Schema: `ID` INTEGER KEY, `V` STRING
      Formats: key KAFKA, value JSON
"""

LEAVES: list[tuple[Step, str]] = [
    (STREAM, STREAM_TEXT),
    (
        WindowedStreamSource(
            properties=HERE,
            topic_name=TOPIC,
            formats=FORMATS,
            window_info=WindowInfo(
                type=WindowType.HOPPING, size=Duration.of(timedelta(milliseconds=1500)), emit_strategy=None
            ),
            timestamp_column=TimestampColumn(column="Ts", format="yyyy-MM-dd'T'HH"),
            source_schema=SCHEMA,
            pseudo_column_version=1,
        ),
        """\
        ->  Windowed Stream Source on topic orders  (Here)
              Schema: `ID` INTEGER KEY, `V` STRING
              Formats: key KAFKA, value JSON
              Window: HOPPING (SIZE 1.5 s)
              Timestamp: `Ts` as 'yyyy-MM-dd''T''HH'
              Pseudo Columns: version 1
        """,
    ),
    (
        WindowedTableSource(
            properties=HERE,
            topic_name=TOPIC,
            formats=FORMATS,
            window_info=WindowInfo(type=WindowType.SESSION),
            source_schema=SCHEMA,
        ),
        """\
        ->  Windowed Table Source on topic orders  (Here)
              Schema: `ID` INTEGER KEY, `V` STRING
              Formats: key KAFKA, value JSON
              Window: SESSION
        """,
    ),
    (
        WindowStoreSource(
            properties=HERE,
            topic_name=TOPIC,
            formats=FORMATS,
            window_info=WindowInfo(type=WindowType.TUMBLING, size=SECOND),
            window_topic=WindowTopic.CHANGELOG,
            retention=Duration.of(timedelta(minutes=2)),
            source_schema=SCHEMA,
        ),
        """\
        ->  Window Store Source on topic orders  (Here)
              Schema: `ID` INTEGER KEY, `V` STRING
              Formats: key KAFKA, value JSON
              Window: TUMBLING (SIZE 1 s)
              Window Topic: CHANGELOG
              Retention: 120 s
        """,
    ),
    (
        TableSource(
            properties=HERE,
            topic_name=TOPIC,
            formats=Formats(
                key_format=PIPED, value_format=JSON, key_features=(), value_features=(SerdeFeature.WRAP_SINGLES,)
            ),
            timestamp_column=TimestampColumn(column="TS"),
            source_schema=SCHEMA,
            pseudo_column_version=1,
            state_store_formats=FORMATS,
        ),
        """\
        ->  Table Source on topic orders  (Here)
              Schema: `ID` INTEGER KEY, `V` STRING
              Formats: key DELIMITED (delimiter '|'), value JSON (wrap singles)
              Timestamp: TS
              Pseudo Columns: version 1
              Stored As: key KAFKA, value JSON
        """,
    ),
    (
        TableSourceV1(
            properties=HERE,
            topic_name=TOPIC,
            formats=Formats(key_format=KAFKA, value_format=PIPED, options=(SerdeOption.UNWRAP_SINGLE_VALUES,)),
            source_schema=SCHEMA,
            force_changelog=True,
        ),
        """\
        ->  Table Source V1 on topic orders  (Here)
              Schema: `ID` INTEGER KEY, `V` STRING
              Formats: key KAFKA, value DELIMITED (unwrap single values, delimiter '|')
              Stored From: private changelog
        """,
    ),
]

ONE_SOURCE: list[tuple[Step, str]] = [
    (
        StreamFilter(properties=HERE, source=STREAM, filter_expression=ExpressionText("(V LIKE '%a%')")),
        """\
        ->  Stream Filter  (Here)
              Filter: (V LIKE '%a%')
        """,
    ),
    (
        TableFilter(properties=HERE, source=STREAM, filter_expression=ExpressionText("(V > 1)")),
        """\
        ->  Table Filter  (Here)
              Filter: (V > 1)
        """,
    ),
    (
        StreamSelect(
            properties=HERE,
            source=STREAM,
            key_column_names=("ID", "lower"),
            selected_keys=("ID",),
            select_expressions=texts("V AS V", "(V + 1) AS W"),
        ),
        """\
        ->  Stream Select  (Here)
              Key Columns: ID, `lower`
              Selected Keys: ID
              Output: V AS V, (V + 1) AS W
        """,
    ),
    (
        TableSelect(
            properties=HERE,
            source=STREAM,
            key_column_names=(),
            select_expressions=texts("V AS V"),
            internal_formats=FORMATS,
        ),
        """\
        ->  Table Select  (Here)
              Key Columns: none
              Output: V AS V
              Stored As: key KAFKA, value JSON
        """,
    ),
    (
        StreamSelectKey(properties=HERE, source=STREAM, key_expression=texts("V", "ID")),
        """\
        ->  Stream Select Key  (Here)
              Key: V, ID
        """,
    ),
    (
        StreamSelectKeyV1(properties=HERE, source=STREAM, key_expression=ExpressionText("V")),
        """\
        ->  Stream Select Key V1  (Here)
              Key: V
        """,
    ),
    (
        TableSelectKey(properties=HERE, source=STREAM, internal_formats=FORMATS, key_expression=ExpressionText("V")),
        """\
        ->  Table Select Key  (Here)
              Key: V
              Internal Formats: key KAFKA, value JSON
        """,
    ),
    (
        StreamFlatMap(properties=HERE, source=STREAM, table_functions=texts("EXPLODE(A)", "EXPLODE(B)")),
        """\
        ->  Stream Flat Map  (Here)
              Table Functions: EXPLODE(A), EXPLODE(B)
        """,
    ),
    (
        TableIndex(properties=HERE, source=STREAM, index_expressions=texts("UCASE(V)", "ID")),
        """\
        ->  Table Index  (Here)
              Indexed By: UCASE(V), ID
        """,
    ),
    (
        StreamGroupByKey(properties=HERE, source=STREAM, internal_formats=FORMATS),
        """\
        ->  Stream Group By Key  (Here)
              Internal Formats: key KAFKA, value JSON
        """,
    ),
    *(
        (
            group(properties=HERE, source=STREAM, internal_formats=FORMATS, group_by_expressions=texts("V", "ID")),
            f"""\
            ->  {title}  (Here)
                  Group Key: V, ID
                  Internal Formats: key KAFKA, value JSON
            """,
        )
        for group, title in [
            (StreamGroupBy, "Stream Group By"),
            (StreamGroupByV1, "Stream Group By V1"),
            (TableGroupBy, "Table Group By"),
            (TableGroupByV1, "Table Group By V1"),
        ]
    ),
    (
        StreamAggregate(
            properties=HERE,
            source=STREAM,
            internal_formats=FORMATS,
            non_aggregate_columns=("ID", "V"),
            aggregation_functions=texts("SUM(V)", "COUNT(V)"),
        ),
        """\
        ->  Stream Aggregate  (Here)
              Aggregates: SUM(V), COUNT(V)
              Carried Columns: ID, V
              Internal Formats: key KAFKA, value JSON
        """,
    ),
    (
        TableAggregate(
            properties=HERE,
            source=STREAM,
            internal_formats=FORMATS,
            non_aggregate_columns=(),
            aggregation_functions=texts("SUM(V)"),
        ),
        """\
        ->  Table Aggregate  (Here)
              Aggregates: SUM(V)
              Internal Formats: key KAFKA, value JSON
        """,
    ),
    *(
        (
            StreamWindowedAggregate(
                properties=HERE,
                source=STREAM,
                internal_formats=FORMATS,
                non_aggregate_columns=("ID",),
                aggregation_functions=texts("SUM(V)"),
                window_expression=window,
            ),
            f"""\
            ->  Stream Windowed Aggregate  (Here)
                  Window: {text}
                  Aggregates: SUM(V)
                  Carried Columns: ID
                  Internal Formats: key KAFKA, value JSON
            """,
        )
        for window, text in [
            (
                WindowText(" HOPPING ( SIZE 30 SECONDS , ADVANCE BY 10 SECONDS ) "),
                "HOPPING (SIZE 30 SECONDS, ADVANCE BY 10 SECONDS)",
            ),
            (TumblingWindow(size=seconds(30), retention=None), "TUMBLING (SIZE 30 SECONDS)"),
            (
                HoppingWindow(size=seconds(30), advance_by=seconds(10), retention=seconds(90)),
                "HOPPING (SIZE 30 SECONDS, ADVANCE BY 10 SECONDS, RETENTION 90 SECONDS)",
            ),
            (
                SessionWindow(gap=seconds(5), grace_period=seconds(1), emit_strategy=OutputRefinement.FINAL),
                "SESSION (5 SECONDS, GRACE PERIOD 1 SECONDS, EMIT FINAL)",
            ),
        ]
    ),
    (
        TableSuppress(
            properties=HERE,
            source=STREAM,
            refinement_info=RefinementInfo(output_refinement=OutputRefinement.FINAL),
            internal_formats=FORMATS,
        ),
        """\
        ->  Table Suppress  (Here)
              Emit: FINAL
              Internal Formats: key KAFKA, value JSON
        """,
    ),
]

TWO_SOURCES: list[tuple[Step, str]] = [
    (
        StreamStreamJoin(
            properties=HERE,
            join_type=JoinType.OUTER,
            left_internal_formats=FORMATS,
            right_internal_formats=Formats(
                key_format=JSON, value_format=JSON, key_features=(SerdeFeature.UNWRAP_SINGLES,)
            ),
            left_source=STREAM,
            right_source=TABLE,
            before=SECOND,
            after=Duration.of(timedelta(minutes=2)),
            grace=Duration.of(timedelta(milliseconds=2)),
            key_column_name="ID",
        ),
        """\
        ->  Outer Stream Stream Join  (Here)
              Key Column: ID
              Within: 1 s before, 120 s after
              Grace Period: 0.002 s
              Left Internal Formats: key KAFKA, value JSON
              Right Internal Formats: key JSON (unwrap singles), value JSON
        """,
    ),
    (
        StreamTableJoin(
            properties=HERE,
            join_type=JoinType.LEFT,
            internal_formats=FORMATS,
            left_source=STREAM,
            right_source=TABLE,
            key_column_name="ID",
        ),
        """\
        ->  Left Stream Table Join  (Here)
              Key Column: ID
              Internal Formats: key KAFKA, value JSON
        """,
    ),
    (
        TableTableJoin(properties=HERE, join_type=JoinType.RIGHT, left_source=STREAM, right_source=TABLE),
        """\
        ->  Right Table Table Join  (Here)
        """,
    ),
    (
        FkTableTableJoin(
            properties=HERE,
            join_type=JoinType.INNER,
            left_join_expression=ExpressionText("(V + 1)"),
            formats=FORMATS,
            left_source=STREAM,
            right_source=TABLE,
        ),
        """\
        ->  Inner Fk Table Table Join  (Here)
              Foreign Key: (V + 1)
              Internal Formats: key KAFKA, value JSON
        """,
    ),
    (
        FkTableTableJoin(
            properties=HERE,
            join_type=JoinType.INNER,
            left_join_column_name="V",
            formats=FORMATS,
            left_source=STREAM,
            right_source=TABLE,
        ),
        """\
        ->  Inner Fk Table Table Join  (Here)
              Foreign Key: V
              Internal Formats: key KAFKA, value JSON
        """,
    ),
]

SINKS = [StreamSink, TableSink]


def query_text(step: Step) -> str:
    query = QueryPlan(
        sources=(ObjectName("ORDERS"), ObjectName("users")), physical_plan=step, query_id=QueryId("CSAS_OUT_0")
    )
    return explain(Plan(statement_text="", query_plan=query))


def expected(*blocks: tuple[int, str], topics: str = "orders") -> str:
    head = f"Query CSAS_OUT_0\n  Reads: ORDERS, `users`\n  Topics Read: {topics}\n"
    tree = "".join(indent(dedent(text), " " * depth) for depth, text in blocks)
    return (head + tree).rstrip("\n")


@pytest.mark.parametrize(("step", "text"), LEAVES)
def test_a_source_step(step: Step, text: str):
    assert query_text(step) == expected((2, text))


@pytest.mark.parametrize(("step", "text"), ONE_SOURCE)
def test_a_step_over_one_source(step: Step, text: str):
    assert query_text(step) == expected((2, text), (8, STREAM_TEXT))


@pytest.mark.parametrize(("step", "text"), TWO_SOURCES)
def test_a_join(step: Step, text: str):
    assert query_text(step) == expected((2, text), (8, STREAM_TEXT), (8, TABLE_TEXT), topics="orders, users")


def test_every_step_is_covered():
    covered = {type(step) for step, _ in (*LEAVES, *ONE_SOURCE, *TWO_SOURCES)} | set(SINKS)
    assert covered | {CollectionSource, TableKeep} == set(STEP_TYPES.values())


def test_a_materialized_view_over_another():
    plan = Plan(
        statement_text="CREATE …",
        ddl_command=ddl.CreateMaterializedView(
            source_name=ObjectName("OUT"), schema=SCHEMA, window_info=None, or_replace=True
        ),
        query_plan=QueryPlan(
            sources=(ObjectName("m v"),),
            sink=ObjectName("OUT"),
            physical_plan=TableKeep(
                properties=HERE,
                source=CollectionSource(
                    properties=HERE,
                    source_name=ObjectName("m v"),
                    window_info=WindowInfo(type=WindowType.SESSION),
                    source_schema=SCHEMA,
                ),
            ),
            query_id=QueryId("Q_0"),
        ),
    )
    assert explain(plan) == dedent(
        """\
        Create or Replace Materialized View OUT
          Schema: `ID` INTEGER KEY, `V` STRING
        Query Q_0
          Reads: `m v`
          Writes: OUT
          ->  Table Keep  (Here)
                ->  Collection Source on `m v`  (Here)
                      Schema: `ID` INTEGER KEY, `V` STRING
                      Window: SESSION"""
    )


@pytest.mark.parametrize(("sink", "kind"), [(StreamSink, "Stream"), (TableSink, "Table")])
def test_a_statement_with_command_and_query(sink: type[StreamSink | TableSink], kind: str):
    command = ddl.CreateStream if sink is StreamSink else ddl.CreateTable
    plan = Plan(
        statement_text="CREATE …",
        ddl_command=command(
            source_name=ObjectName("OUT"), schema=SCHEMA, topic_name=TopicName("out"), formats=FORMATS, or_replace=False
        ),
        query_plan=QueryPlan(
            sources=(ObjectName("ORDERS"),),
            sink=ObjectName("OUT"),
            physical_plan=sink(
                properties=HERE,
                source=StreamFilter(properties=HERE, source=STREAM, filter_expression=ExpressionText("(V > 1)")),
                formats=FORMATS,
                topic_name=TopicName("out"),
                timestamp_column=TimestampColumn(column="TS", format=None),
            ),
            query_id=QueryId("Q_0"),
        ),
    )
    assert explain(plan) == dedent(
        f"""\
        Create {kind} OUT on topic out
          Schema: `ID` INTEGER KEY, `V` STRING
          Formats: key KAFKA, value JSON
        Query Q_0
          Reads: ORDERS
          Writes: OUT
          Topics Read: orders
          Topics Written: out
          ->  {kind} Sink on topic out  (Here)
                Formats: key KAFKA, value JSON
                Timestamp: TS
                ->  Stream Filter  (Here)
                      Filter: (V > 1)
                      ->  Stream Source on topic orders  (Left)
                            Schema: `ID` INTEGER KEY, `V` STRING
                            Formats: key KAFKA, value JSON"""
    )


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (
            ddl.CreateTable(
                source_name=ObjectName("T"),
                schema=SCHEMA,
                key_field="V",
                timestamp_column=TimestampColumn(column="TS"),
                topic_name=TOPIC,
                formats=Formats(
                    key_format=KAFKA,
                    value_format=FormatInfo(
                        format="PROTOBUF",
                        properties=FormatProperties(
                            full_schema_name="a.B",
                            schema_id="7",
                            unwrap_primitives="true",
                            nullable_representation="OPTIONAL",
                        ),
                    ),
                ),
                window_info=WindowInfo(type=WindowType.TUMBLING, size=SECOND, emit_strategy=OutputRefinement.FINAL),
                or_replace=True,
                is_source=True,
            ),
            """\
            Create or Replace Source Table T on topic orders
              Schema: `ID` INTEGER KEY, `V` STRING
              Key Field: V
              Formats: key KAFKA, value PROTOBUF (schema name 'a.B', schema id '7', unwrap primitives 'true', \
nullable as 'OPTIONAL')
              Window: TUMBLING (SIZE 1 s, EMIT FINAL)
              Timestamp: TS""",
        ),
        (
            ddl.CreateWindowedTable(
                source_name=ObjectName("T"),
                schema=SCHEMA,
                topic_name=TOPIC,
                formats=FORMATS,
                window_info=WindowInfo(type=WindowType.SESSION),
                window_topic=WindowTopic.TOPIC,
                retention=Duration.of(timedelta(days=1)),
            ),
            """\
            Create Table T on topic orders
              Schema: `ID` INTEGER KEY, `V` STRING
              Formats: key KAFKA, value JSON
              Window: SESSION
              Window Topic: TOPIC
              Retention: 86400 s""",
        ),
        (
            ddl.RegisterType(type=ddl.TypeText("STRUCT<`CITY` STRING>"), type_name="ADDRESS"),
            """\
            Register Type ADDRESS
              Type: STRUCT<`CITY` STRING>""",
        ),
        (ddl.DropSource(source_name=ObjectName("orders")), "Drop Source `orders`"),
        (ddl.DropType(type_name="ADDRESS"), "Drop Type ADDRESS"),
        (
            ddl.CreateFunction(
                function_name="TWICE",
                kind=ddl.FunctionKind.SCALAR,
                arguments=SchemaText("`N` INTEGER"),
                returns=ddl.TypeText("INTEGER"),
                language="PYTHON",
                body="def twice(n):\n    return n",
            ),
            """\
            Create Function TWICE
              Kind: Scalar
              Arguments: `N` INTEGER
              Returns: INTEGER
              Language: PYTHON""",
        ),
        (ddl.DropFunction(function_name="TWICE"), "Drop Function TWICE"),
        (
            ddl.CreateView(
                view_name=ObjectName("V"),
                sources=(ObjectName("T"),),
                definition="CREATE VIEW v AS SELECT * FROM t",
            ),
            """\
            Create View V
              Sources: T
              Definition: CREATE VIEW v AS SELECT * FROM t""",
        ),
        (ddl.DropView(view_name=ObjectName("V")), "Drop View V"),
        (
            ddl.CreateIndex(
                index_name=ObjectName("I"),
                source_name=ObjectName("T"),
                schema=SchemaText("`ID` INTEGER KEY, `A` STRING"),
                expressions=(ExpressionText("UCASE(A)"), ExpressionText("ID")),
            ),
            """\
            Create Index I on T
              Schema: `ID` INTEGER KEY, `A` STRING
              Indexed By: UCASE(A), ID""",
        ),
        (
            ddl.CreateIndex(
                index_name=ObjectName("I"),
                source_name=ObjectName("T"),
                schema=SchemaText("`ID` INTEGER KEY"),
                expressions=(),
            ),
            """\
            Create Index I on T
              Schema: `ID` INTEGER KEY
              Indexed By: the key""",
        ),
        (ddl.AlterIndex(index_name=ObjectName("I")), "Alter Index I"),
        (ddl.DropIndex(index_name=ObjectName("I")), "Drop Index I"),
        (
            ddl.AlterSource(
                source_name=ObjectName("S"),
                ksql_type=ddl.SourceType.STREAM,
                new_columns=(SchemaText("`A` STRING"), SchemaText("`B` INTEGER")),
            ),
            """\
            Alter Stream S
              Add Columns: `A` STRING, `B` INTEGER""",
        ),
    ],
)
def test_a_command(command: ddl.DdlCommand, text: str):
    assert explain(Plan(statement_text="", ddl_command=command)) == dedent(text)


def test_a_plan_that_does_nothing_is_empty():
    assert explain(Plan(statement_text="", ddl_command=None)) == ""
