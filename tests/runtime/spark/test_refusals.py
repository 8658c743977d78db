"""A plan that can be read is built or refused; nothing of it is half run."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from explain.plans import FOLDER, files, ours, stored
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runtime.plan.documents import STEPS, json_text, plan, step
from runtime.plan.made_up import PLANS

from holdfast.errors import HoldfastError, NotYetSupported, PlanError
from holdfast.names import ObjectName, TopicName
from holdfast.runtime.plan.codec import decode, encode
from holdfast.runtime.plan.document import Plan, QueryPlan
from holdfast.runtime.plan.steps import walk
from holdfast.runtime.program import Program
from holdfast.runtime.spark.build import build_query

Json = Any


class AnyTable:
    """Sources that have a table for every topic whose query reads one."""

    def object_of(self, topic: TopicName, names: Sequence[ObjectName]) -> ObjectName | None:
        del topic
        return next((name for name in names if name != "ORDERS"), None)

    def is_maintained(self, name: ObjectName) -> bool:
        return name != "GONE"

    def is_over_topic(self, topic: TopicName, names: Sequence[ObjectName]) -> bool:
        return self.object_of(topic, names) is not None


def query_of(document: Json) -> QueryPlan:
    found = decode(json_text.write(document)).query
    assert found is not None
    return found


def build(query: QueryPlan) -> Program:
    return build_query(query, AnyTable())


TABLE = step("tableSourceV2")
GROUPED_TABLE = step("tableGroupByV2", source=TABLE)
OVER = {
    "streamAggregateV1": {"source": step("streamGroupByKeyV1")},
    "streamWindowedAggregateV1": {"source": step("streamGroupByKeyV1")},
    "streamFlatMapV1": {"tableFunctions": ["EXPLODE(ARRAY[ROWTIME])"]},
    "streamTableJoinV1": {"rightSource": TABLE},
    "tableAggregateV1": {"source": GROUPED_TABLE},
    "tableTableJoinV1": {"leftSource": TABLE, "rightSource": TABLE},
    "fkTableTableJoinV1": {"leftSource": TABLE, "rightSource": TABLE},
    "tableSuppressV1": {"source": step("streamWindowedAggregateV1", source=step("streamGroupByKeyV1"))},
}
OVER |= {tag: {"source": TABLE} for tag in STEPS if tag.startswith("table") and "source" in STEPS[tag]} | OVER
"""What the sample of a step needs below it, where that is no stream."""

GROUPS = {"streamGroupByKeyV1", "streamGroupByV1", "streamGroupByV2"}
TABLE_GROUPS = {"tableGroupByV1", "tableGroupByV2"}
GIVES_TABLE = ("table", "windowedTable", "windowStore", "fkTable", "streamAggregate", "streamWindowedAggregate")


def sample(tag: str) -> Json:
    """The step over what it needs, and with the aggregation that follows a grouping."""
    top = step(tag, **OVER.get(tag, {}))
    above = "streamAggregateV1" if tag in GROUPS else "tableAggregateV1" if tag in TABLE_GROUPS else None
    if above is None:
        return top
    return step(above, source=top, nonAggregateColumns=[], aggregationFunctions=["COUNT(ROWTIME)"])


def kind_of(tag: str) -> str:
    return "table" if tag.startswith(GIVES_TABLE) or tag in GROUPS else "stream"


def refusal(document: Json) -> NotYetSupported | None:
    try:
        assert build(query_of(plan(step=document))).stages
    except NotYetSupported as error:
        return error
    return None


@pytest.mark.parametrize("tag", STEPS)
def test_a_step_is_built_or_refused_by_name(tag: str):
    """Whatever a release has builders for: alone under a sink, and deep inside a query."""
    top = sample(tag)
    kind = kind_of(tag)
    queries = [top] if "Sink" in tag else [step(f"{kind}SinkV1", source=top)]
    if "Sink" not in tag:
        filtered = step(f"{kind}FilterV1", source=top, filterExpression="(ROWTIME > 1)")
        selected = step(f"{kind}SelectV1", source=filtered, selectExpressions=["ROWTIME AS A"])
        queries.append(step(f"{kind}SinkV1", source=selected))
    refused = [refusal(query) for query in queries]
    if refused[0] is None:
        assert refused == [None] * len(queries)
        return
    for error in refused:
        assert error is not None
        # What a step stands on may be refused before it.
        inside = {f"step {found.TAG}" for found in walk(query_of(plan(step=top)).physical_plan)}
        assert error.missing in inside
        assert error.missing.removeprefix("step ") in error.message
        assert error.detail == "The step is at Here."


def test_a_step_of_the_other_kind_is_refused():
    """A table's step over a stream, and a stream's over a table."""
    for kind, source in (("table", step("streamSourceV1")), ("stream", TABLE)):
        error = refusal(step(f"{kind}SinkV1", source=step(f"{kind}SelectV1", source=source)))
        assert error is not None
        assert error.missing == f"step {source['@type']}"


def test_a_query_without_a_sink_is_refused():
    with pytest.raises(NotYetSupported, match="streamFilterV1"):
        build(query_of(plan(step=step("streamFilterV1"))))


def test_too_many_names_for_a_key_are_refused():
    selected = step("streamSelectV1", keyColumnNames=["A", "B"])
    with pytest.raises(PlanError) as refused:
        build(query_of(plan(step=step("streamSinkV1", source=selected))))
    assert str(refused.value) == (
        "a step has 2 names for a key of 1 columns\nDETAIL: The names are A, B; the key columns are ID."
    )


def test_a_carried_column_that_is_not_there_is_refused():
    aggregate = step("streamAggregateV1", source=step("streamGroupByKeyV1"), nonAggregateColumns=["X"])
    selected = step("tableSelectV1", source=aggregate, selectExpressions=["X AS X"])
    with pytest.raises(HoldfastError, match='column "X" does not exist'):
        build(query_of(plan(step=step("tableSinkV1", source=selected))))


def refusal_of(query: QueryPlan) -> HoldfastError | None:
    """Why a plan is refused; None when it is built."""
    try:
        program = build(query)
    except HoldfastError as refused:
        return refused
    assert program.query == query.query_id
    assert program.stages
    return None


def is_for_users(refused: HoldfastError | None) -> bool:
    return refused is None or bool(refused.message)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(PLANS)
def test_a_made_up_plan_is_built_or_refused(made_up: Plan):
    query = decode(encode(made_up)).query
    assert query is None or is_for_users(refusal_of(query))


QUERIES = [json.loads(encode(found)) for found in ours().values() if found.query is not None]


def test_our_own_plans_are_built():
    assert QUERIES
    assert [refusal_of(query_of(document)) for document in QUERIES] == [None] * len(QUERIES)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_good_plan_with_something_changed_is_built_or_refused(data: st.DataObject):
    """A list loses or repeats an element, or a text gives way to another of the same plan."""
    document = json.loads(json.dumps(data.draw(st.sampled_from(QUERIES))))
    places = list(members(document["queryPlan"]["physicalPlan"]))
    texts = sorted({owner[name] for owner, name in places if isinstance(owner[name], str)})
    for _ in range(data.draw(st.integers(1, 3))):
        owner, name = data.draw(st.sampled_from(places))
        value = owner[name]
        if isinstance(value, list):
            owner[name] = data.draw(st.sampled_from([value[1:], [*value, *value[:1]], [], None]))
        else:
            owner[name] = data.draw(st.sampled_from([*texts, None]))
    try:
        query = query_of(document)
    except PlanError:
        return
    assert is_for_users(refusal_of(query))


def members(value: Json) -> Iterator[tuple[Json, Any]]:
    """Every text and list in a document, with what has it; the types of steps stay."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in pairs:
        if isinstance(member, str | list) and name != "@type":
            yield value, name
        yield from members(member)


REFUSED = {"headers": 0, "source-table": 2}
"""Files of ksqlDB with plans that the sources here, or this release, do not fit; how many of the others are built."""


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no conformance data in {FOLDER}")
@pytest.mark.parametrize("file", files(), ids=lambda file: file.stem)
def test_plans_of_ksqldb_are_built(file):
    queries = [found.query for _, found in stored(file) if found.query is not None]
    built = sum(refusal_of(query) is None for query in queries)
    assert built == REFUSED.get(file.stem, len(queries))
