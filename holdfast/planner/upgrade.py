"""Whether a query can continue with another plan: the two are compared step by step, from the sink to the source.

Filters and projections have no state, and may be added, dropped and changed. Other steps determine the contents of
topics and state, and must stay the same. A step whose state depends on more than its own properties (a join, a window)
cannot be changed in place.

The state of an aggregation contains the partial results of its functions, and those of its other columns that a step
above it reads; columns that only a filter below it needs are not in the state and may change.
"""

from collections.abc import Iterator
from dataclasses import fields

from holdfast.errors import NotSupported, Position
from holdfast.runtime.expressions.parse import parse_expression, parse_named
from holdfast.runtime.expressions.references import references
from holdfast.runtime.expressions.tree import ColumnRef
from holdfast.runtime.plan import sources, steps
from holdfast.runtime.plan.document import QueryPlan
from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.plan.steps import Step

STATELESS = (steps.StreamFilter, steps.StreamSelect, steps.TableFilter, steps.TableSelect)
COMPARABLE = (
    sources.StreamSource,
    sources.WindowedStreamSource,
    sources.TableSource,
    sources.TableSourceV1,
    sources.WindowedTableSource,
    sources.WindowStoreSource,
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
"""The input of a step is compared separately, and a source may have gained columns."""
CARRIED = "non_aggregate_columns"


def check_upgrade(old: QueryPlan, new: QueryPlan, position: Position | None = None) -> None:
    """Raise `NotSupported` for the first step that prevents an upgrade."""
    top, new_top = old.physical_plan, new.physical_plan
    before, after = list(_fixed_steps(top)), list(_fixed_steps(new_top))
    for step in (*before, *after):
        if not isinstance(step, COMPARABLE):
            raise _refused(old, f"Step {_shown(step)} cannot be changed in place.", position)
    for old_step, new_step in zip(before, after, strict=False):
        if type(old_step) is not type(new_step):
            raise _refused(old, f"Step {_shown(old_step)} would become {_shown(new_step)}.", position)
        for name in (field.name for field in fields(old_step) if field.name not in NOT_COMPARED):
            if _compared(old_step, name, top) != _compared(new_step, name, new_top):
                what = name.replace("_", " ")
                raise _refused(old, f"The {what} of step {_shown(old_step)} would change.", position)
    if len(before) != len(after):
        extra = before[len(after)] if len(before) > len(after) else after[len(before)]
        verb = "be removed" if len(before) > len(after) else "be added"
        raise _refused(old, f"Step {_shown(extra)} would {verb}.", position)


def _fixed_steps(step: Step) -> Iterator[Step]:
    """The steps from the sink down that are not stateless; stops at a step with two inputs."""
    while True:
        if not isinstance(step, STATELESS):
            yield step
        source = getattr(step, "source", None)
        if source is None:
            return
        step = source


def _compared(step: Step, name: str, top: Step) -> object:
    """A property of a step, as far as its topics and its state depend on it."""
    value = getattr(step, name)
    if not isinstance(step, steps.StreamAggregate) or name != CARRIED:
        return value
    needed = _read_above(top, step) - _group_keys(step.source)
    return tuple(column for column in value if column in needed)


def _read_above(step: Step, bottom: Step) -> frozenset[str]:
    """The columns that the filters and projections above a step reference."""
    found: set[str] = set()
    while step is not bottom:
        match step:
            case steps.TableFilter(filter_expression=text):
                found |= references(parse_expression(text))
            case steps.TableSelect(select_expressions=texts):
                found |= {name for text in texts for name in references(parse_named(text).expression)}
        step = getattr(step, "source")  # noqa: B009
    return frozenset(found)


def _group_keys(grouped: Step) -> frozenset[str]:
    """The columns that an aggregation's key contains under their own names."""
    if isinstance(grouped, steps.StreamGroupByKey):
        prepared = grouped.source
        return frozenset(value_of(prepared.key_column_names) or () if isinstance(prepared, steps.StreamSelect) else ())
    if isinstance(grouped, steps.StreamGroupBy):
        keys = map(parse_expression, grouped.group_by_expressions)
        return frozenset(key.name for key in keys if isinstance(key, ColumnRef))
    return frozenset()


def _shown(step: Step) -> str:
    return f"{step.TAG} ({step.properties.query_context})"


def _refused(old: QueryPlan, reason: str, position: Position | None) -> NotSupported:
    return NotSupported(
        f"query {old.query_id} cannot continue with the new plan",
        detail=reason,
        hint="Filters and projections may change, and columns may be added at the end. "
        "For other changes, drop the object first.",
        position=position,
    )
