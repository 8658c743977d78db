"""A plan that can be read is built or refused; nothing of it is half run."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runtime.graph.plans import FOLDER, files, ours, stored
from runtime.plan.documents import STEPS, jsontext, plan, step
from runtime.plan.made_up import PLANS

from holdfast.errors import HoldfastError, NotYetSupported, PlanError
from holdfast.names import ObjectName, TopicName
from holdfast.runtime.plan.codec import decode, encode
from holdfast.runtime.plan.document import Plan, QueryPlan
from holdfast.runtime.program import Program
from holdfast.runtime.spark.build import build_query

Json = Any


class AnyTable:
    """Sources that have a table for every topic whose query reads one."""

    def object_of(self, topic: TopicName, names: Sequence[ObjectName]) -> ObjectName | None:
        del topic
        return next((name for name in names if name != "ORDERS"), None)


def query_of(document: Json) -> QueryPlan:
    found = decode(jsontext.write(document)).query
    assert found is not None
    return found


def build(query: QueryPlan) -> Program:
    return build_query(query, AnyTable())


TABLE = step("tableSourceV2")
OVER = {
    "streamAggregateV1": {"source": step("streamGroupByKeyV1")},
    "tableFilterV1": {"source": TABLE},
    "tableSelectV1": {"source": TABLE},
}
"""What the sample of a step needs below it, where that is no stream."""

BUILT = {
    "streamSourceV1",
    "tableSourceV2",
    "streamFilterV1",
    "tableFilterV1",
    "streamSelectV1",
    "tableSelectV1",
    "streamGroupByKeyV1",
    "streamGroupByV2",
    "streamAggregateV1",
    "streamSinkV1",
    "tableSinkV1",
}
"""The steps of this release; a new builder adds its own here."""

GIVES_TABLE = ("table", "windowedTable", "fkTable", "streamAggregate", "streamWindowedAggregate")


def sunk(tag: str) -> QueryPlan:
    """A query that ends with the step, or with a sink above it."""
    top = step(tag, **OVER.get(tag, {}))
    if tag == "tableSinkV1":
        top["source"] = TABLE
    elif tag in ("streamGroupByKeyV1", "streamGroupByV2"):
        top = step("tableSinkV1", source=step("streamAggregateV1", source=top))
    elif tag != "streamSinkV1":
        top = step("tableSinkV1" if tag.startswith(GIVES_TABLE) else "streamSinkV1", source=top)
    return query_of(plan(step=top))


@pytest.mark.parametrize("tag", STEPS)
def test_a_step_is_built_or_refused_by_name(tag: str):
    if tag in BUILT:
        assert build(sunk(tag)).stages
        return
    with pytest.raises(NotYetSupported) as refused:
        build(sunk(tag))
    assert refused.value.missing == f"step {tag}"
    assert refused.value.message == f"this release cannot run step {tag} here"
    assert refused.value.detail == "The step is at Here."


@pytest.mark.parametrize("tag", [tag for tag in STEPS if tag not in BUILT and "Sink" not in tag])
def test_a_step_is_refused_also_deep_inside_a_query(tag: str):
    """Below a filter and a projection, on the stream's and on the table's side."""
    for kind in ("stream", "table"):
        inner = step(f"{kind}FilterV1", source=step(tag))
        query = query_of(plan(step=step(f"{kind}SinkV1", source=step(f"{kind}SelectV1", source=inner))))
        with pytest.raises(NotYetSupported, match=tag):
            build(query)


def test_a_query_without_a_sink_is_refused():
    with pytest.raises(NotYetSupported, match="streamFilterV1"):
        build(query_of(plan(step=step("streamFilterV1"))))


def test_too_many_names_for_a_key_are_refused():
    selected = step("streamSelectV1", keyColumnNames=["A", "B"])
    with pytest.raises(PlanError) as refused:
        build(query_of(plan(step=step("streamSinkV1", source=selected))))
    assert str(refused.value) == ("a step names 2 key columns where there are 1\nDETAIL: It names A, B; the key is ID.")


def test_a_carried_column_that_is_not_there_is_refused():
    aggregate = step("streamAggregateV1", source=step("streamGroupByKeyV1"), nonAggregateColumns=["X"])
    selected = step("tableSelectV1", source=aggregate, selectExpressions=["X AS X"])
    with pytest.raises(HoldfastError, match='column "X" does not exist'):
        build(query_of(plan(step=step("tableSinkV1", source=selected))))


def tried(query: QueryPlan) -> None:
    """Build it; an error that is not for users is one of ours."""
    with suppress(HoldfastError):
        assert build(query).query == query.query_id


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(PLANS)
def test_no_plan_that_is_made_up_is_anything_but_built_or_refused(made_up: Plan):
    query = decode(encode(made_up)).query
    if query is not None:
        tried(query)


QUERIES = [json.loads(encode(found)) for found in ours().values() if found.query is not None]


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
    tried(query)


def members(value: Json) -> Iterator[tuple[Json, Any]]:
    """Every text and list in a document, with what has it; the types of steps stay."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in pairs:
        if isinstance(member, str | list) and name != "@type":
            yield value, name
        yield from members(member)


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no conformance data in {FOLDER}")
@pytest.mark.parametrize("file", files(), ids=lambda file: file.stem)
def test_plans_of_ksqldb_are_built_or_refused(file):
    for _, found in stored(file):
        if found.query is not None:
            tried(found.query)
