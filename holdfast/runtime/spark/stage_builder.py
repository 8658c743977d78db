"""The stages of one query while they are built.

Builders work from the sources up. A step that needs rows before it can continue ends the current stage; the relation
that it returns reads the rows of that stage.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa

from holdfast.errors import Feature, NotYetSupported
from holdfast.names import ObjectName, StateId, TopicName
from holdfast.runtime.fragment import Fragment
from holdfast.runtime.plan.document import QueryPlan
from holdfast.runtime.plan.steps import Step, TopicSourceStep, WindowedSourceStep
from holdfast.runtime.plan.windows import WindowInfo, WindowType, shape
from holdfast.runtime.program import Action, Input, SavedRows, SaveRows, Stage
from holdfast.runtime.spark.expression_compiler import ExpressionCompiler
from holdfast.runtime.spark.relation import TableRelation, physical_key
from holdfast.runtime.spark.views import saved_view
from holdfast.runtime.store.port import Layout
from holdfast.types import Column


class Sources(Protocol):
    """What the source steps of a plan read."""

    def object_of(self, topic: TopicName, names: Sequence[ObjectName]) -> ObjectName | None:
        """The table or derived stream behind a topic; None for a stream that reads the topic itself."""

    def is_maintained(self, name: ObjectName) -> bool:
        """Whether a query maintains an object of that name."""

    def is_over_topic(self, topic: TopicName, names: Sequence[ObjectName]) -> bool:
        """Whether the table behind a topic is read from that topic, not derived by a query."""


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table inside a query that is not an object: the state with its rows, and its changes in the tick."""

    table: TableRelation
    state: StateId
    changes: SavedRows
    schema: pa.Schema


@dataclass
class StageBuilder:
    """Collects stages. `inputs` are what the current stage reads; `stored` are tables by the context of their step.

    `repeated_deletes` is the SELECT of deletes that are emitted although they change nothing.
    """

    plan: QueryPlan
    sources: Sources
    compiler: ExpressionCompiler
    stages: list[Stage] = field(default_factory=list)
    states: list[tuple[StateId, Layout]] = field(default_factory=list)
    inputs: dict[str, Input] = field(default_factory=dict)
    round: int = 0
    stored: dict[str, StoredTable] = field(default_factory=dict)
    repeated_deletes: str | None = None

    def read(self, source: Input) -> str:
        """Have the current stage read an input; returns the name of its view."""
        self.inputs[source.view] = source
        return source.view

    def add_stage(self, fragment: Fragment, action: Action) -> None:
        """Add a stage beside the current one: it reads the same inputs, in the same round."""
        self.stages.append(Stage(tuple(self.inputs.values()), fragment, action, self.round))

    def end_stage(self, fragment: Fragment, action: Action) -> int:
        """End the current stage; returns its number."""
        self.add_stage(fragment, action)
        self.inputs = {}
        self.round += 1
        return len(self.stages) - 1

    def save(self, fragment: Fragment) -> SavedRows:
        """End the current stage by saving its rows, which the next stage reads."""
        saved = self.save_beside(fragment)
        self.inputs = {}
        self.round += 1
        self.read(saved)
        return saved

    def save_beside(self, fragment: Fragment) -> SavedRows:
        """Save the rows of a stage beside the current one, for a later one to read."""
        self.add_stage(fragment, SaveRows())
        number = len(self.stages) - 1
        return SavedRows(number, saved_view(self.plan.query_id, number), fragment.good.schema)

    def state(self, step: Step, name: str | None, layout: Layout) -> StateId:
        """Declare a state of a step; `name` distinguishes it from the step's main state."""
        path = f"{self.plan.query_id}/{step.properties.query_context}"
        state = StateId(path if name is None else f"{path}/{name}")
        self.states.append((state, layout))
        return state


def window_of(step: TopicSourceStep) -> WindowInfo | None:
    return shape(step.window_info) if isinstance(step, WindowedSourceStep) else None


def layout_of(key: Sequence[Column], value: Sequence[Column], window: WindowInfo | None = None) -> Layout:
    """The windows of a key are a group, in which ranges of starts (sessions: of ends) are found by an index."""
    layout = Layout(physical_key(key, window), tuple(c.type for c in value))
    if window is None:
        return layout
    return replace(layout, group=len(key), ordered=len(key) + (window.type is WindowType.SESSION))


def unbuildable(step: Step) -> NotYetSupported:
    """The error for a known step in a position in which this release cannot run it."""
    return NotYetSupported(
        Feature.STEP,
        step.TAG,
        f"this release cannot run step {step.TAG} here",
        detail=f"The step is at {step.properties.query_context}.",
        hint="A release that has the step can run the query.",
    )
