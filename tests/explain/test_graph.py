"""What is joined to what."""

import pytest
from runtime.plan.documents import COMMANDS, STEPS, json_text, plan, step

from holdfast.explain.graph import EdgeKind, Graph, NodeKind, graph_of
from holdfast.names import ObjectName, QueryId, TopicName
from holdfast.runtime.plan.codec import decode
from holdfast.runtime.plan.document import Plan, QueryPlan
from holdfast.runtime.plan.steps import JoinType, StepProperties, StreamSource, StreamTableJoin

from .plans import ours


def edges(graph: Graph) -> list[tuple[str, str, str]]:
    named = {node.id: f"{node.kind}:{node.title}" for node in graph.nodes}
    return [(named[edge.source], edge.kind.value, named[edge.target]) for edge in graph.edges]


def test_an_aggregation_keeps_its_groups_and_its_table():
    graph = graph_of(ours()["PER_CITY"])
    assert (graph.title, graph.subtitle) == ("Create Table PER_CITY on topic PER_CITY", "Query CTAS_PER_CITY_3")
    assert edges(graph) == [
        ("topic:orders", "reads", "step:Stream Source"),
        ("step:Stream Source", "rows", "step:Stream Select"),
        ("step:Stream Select", "rows", "step:Stream Group By"),
        ("step:Stream Group By", "rows", "step:Stream Aggregate"),
        ("step:Stream Aggregate", "keeps", "state:groups"),
        ("step:Stream Aggregate", "rows", "step:Table Filter"),
        ("step:Table Filter", "rows", "step:Table Select"),
        ("step:Table Select", "rows", "step:Table Sink"),
        ("step:Table Sink", "keeps", "state:PER_CITY"),
        ("step:Table Sink", "writes", "topic:PER_CITY"),
    ]
    assert [node.name for node in graph.of(NodeKind.STATE)] == ["CTAS_PER_CITY_3/Aggregate/Aggregate", "PER_CITY"]
    assert [node.title for node in graph.nodes if node.rekeys] == ["Stream Group By"]


def test_a_command_without_a_query_is_joined_to_its_topic():
    assert edges(graph_of(ours()["USERS"])) == [
        ("topic:users", "reads", "command:Create Table USERS"),
        ("command:Create Table USERS", "keeps", "state:USERS"),
    ]


def test_a_topic_that_is_read_twice_is_one_node():
    source = StreamSource(
        properties=StepProperties(query_context="Left"),
        topic_name=TopicName("t"),
        formats=next(iter(ours().values())).command.formats,
        source_schema="`ID` INTEGER KEY",
    )
    join = StreamTableJoin(
        properties=StepProperties(query_context="Join"),
        join_type=JoinType.INNER,
        internal_formats=source.formats,
        left_source=source,
        right_source=source,
    )
    query = QueryPlan(sources=(ObjectName("T"),), physical_plan=join, query_id=QueryId("Q"))
    graph = graph_of(Plan(statement_text="", query_plan=query))
    (topic,) = graph.of(NodeKind.TOPIC)
    assert len(graph.out_of(topic.id, EdgeKind.READS)) == 2


KEPT = {
    "tableSourceV1": ["S"],
    "tableSourceV2": ["S"],
    "windowedTableSourceV1": ["S"],
    "windowStoreSourceV1": ["S"],
    "streamAggregateV1": ["groups"],
    "tableAggregateV1": ["groups"],
    "streamWindowedAggregateV1": ["windows"],
    "tableSuppressV1": ["open windows"],
    "streamStreamJoinV1": ["left rows", "right rows"],
    "fkTableTableJoinV1": ["foreign keys"],
    "tableSinkV1": ["`Here`"],
    "tableKeepV1": ["`Here`"],
    "tableIndexV1": ["`Here`"],
    "collectionSourceV1": ["S"],
}


@pytest.mark.parametrize("tag", STEPS)
def test_every_step_has_a_node_and_its_state(tag: str):
    graph = graph_of(decode(json_text.write(plan(step=step(tag)))))
    top = graph.of(NodeKind.STEP)[-1]
    assert top.step is not None
    assert tag == top.step.TAG
    states = {node.id: node.title for node in graph.of(NodeKind.STATE)}
    assert [states[id_] for id_ in graph.out_of(top.id, EdgeKind.HOLDS)] == KEPT.get(tag, [])


@pytest.mark.parametrize("tag", COMMANDS)
def test_every_command_has_a_node(tag: str):
    graph = graph_of(decode(json_text.write(plan(command={"@type": tag, **COMMANDS[tag]}))))
    assert [node.kind for node in graph.nodes if node.kind is NodeKind.COMMAND] == [NodeKind.COMMAND]


def test_a_plan_of_nothing_has_no_nodes():
    assert graph_of(Plan(statement_text="")).nodes == []
