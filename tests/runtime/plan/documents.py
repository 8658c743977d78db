"""Hand-written plan documents: a minimal plan for every object of the vocabulary."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from holdfast.runtime.plan import json_text, vocabulary
from holdfast.runtime.plan.property_types import ObjectShape

Json = Any

KAFKA_JSON = {"keyFormat": {"format": "KAFKA"}, "valueFormat": {"format": "JSON"}}
COMMON = {"properties": {"queryContext": "Here"}}
TOPIC = {"topicName": "t", "formats": KAFKA_JSON}
READ = {**COMMON, **TOPIC, "sourceSchema": "`ID` INTEGER KEY"}
STREAM = {"@type": "streamSourceV1", **READ}
ONE = {**COMMON, "source": STREAM}
GROUPED = {**ONE, "internalFormats": KAFKA_JSON}
AGGREGATE = {**GROUPED, "nonAggregateColumns": ["ID"], "aggregationFunctions": ["COUNT(ID)"]}
TWO = {**COMMON, "joinType": "INNER", "leftSource": STREAM, "rightSource": STREAM}
CREATE = {"sourceName": "S", "schema": "`ID` INTEGER KEY", **TOPIC}
SECOND = Decimal("1.000000000")
WINDOW_STORE = {"windowInfo": {"type": "SESSION"}, "windowTopic": "TOPIC", "retention": SECOND}
ONE_SECOND = {"value": 1, "timeUnit": "SECONDS"}

STEPS: Mapping[str, Json] = {
    "streamSourceV1": READ,
    "windowedStreamSourceV1": {**READ, "windowInfo": {"type": "SESSION"}},
    "tableSourceV1": READ,
    "tableSourceV2": {**READ, "pseudoColumnVersion": 1, "stateStoreFormats": KAFKA_JSON},
    "windowedTableSourceV1": {**READ, "windowInfo": {"type": "SESSION"}},
    "windowStoreSourceV1": {**READ, **WINDOW_STORE, "sourceName": "S"},
    "collectionSourceV1": {**COMMON, "sourceName": "S", "sourceSchema": "`ID` INTEGER KEY"},
    "streamFilterV1": {**ONE, "filterExpression": "(ID > 1)"},
    "tableFilterV1": {**ONE, "filterExpression": "(ID > 1)"},
    "streamSelectV1": {**ONE, "selectExpressions": ["ID AS A"]},
    "tableSelectV1": {**ONE, "selectExpressions": ["ID AS A"]},
    "streamSelectKeyV1": {**ONE, "keyExpression": "ID"},
    "streamSelectKeyV2": {**ONE, "keyExpression": ["ID"]},
    "tableSelectKeyV1": {**GROUPED, "keyExpression": ["ID"]},
    "streamFlatMapV1": {**ONE, "tableFunctions": ["EXPLODE(A)"]},
    "streamGroupByKeyV1": GROUPED,
    "streamGroupByV1": {**GROUPED, "groupByExpressions": ["ID"]},
    "streamGroupByV2": {**GROUPED, "groupByExpressions": ["ID"]},
    "tableGroupByV1": {**GROUPED, "groupByExpressions": ["ID"]},
    "tableGroupByV2": {**GROUPED, "groupByExpressions": ["ID"]},
    "streamAggregateV1": AGGREGATE,
    "tableAggregateV1": AGGREGATE,
    "streamWindowedAggregateV1": {**AGGREGATE, "windowExpression": " SESSION ( 1 SECONDS ) "},
    "tableSuppressV1": {**GROUPED, "refinementInfo": {"outputRefinement": "FINAL"}},
    "streamStreamJoinV1": {
        **TWO,
        "leftInternalFormats": KAFKA_JSON,
        "rightInternalFormats": KAFKA_JSON,
        "beforeMillis": SECOND,
        "afterMillis": SECOND,
    },
    "streamTableJoinV1": {**TWO, "internalFormats": KAFKA_JSON},
    "tableTableJoinV1": TWO,
    "fkTableTableJoinV1": {**TWO, "formats": KAFKA_JSON, "leftJoinExpression": "ID"},
    "streamSinkV1": {**ONE, **TOPIC},
    "tableSinkV1": {**ONE, **TOPIC},
    "tableKeepV1": ONE,
    "tableIndexV1": {**ONE, "indexExpressions": ["UCASE(A)", "ID"]},
}

COMMANDS: Mapping[str, Json] = {
    "createStreamV1": CREATE,
    "createTableV1": CREATE,
    "createWindowedTableV1": {**CREATE, **WINDOW_STORE},
    "createMaterializedViewV1": {"sourceName": "S", "schema": "`ID` INTEGER KEY"},
    "registerTypeV1": {"type": "STRUCT<`A` INTEGER>", "typeName": "ADDRESS"},
    "dropSourceV1": {"sourceName": "S"},
    "dropTypeV1": {"typeName": "ADDRESS"},
    "createFunctionV1": {
        "functionName": "TWICE",
        "kind": "SCALAR",
        "arguments": "`N` INTEGER",
        "returns": "INTEGER",
        "language": "PYTHON",
        "body": "def twice(n):\n    return n",
    },
    "dropFunctionV1": {"functionName": "TWICE"},
    "createViewV1": {"viewName": "V", "sources": ["T"], "definition": "CREATE VIEW v AS SELECT * FROM t"},
    "dropViewV1": {"viewName": "V"},
    "createIndexV1": {
        "indexName": "I",
        "sourceName": "S",
        "schema": "`ID` INTEGER KEY",
        "expressions": ["UCASE(A)"],
    },
    "alterIndexV1": {"indexName": "I"},
    "dropIndexV1": {"indexName": "I"},
    "alterSourceV1": {"sourceName": "S", "ksqlType": "STREAM", "newColumns": ["`B` STRING"]},
}

WINDOWS: Mapping[str, Json] = {
    "TUMBLING": {"size": ONE_SECOND},
    "HOPPING": {"size": ONE_SECOND, "advanceBy": ONE_SECOND},
    "SESSION": {"gap": ONE_SECOND},
}


@dataclass(frozen=True)
class Sample:
    """A document, and the path (`way`) to the object in it that has `shape`."""

    shape: ObjectShape
    document: Json
    way: tuple[str, ...]

    def __str__(self) -> str:
        return self.shape.name

    @property
    def path(self) -> str:
        return ".".join(("$", *self.way))

    def edited(self, **members: Json) -> bytes:
        """The document with members of the object set, or left out where they are `...`."""
        document = deepcopy(self.document)
        target = document
        for name in self.way:
            target = target[name]
        target.update(members)
        for name in [name for name, member in target.items() if member is ...]:
            del target[name]
        return json_text.write(document)


def plan(*, step: Json = None, command: Json = None) -> Json:
    query = {"sources": ["S"], "physicalPlan": step, "queryId": "Q"} if step else None
    return {"@type": "ksqlPlanV1", "statementText": "CREATE …", "ddlCommand": command, "queryPlan": query}


def step(tag: str, **members: Json) -> Json:
    return {"@type": tag, **STEPS[tag], **members}


def samples() -> Iterator[Sample]:
    """Every object of the vocabulary once."""
    here = ("queryPlan", "physicalPlan")
    for tag in STEPS:
        yield Sample(vocabulary.STEP_SHAPES[tag], plan(step=step(tag)), here)
    for tag, command in COMMANDS.items():
        yield Sample(vocabulary.DDL_SHAPES[tag], plan(command={"@type": tag, **command}), ("ddlCommand",))
    for tag, window in WINDOWS.items():
        windowed = step("streamWindowedAggregateV1", windowExpression={"windowType": tag, **window})
        yield Sample(vocabulary.WINDOW_SHAPES[tag], plan(step=windowed), (*here, "windowExpression"))
        if tag == "TUMBLING":
            yield Sample(vocabulary.WINDOW_TIME, plan(step=windowed), (*here, "windowExpression", "size"))
    whole = plan(
        step=step(
            "windowedStreamSourceV1",
            formats={**KAFKA_JSON, "keyFormat": {"format": "DELIMITED", "properties": {"delimiter": "|"}}},
            timestampColumn={"column": "TS"},
        )
    )
    suppress = plan(step=step("tableSuppressV1"))
    yield Sample(vocabulary.PLAN_SHAPES["ksqlPlanV1"], whole, ())
    yield Sample(vocabulary.QUERY_PLAN, whole, ("queryPlan",))
    yield Sample(vocabulary.STEP_PROPERTIES, whole, (*here, "properties"))
    yield Sample(vocabulary.FORMATS, whole, (*here, "formats"))
    yield Sample(vocabulary.FORMAT_INFO, whole, (*here, "formats", "keyFormat"))
    yield Sample(vocabulary.FORMAT_PROPERTIES, whole, (*here, "formats", "keyFormat", "properties"))
    yield Sample(vocabulary.TIMESTAMP_COLUMN, whole, (*here, "timestampColumn"))
    yield Sample(vocabulary.WINDOW_INFO, whole, (*here, "windowInfo"))
    yield Sample(vocabulary.REFINEMENT_INFO, suppress, (*here, "refinementInfo"))
