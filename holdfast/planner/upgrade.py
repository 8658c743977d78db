"""Whether a query can go on with another plan: the two are compared step by step, from the sink to the source.

Filters and projections hold nothing, and may come, go and change. Other steps decide what topics and states hold, and
must be the same. A step whose state depends on more than its own properties (a join, a window) cannot be gone on from.
"""

from collections.abc import Iterator
from dataclasses import fields

from holdfast.errors import NotSupported, Position
from holdfast.runtime.plan import sources, steps
from holdfast.runtime.plan.document import QueryPlan
from holdfast.runtime.plan.steps import Step

PASSING = (steps.StreamFilter, steps.StreamSelect, steps.TableFilter, steps.TableSelect)
ENFORCING = (
    sources.StreamSource,
    sources.WindowedStreamSource,
    sources.TableSource,
    sources.TableSourceV1,
    sources.WindowedTableSource,
    steps.StreamSink,
    steps.TableSink,
    steps.TableKeep,
    sources.CollectionSource,
    steps.StreamSelectKey,
    steps.StreamSelectKeyV1,
    steps.TableSelectKey,
    steps.StreamGroupBy,
    steps.StreamGroupByV1,
    steps.StreamGroupByKey,
    steps.TableGroupBy,
    steps.TableGroupByV1,
    steps.StreamAggregate,
)
NOT_COMPARED = frozenset({"source", "source_schema"})
"""What is under a step is compared by itself; a source may have got more columns."""


def check_upgrade(old: QueryPlan, new: QueryPlan, position: Position | None = None) -> None:
    """Raise for the first step that forbids it."""
    before, after = list(_kept(old.physical_plan)), list(_kept(new.physical_plan))
    for step in (*before, *after):
        if not isinstance(step, ENFORCING):
            raise _refused(old, f"Step {_told(step)} cannot be gone on from.", position)
    for had, has in zip(before, after, strict=False):
        if type(had) is not type(has):
            raise _refused(old, f"Step {_told(had)} would become {_told(has)}.", position)
        for name in (field.name for field in fields(had) if field.name not in NOT_COMPARED):
            if getattr(had, name) != getattr(has, name):
                what = name.replace("_", " ")
                raise _refused(old, f"The {what} of step {_told(had)} would change.", position)
    if len(before) != len(after):
        more = before[len(after)] if len(before) > len(after) else after[len(before)]
        verb = "go" if len(before) > len(after) else "be added"
        raise _refused(old, f"Step {_told(more)} would {verb}.", position)


def _kept(step: Step) -> Iterator[Step]:
    """The steps from the sink down that are not passing; a step with two inputs ends it."""
    while True:
        if not isinstance(step, PASSING):
            yield step
        under = getattr(step, "source", None)
        if under is None:
            return
        step = under


def _told(step: Step) -> str:
    return f"{step.TAG} ({step.properties.query_context})"


def _refused(old: QueryPlan, why: str, position: Position | None) -> NotSupported:
    return NotSupported(
        f"query {old.query_id} cannot go on with the new plan",
        detail=why,
        hint="Filters and projections may change, and columns be added at the end. Else drop the object first.",
        position=position,
    )
