"""The wire vocabulary: for every object of a plan document, its properties, in the order they are written.

A row is the wire name and the type of its value. The field of the class has the same name in snake case, unless the
row names another: ksqlDB's `beforeMillis` holds seconds. Never change a row of a released tag; add a tag.
"""

import re
from collections.abc import Mapping

from holdfast.runtime.plan import steps
from holdfast.runtime.plan.ddl import (
    AlterIndex,
    AlterSource,
    CreateFunction,
    CreateIndex,
    CreateMaterializedView,
    CreateStream,
    CreateTable,
    CreateView,
    CreateWindowedTable,
    DdlCommand,
    DropFunction,
    DropIndex,
    DropSource,
    DropType,
    DropView,
    FunctionKind,
    RegisterType,
    SourceType,
)
from holdfast.runtime.plan.document import Plan, QueryPlan
from holdfast.runtime.plan.formats import (
    FormatInfo,
    FormatProperties,
    Formats,
    SerdeFeature,
    SerdeOption,
    TimestampColumn,
)
from holdfast.runtime.plan.property_types import (
    FLAG,
    INTEGER,
    SECONDS,
    TEXT,
    TEXTS,
    ChoiceType,
    ListType,
    ObjectShape,
    PropertyType,
    TaggedType,
    TextOrType,
    WireProperty,
)
from holdfast.runtime.plan.sql_text import EXPRESSION, NAMED_EXPRESSION, SCHEMA_TEXT, TYPE_TEXT
from holdfast.runtime.plan.windows import (
    HoppingWindow,
    OutputRefinement,
    SessionWindow,
    TimeUnit,
    TumblingWindow,
    WindowExpression,
    WindowInfo,
    WindowTime,
    WindowTopic,
    WindowType,
)

UPPER = re.compile("[A-Z]")


def required(name: str, value_type: PropertyType, *, field: str | None = None) -> WireProperty:
    return WireProperty(name, value_type, True, field or snake_case(name))


def optional(name: str, value_type: PropertyType, *, field: str | None = None) -> WireProperty:
    return WireProperty(name, value_type, False, field or snake_case(name))


def plain(type_: type, *properties: WireProperty) -> ObjectShape:
    """An object without a tag, whose path determines its shape."""
    return ObjectShape(type_.__name__, type_, properties)


def tagged(type_: type[steps.Step | DdlCommand | Plan], *properties: WireProperty) -> ObjectShape:
    return ObjectShape(type_.TAG, type_, properties, tag_name="@type")


def window(type_: type[WindowExpression], *properties: WireProperty) -> ObjectShape:
    return ObjectShape(type_.TAG, type_, properties, tag_name="windowType")


def table(*shapes: ObjectShape) -> Mapping[str, ObjectShape]:
    return {shape.name: shape for shape in shapes}


def snake_case(name: str) -> str:
    return UPPER.sub(lambda letter: f"_{letter[0].lower()}", name)


FORMAT_PROPERTIES = plain(
    FormatProperties,
    optional("delimiter", TEXT),
    optional("fullSchemaName", TEXT),
    optional("schemaId", TEXT),
    optional("unwrapPrimitives", TEXT),
    optional("nullableRepresentation", TEXT),
)
FORMAT_INFO = plain(FormatInfo, required("format", TEXT), optional("properties", FORMAT_PROPERTIES))
FORMATS = plain(
    Formats,
    required("keyFormat", FORMAT_INFO),
    required("valueFormat", FORMAT_INFO),
    optional("keyFeatures", ListType(ChoiceType(SerdeFeature))),
    optional("valueFeatures", ListType(ChoiceType(SerdeFeature))),
    optional("options", ListType(ChoiceType(SerdeOption))),
)
TIMESTAMP_COLUMN = plain(TimestampColumn, required("column", TEXT), optional("format", TEXT))

REFINEMENT = ChoiceType(OutputRefinement)
WINDOW_INFO = plain(
    WindowInfo,
    required("type", ChoiceType(WindowType)),
    optional("size", SECONDS),
    optional("emitStrategy", REFINEMENT),
)
WINDOW_TIME = plain(WindowTime, required("value", INTEGER), required("timeUnit", ChoiceType(TimeUnit)))
WINDOW_REST = (
    optional("retention", WINDOW_TIME),
    optional("gracePeriod", WINDOW_TIME),
    optional("emitStrategy", REFINEMENT),
)
WINDOW_SHAPES = table(
    window(TumblingWindow, required("size", WINDOW_TIME), *WINDOW_REST),
    window(HoppingWindow, required("size", WINDOW_TIME), required("advanceBy", WINDOW_TIME), *WINDOW_REST),
    window(SessionWindow, required("gap", WINDOW_TIME), *WINDOW_REST),
)

STEP_PROPERTIES = plain(steps.StepProperties, required("queryContext", TEXT))
REFINEMENT_INFO = plain(steps.RefinementInfo, required("outputRefinement", REFINEMENT))
STEP = TaggedType("step", "@type", lambda: STEP_SHAPES)

