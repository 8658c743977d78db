"""A plan as a graph: topics, steps, and what the steps keep in the store."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import assert_never

from holdfast.names import show
from holdfast.runtime.graph.columns import Columns, columns_of, schema_columns
from holdfast.runtime.plan.ddl import CreateMaterializedView, CreateStream, CreateTable, DdlCommand
from holdfast.runtime.plan.details import command_details, command_title, formats_text, step_details, step_name
from holdfast.runtime.plan.document import Plan, QueryPlan
from holdfast.runtime.plan.formats import Formats
from holdfast.runtime.plan.presence import given
from holdfast.runtime.plan.steps import (
    CollectionSource,
    FkTableTableJoin,
    SinkStep,
    Step,
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
    TopicSourceStep,
    WindowedStreamSource,
    WindowedTableSource,
    sources_of,
)

REKEYING = (
    StreamSelectKey,
    StreamSelectKeyV1,
    TableSelectKey,
    StreamGroupBy,
    StreamGroupByV1,
    TableGroupBy,
    TableGroupByV1,
)
"""The steps that give rows another key, so that they move."""
CREATING = CreateStream | CreateTable | CreateMaterializedView
"""The commands that say which columns a query gives."""


class NodeKind(StrEnum):
    TOPIC = "topic"
    STEP = "step"
    STATE = "state"
    COMMAND = "command"


class EdgeKind(StrEnum):
    """READS and WRITES join topics and steps, ROWS two steps, KEEPS a step and its state."""

    READS = "reads"
    ROWS = "rows"
    WRITES = "writes"
    KEEPS = "keeps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One thing of the graph. `name` is what the system calls it: a topic, a query context, a state's id."""

    id: str
    kind: NodeKind
    title: str
    name: str
    details: tuple[tuple[str, str], ...] = ()
    columns: Columns = ()
    step: Step | None = None

    @property
    def rekeys(self) -> bool:
        return isinstance(self.step, REKEYING)


@dataclass(frozen=True, slots=True)
class Edge:
    source: str
    target: str
    kind: EdgeKind


@dataclass(slots=True)
class Graph:
    """Nodes in the order of the data: what is read before what reads it, left before right."""

    title: str
    subtitle: str
    statement: str
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)

    def of(self, kind: NodeKind) -> list[Node]:
        return [node for node in self.nodes if node.kind is kind]

    def into(self, target: str, *kinds: EdgeKind) -> list[str]:
        """The nodes whose edges of these kinds lead to a node, in order."""
        return [edge.source for edge in self.edges if edge.target == target and edge.kind in kinds]

    def out_of(self, source: str, *kinds: EdgeKind) -> list[str]:
        return [edge.target for edge in self.edges if edge.source == source and edge.kind in kinds]


@dataclass(frozen=True, slots=True)
class State:
    """What a step keeps between ticks; `name` is the store's, `of` says whose it is."""

    title: str
    name: str
    of: str


def graph_of(plan: Plan) -> Graph:
    """The graph of a plan; one without a query has its command, and the topic of that."""
    command, query = plan.command, plan.query
    title = command_title(command) if command is not None else f"Query {query.query_id}" if query else "Nothing"
    subtitle = f"Query {query.query_id}" if command is not None and query is not None else ""
    building = _Building(Graph(title, subtitle, plan.statement_text), query)
    if query is not None:
        building.step(query.physical_plan, command)
    elif command is not None:
        building.command(command)
    return building.graph


