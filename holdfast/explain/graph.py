"""A plan as a graph of topics, steps and the state of the steps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import assert_never

from holdfast.explain.columns import Columns, columns_of, schema_columns
from holdfast.explain.details import command_details, command_title, formats_text, step_details, step_name
from holdfast.names import show
from holdfast.runtime.plan.ddl import CreateMaterializedView, CreateStream, CreateTable, CreateWindowedTable, DdlCommand
from holdfast.runtime.plan.document import Plan, QueryPlan
from holdfast.runtime.plan.formats import Formats
from holdfast.runtime.plan.optional import value_of
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
    WindowStoreSource,
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
"""The steps that change the key of rows, so that rows move to other partitions."""
CREATING = CreateStream | CreateTable | CreateWindowedTable | CreateMaterializedView
"""The commands that declare the columns of a query."""


class NodeKind(StrEnum):
    TOPIC = "topic"
    STEP = "step"
    STATE = "state"
    COMMAND = "command"


class EdgeKind(StrEnum):
    """READS and WRITES connect topics and steps, ROWS two steps, HOLDS a step and its state."""

    READS = "reads"
    ROWS = "rows"
    WRITES = "writes"
    HOLDS = "keeps"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """A node of the graph. `name` is its internal name: a topic, a query context or a state's id."""

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
class GraphEdge:
    source: str
    target: str
    kind: EdgeKind


@dataclass(slots=True)
class Graph:
    """Nodes in dataflow order: inputs before the steps that read them, left before right."""

    title: str
    subtitle: str
    statement: str
    nodes: list[GraphNode] = field(default_factory=list)
    edges: list[GraphEdge] = field(default_factory=list)

    def of(self, kind: NodeKind) -> list[GraphNode]:
        return [node for node in self.nodes if node.kind is kind]

    def into(self, target: str, *kinds: EdgeKind) -> list[str]:
        """The sources of a node's incoming edges of these kinds, in order."""
        return [edge.source for edge in self.edges if edge.target == target and edge.kind in kinds]

    def out_of(self, source: str, *kinds: EdgeKind) -> list[str]:
        return [edge.target for edge in self.edges if edge.source == source and edge.kind in kinds]


@dataclass(frozen=True, slots=True)
class GraphState:
    """State of a step between ticks; `name` is its name in the store, `of` the owner."""

    title: str
    name: str
    of: str


def graph_of(plan: Plan) -> Graph:
    """The graph of a plan; a plan without a query shows its command and topic."""
    command, query = plan.command, plan.query
    title = command_title(command) if command is not None else f"Query {query.query_id}" if query else "Nothing"
    subtitle = f"Query {query.query_id}" if command is not None and query is not None else ""
    builder = _GraphBuilder(Graph(title, subtitle, plan.statement_text), query)
    if query is not None:
        builder.step(query.physical_plan, command)
    elif command is not None:
        builder.command(command)
    return builder.graph