EXPRESSIONS = ListType(EXPRESSION)
PROPERTIES = required("properties", STEP_PROPERTIES)
SOURCE = required("source", STEP)
SOURCES = (required("leftSource", STEP), required("rightSource", STEP))
TOPIC = required("topicName", TEXT)
TOPIC_FORMATS = required("formats", FORMATS)
TIMESTAMP = optional("timestampColumn", TIMESTAMP_COLUMN)
SCHEMA = required("sourceSchema", SCHEMA_TEXT)
PSEUDO_COLUMNS = optional("pseudoColumnVersion", INTEGER)
WINDOW = required("windowInfo", WINDOW_INFO)
WINDOW_STORE = (required("windowTopic", ChoiceType(WindowTopic)), required("retention", SECONDS))
INTERNAL_FORMATS = required("internalFormats", FORMATS)
FILTER = required("filterExpression", EXPRESSION)
KEY_COLUMNS = optional("keyColumnNames", TEXTS)
SELECT = required("selectExpressions", ListType(NAMED_EXPRESSION))
KEYS = required("keyExpression", TextOrType(EXPRESSION, EXPRESSIONS))
GROUP_BY = required("groupByExpressions", EXPRESSIONS)
AGGREGATION = (required("nonAggregateColumns", TEXTS), required("aggregationFunctions", EXPRESSIONS))
JOIN_TYPE = required("joinType", ChoiceType(steps.JoinType))
JOIN_KEY = optional("keyColName", TEXT, field="key_column_name")

STEP_SHAPES: Mapping[str, ObjectShape] = table(
    tagged(steps.StreamSource, PROPERTIES, TOPIC, TOPIC_FORMATS, TIMESTAMP, SCHEMA, PSEUDO_COLUMNS),
    tagged(steps.WindowedStreamSource, PROPERTIES, TOPIC, TOPIC_FORMATS, WINDOW, TIMESTAMP, SCHEMA, PSEUDO_COLUMNS),
    tagged(
        steps.TableSource,
        PROPERTIES,
        TOPIC,
        TOPIC_FORMATS,
        TIMESTAMP,
        SCHEMA,
        required("pseudoColumnVersion", INTEGER),
        required("stateStoreFormats", FORMATS),
    ),
    tagged(
        steps.TableSourceV1,
        PROPERTIES,
        TOPIC,
        TOPIC_FORMATS,
        TIMESTAMP,
        SCHEMA,
        optional("forceChangelog", FLAG),
        PSEUDO_COLUMNS,
    ),
    tagged(steps.WindowedTableSource, PROPERTIES, TOPIC, TOPIC_FORMATS, WINDOW, TIMESTAMP, SCHEMA, PSEUDO_COLUMNS),
    tagged(
        steps.WindowStoreSource,
        PROPERTIES,
        TOPIC,
        TOPIC_FORMATS,
        WINDOW,
        *WINDOW_STORE,
        TIMESTAMP,
        SCHEMA,
        PSEUDO_COLUMNS,
        optional("sourceName", TEXT),
    ),
    tagged(
        steps.CollectionSource,
        PROPERTIES,
        required("sourceName", TEXT),
        optional("windowInfo", WINDOW_INFO),
        SCHEMA,
    ),
    tagged(steps.StreamFilter, PROPERTIES, SOURCE, FILTER),
    tagged(steps.TableFilter, PROPERTIES, SOURCE, FILTER),
    tagged(steps.StreamSelect, PROPERTIES, SOURCE, KEY_COLUMNS, optional("selectedKeys", TEXTS), SELECT),
    tagged(steps.TableSelect, PROPERTIES, SOURCE, KEY_COLUMNS, SELECT, optional("internalFormats", FORMATS)),
    tagged(steps.StreamSelectKey, PROPERTIES, SOURCE, KEYS),
    tagged(steps.StreamSelectKeyV1, PROPERTIES, SOURCE, required("keyExpression", EXPRESSION)),
    tagged(steps.TableSelectKey, PROPERTIES, SOURCE, INTERNAL_FORMATS, KEYS),
    tagged(steps.StreamFlatMap, PROPERTIES, SOURCE, required("tableFunctions", EXPRESSIONS)),
    tagged(steps.StreamGroupByKey, PROPERTIES, SOURCE, INTERNAL_FORMATS),
    tagged(steps.StreamGroupBy, PROPERTIES, SOURCE, INTERNAL_FORMATS, GROUP_BY),
    tagged(steps.StreamGroupByV1, PROPERTIES, SOURCE, INTERNAL_FORMATS, GROUP_BY),
    tagged(steps.TableGroupBy, PROPERTIES, SOURCE, INTERNAL_FORMATS, GROUP_BY),
    tagged(steps.TableGroupByV1, PROPERTIES, SOURCE, INTERNAL_FORMATS, GROUP_BY),
    tagged(steps.StreamAggregate, PROPERTIES, SOURCE, INTERNAL_FORMATS, *AGGREGATION),
    tagged(
        steps.StreamWindowedAggregate,
        PROPERTIES,
        SOURCE,
        INTERNAL_FORMATS,
        *AGGREGATION,
        required("windowExpression", TextOrType(TEXT, TaggedType("window", "windowType", lambda: WINDOW_SHAPES))),
    ),
    tagged(steps.TableAggregate, PROPERTIES, SOURCE, INTERNAL_FORMATS, *AGGREGATION),
    tagged(steps.TableSuppress, PROPERTIES, SOURCE, required("refinementInfo", REFINEMENT_INFO), INTERNAL_FORMATS),
    tagged(
        steps.StreamStreamJoin,
        PROPERTIES,
        JOIN_TYPE,
        required("leftInternalFormats", FORMATS),
        required("rightInternalFormats", FORMATS),
        *SOURCES,
        required("beforeMillis", SECONDS, field="before"),
        required("afterMillis", SECONDS, field="after"),
        optional("graceMillis", SECONDS, field="grace"),
        JOIN_KEY,
    ),
    tagged(steps.StreamTableJoin, PROPERTIES, JOIN_TYPE, INTERNAL_FORMATS, *SOURCES, JOIN_KEY),
    tagged(steps.TableTableJoin, PROPERTIES, JOIN_TYPE, *SOURCES, JOIN_KEY),
    tagged(
        steps.FkTableTableJoin,
        PROPERTIES,
        JOIN_TYPE,
        optional("leftJoinColumnName", TEXT),
        TOPIC_FORMATS,
        *SOURCES,
        optional("leftJoinExpression", EXPRESSION),
    ),
    tagged(steps.StreamSink, PROPERTIES, SOURCE, TOPIC_FORMATS, TOPIC, TIMESTAMP),
    tagged(steps.TableSink, PROPERTIES, SOURCE, TOPIC_FORMATS, TOPIC, TIMESTAMP),
    tagged(steps.TableKeep, PROPERTIES, SOURCE),
    tagged(steps.TableIndex, PROPERTIES, SOURCE, required("indexExpressions", EXPRESSIONS)),
)