@dataclass
class _Building:
    graph: Graph
    query: QueryPlan | None
    read: dict[str, Node] = field(default_factory=dict)

    def step(self, step: Step, command: DdlCommand | None = None) -> Node:
        """Add a step after those below it; that of a CREATE … AS has the columns which the command says."""
        inputs = [self.step(source) for source in sources_of(step)]
        topic = self._read(step.topic_name, step.formats) if isinstance(step, TopicSourceStep) else None
        columns = columns_of(step, [node.columns for node in inputs])
        if isinstance(step, SinkStep | TableKeep) and isinstance(command, CREATING):
            columns = schema_columns(command.schema) or columns
        node = self._add(
            Node(
                id=self._id("step", NodeKind.STEP),
                kind=NodeKind.STEP,
                title=step_name(step),
                name=step.properties.query_context,
                details=tuple((label, text) for label, text in step_details(step) if text is not None),
                columns=columns,
                step=step,
            )
        )
        if topic is not None:
            self._join(topic, node, EdgeKind.READS)
        for source in inputs:
            self._join(source, node, EdgeKind.ROWS)
        for state in self._states(step):
            self._keep(node, state)
        if isinstance(step, SinkStep):
            self._join(node, self._topic(step.topic_name, step.formats), EdgeKind.WRITES)
        return node

    def command(self, command: DdlCommand) -> None:
        """Add a command that starts no query."""
        columns: Columns = ()
        topic: Node | None = None
        if isinstance(command, CreateStream | CreateTable):
            columns = schema_columns(command.schema)
            topic = self._read(command.topic_name, command.formats)
        node = self._add(
            Node(
                id="command",
                kind=NodeKind.COMMAND,
                title=command_title(command).partition(" on topic ")[0],
                name="",
                details=tuple((label, text) for label, text in command_details(command) if text is not None),
                columns=columns,
            )
        )
        if topic is not None:
            self._join(topic, node, EdgeKind.READS)
        if isinstance(command, CreateTable):
            self._keep(node, State(show(command.source_name), command.source_name, "table"))

    def _states(self, step: Step) -> Iterator[State]:
        """What a step keeps between ticks."""
        query = self.query.query_id if self.query else ""
        context = step.properties.query_context
        own = f"{query}/{context}"
        match step:
            case TableSource() | TableSourceV1() | WindowedTableSource():
                name = self._table_of(step)
                yield State(show(name), name, "table")
            case CollectionSource():
                yield State(show(step.source_name), step.source_name, "materialized view")
            case StreamAggregate() | TableAggregate():
                yield State("groups", own, context)
            case StreamWindowedAggregate():
                yield State("windows", own, context)
            case TableSuppress():
                yield State("open windows", own, context)
            case StreamStreamJoin():
                yield State("left rows", f"{own}/left", context)
                yield State("right rows", f"{own}/right", context)
            case FkTableTableJoin():
                yield State("foreign keys", own, context)
            case TableSink():
                sink = given(self.query.sink) if self.query else None
                name = sink or context
                yield State(show(name), name, "table")
            case TableKeep():
                name = (given(self.query.sink) if self.query else None) or context
                yield State(show(name), name, "materialized view")
            case TableIndex():
                sink = given(self.query.sink) if self.query else None
                yield State(show(sink or context), sink or context, "index")
            case (
                StreamSource()
                | WindowedStreamSource()
                | StreamFilter()
                | TableFilter()
                | StreamSelect()
                | TableSelect()
                | StreamSelectKey()
                | StreamSelectKeyV1()
                | TableSelectKey()
                | StreamFlatMap()
                | StreamGroupByKey()
                | StreamGroupBy()
                | StreamGroupByV1()
                | TableGroupBy()
                | TableGroupByV1()
                | StreamTableJoin()
                | TableTableJoin()
                | StreamSink()
            ):
                pass
            case _:
                assert_never(step)

    def _table_of(self, step: TopicSourceStep) -> str:
        """The table that a source step reads: a plan says its topic, and its name where it reads nothing else."""
        sources: Sequence[str] = self.query.sources if self.query else ()
        return sources[0] if len(sources) == 1 else step.topic_name

    def _read(self, name: str, formats: Formats) -> Node:
        """The node of a topic that is read; one that is read twice is one topic."""
        if name not in self.read:
            self.read[name] = self._topic(name, formats)
        return self.read[name]

    def _topic(self, name: str, formats: Formats) -> Node:
        details = (("Formats", formats_text(formats)),)
        id_ = self._id("topic", NodeKind.TOPIC)
        return self._add(Node(id=id_, kind=NodeKind.TOPIC, title=name, name=name, details=details))

    def _keep(self, owner: Node, state: State) -> None:
        id_, details = self._id("state", NodeKind.STATE), (("Of", state.of),)
        node = self._add(Node(id=id_, kind=NodeKind.STATE, title=state.title, name=state.name, details=details))
        self._join(owner, node, EdgeKind.KEEPS)

    def _id(self, word: str, kind: NodeKind) -> str:
        return f"{word}-{len(self.graph.of(kind)) + 1}"

    def _add(self, node: Node) -> Node:
        self.graph.nodes.append(node)
        return node

    def _join(self, source: Node, target: Node, kind: EdgeKind) -> None:
        self.graph.edges.append(Edge(source.id, target.id, kind))