@dataclass
class _GraphBuilder:
    graph: Graph
    query: QueryPlan | None
    read: dict[str, GraphNode] = field(default_factory=dict)

    def step(self, step: Step, command: DdlCommand | None = None) -> GraphNode:
        """Add a step after its inputs; the sink of a CREATE … AS has the columns that the command declares."""
        inputs = [self.step(source) for source in sources_of(step)]
        topic = self._read(step.topic_name, step.formats) if isinstance(step, TopicSourceStep) else None
        columns = columns_of(step, [node.columns for node in inputs])
        if isinstance(step, SinkStep | TableKeep) and isinstance(command, CREATING):
            columns = schema_columns(command.schema) or columns
        node = self._add(
            GraphNode(
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
            self._connect(topic, node, EdgeKind.READS)
        for source in inputs:
            self._connect(source, node, EdgeKind.ROWS)
        for state in self._states(step):
            self._add_state(node, state)
        if isinstance(step, SinkStep):
            self._connect(node, self._topic(step.topic_name, step.formats), EdgeKind.WRITES)
        return node

    def command(self, command: DdlCommand) -> None:
        """Add a command that starts no query."""
        columns: Columns = ()
        topic: GraphNode | None = None
        if isinstance(command, CreateStream | CreateTable | CreateWindowedTable):
            columns = schema_columns(command.schema)
            topic = self._read(command.topic_name, command.formats)
        node = self._add(
            GraphNode(
                id="command",
                kind=NodeKind.COMMAND,
                title=command_title(command).partition(" on topic ")[0],
                name="",
                details=tuple((label, text) for label, text in command_details(command) if text is not None),
                columns=columns,
            )
        )
        if topic is not None:
            self._connect(topic, node, EdgeKind.READS)
        if isinstance(command, CreateTable | CreateWindowedTable):
            self._add_state(node, GraphState(show(command.source_name), command.source_name, "table"))

    def _states(self, step: Step) -> Iterator[GraphState]:
        """The state of a step between ticks."""
        query = self.query.query_id if self.query else ""
        context = step.properties.query_context
        name_in_store = f"{query}/{context}"
        match step:
            case TableSource() | TableSourceV1() | WindowedTableSource() | WindowStoreSource():
                name = self._table_of(step)
                yield GraphState(show(name), name, "table")
            case CollectionSource():
                yield GraphState(show(step.source_name), step.source_name, "materialized view")
            case StreamAggregate() | TableAggregate():
                yield GraphState("groups", name_in_store, context)
            case StreamWindowedAggregate():
                yield GraphState("windows", name_in_store, context)
            case TableSuppress():
                yield GraphState("open windows", name_in_store, context)
            case StreamStreamJoin():
                yield GraphState("left rows", f"{name_in_store}/left", context)
                yield GraphState("right rows", f"{name_in_store}/right", context)
            case FkTableTableJoin():
                yield GraphState("foreign keys", name_in_store, context)
            case TableSink():
                sink = value_of(self.query.sink) if self.query else None
                name = sink or context
                yield GraphState(show(name), name, "table")
            case TableKeep():
                name = (value_of(self.query.sink) if self.query else None) or context
                yield GraphState(show(name), name, "materialized view")
            case TableIndex():
                sink = value_of(self.query.sink) if self.query else None
                yield GraphState(show(sink or context), sink or context, "index")
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
        """The table that a source step reads, by name if the step has it or the query has one source, else by topic."""
        if isinstance(step, WindowStoreSource) and (name := value_of(step.source_name)) is not None:
            return name
        sources: Sequence[str] = self.query.sources if self.query else ()
        return sources[0] if len(sources) == 1 else step.topic_name

    def _read(self, name: str, formats: Formats) -> GraphNode:
        """The node of a source topic; a topic that is read twice has a single node."""
        if name not in self.read:
            self.read[name] = self._topic(name, formats)
        return self.read[name]

    def _topic(self, name: str, formats: Formats) -> GraphNode:
        details = (("Formats", formats_text(formats)),)
        id_ = self._id("topic", NodeKind.TOPIC)
        return self._add(GraphNode(id=id_, kind=NodeKind.TOPIC, title=name, name=name, details=details))

    def _add_state(self, owner: GraphNode, state: GraphState) -> None:
        id_, details = self._id("state", NodeKind.STATE), (("Of", state.of),)
        node = self._add(GraphNode(id=id_, kind=NodeKind.STATE, title=state.title, name=state.name, details=details))
        self._connect(owner, node, EdgeKind.HOLDS)

    def _id(self, word: str, kind: NodeKind) -> str:
        return f"{word}-{len(self.graph.of(kind)) + 1}"

    def _add(self, node: GraphNode) -> GraphNode:
        self.graph.nodes.append(node)
        return node

    def _connect(self, source: GraphNode, target: GraphNode, kind: EdgeKind) -> None:
        self.graph.edges.append(GraphEdge(source.id, target.id, kind))