NAME = required("sourceName", TEXT)
CREATION = (
    NAME,
    required("schema", SCHEMA_TEXT),
    optional("keyField", TEXT),
    TIMESTAMP,
    TOPIC,
    TOPIC_FORMATS,
    optional("windowInfo", WINDOW_INFO),
    optional("orReplace", FLAG),
    optional("isSource", FLAG),
)
DDL_SHAPES = table(
    tagged(CreateStream, *CREATION),
    tagged(CreateTable, *CREATION),
    tagged(
        CreateWindowedTable,
        NAME,
        required("schema", SCHEMA_TEXT),
        TIMESTAMP,
        TOPIC,
        TOPIC_FORMATS,
        WINDOW,
        *WINDOW_STORE,
        optional("orReplace", FLAG),
        optional("isSource", FLAG),
    ),
    tagged(
        CreateMaterializedView,
        NAME,
        required("schema", SCHEMA_TEXT),
        optional("windowInfo", WINDOW_INFO),
        optional("orReplace", FLAG),
    ),
    tagged(RegisterType, required("type", TYPE_TEXT), required("typeName", TEXT)),
    tagged(DropSource, NAME),
    tagged(DropType, required("typeName", TEXT)),
    tagged(
        CreateFunction,
        required("functionName", TEXT),
        required("kind", ChoiceType(FunctionKind)),
        required("arguments", SCHEMA_TEXT),
        required("returns", TYPE_TEXT),
        required("language", TEXT),
        required("body", TEXT),
    ),
    tagged(DropFunction, required("functionName", TEXT)),
    tagged(CreateView, required("viewName", TEXT), required("sources", TEXTS), required("definition", TEXT)),
    tagged(DropView, required("viewName", TEXT)),
    tagged(
        CreateIndex,
        required("indexName", TEXT),
        NAME,
        required("schema", SCHEMA_TEXT),
        optional("windowInfo", WINDOW_INFO),
        required("expressions", EXPRESSIONS),
    ),
    tagged(AlterIndex, required("indexName", TEXT)),
    tagged(DropIndex, required("indexName", TEXT)),
    tagged(
        AlterSource, NAME, required("ksqlType", ChoiceType(SourceType)), required("newColumns", ListType(SCHEMA_TEXT))
    ),
)

QUERY_PLAN = plain(
    QueryPlan,
    required("sources", TEXTS),
    optional("sink", TEXT),
    required("physicalPlan", STEP),
    required("queryId", TEXT),
    optional("runtimeId", TEXT),
)
PLAN_SHAPES = table(
    tagged(
        Plan,
        required("statementText", TEXT),
        optional("ddlCommand", TaggedType("command", "@type", lambda: DDL_SHAPES)),
        optional("queryPlan", QUERY_PLAN),
    ),
)
PLAN = TaggedType("plan", "@type", lambda: PLAN_SHAPES)
