"""Whether a query can go on with another plan: the two are compared step by step, from the sink to the source.

Filters and projections hold nothing, and may come, go and change. Other steps decide what topics and states hold, and
must be the same. A step whose state depends on more than its own properties (a join, a window) cannot be gone on from.

The state of an aggregation has what its functions have gathered, and those of the columns it carries that a step above
it reads; what else it carries, for a filter below it, say, is in no state and may change.
"""

from collections.abc import Iterator
from dataclasses import fields

from holdfast.errors import NotSupported, Position
from holdfast.runtime.expressions.parse import parse_expression, parse_named
from holdfast.runtime.expressions.references import references
from holdfast.runtime.expressions.tree import ColumnRef
from holdfast.runtime.plan import sources, steps
from holdfast.runtime.plan.document import QueryPlan
from holdfast.runtime.plan.presence import given
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
CARRIED = "non_aggregate_columns"


def check_upgrade(old: QueryPlan, new: QueryPlan, position: Position | None = None) -> None:
    """Raise for the first step that forbids it."""
    top, new_top = old.physical_plan, new.physical_plan
    before, after = list(_kept(top)), list(_kept(new_top))
    for step in (*before, *after):
        if not isinstance(step, ENFORCING):
            raise _refused(old, f"Step {_told(step)} cannot be gone on from.", position)
    for had, has in zip(before, after, strict=False):
        if type(had) is not type(has):
            raise _refused(old, f"Step {_told(had)} would become {_told(has)}.", position)
        for name in (field.name for field in fields(had) if field.name not in NOT_COMPARED):
            if _compared(had, name, top) != _compared(has, name, new_top):
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


def _compared(step: Step, name: str, top: Step) -> object:
    """A property of a step, as far as its topics and its state depend on it."""
    value = getattr(step, name)
    if not isinstance(step, steps.StreamAggregate) or name != CARRIED:
        return value
    wanted = _read_above(top, step) - _group_keys(step.source)
    return tuple(column for column in value if column in wanted)


def _read_above(step: Step, bottom: Step) -> frozenset[str]:
    """The columns that the filters and projections over a step name."""
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
    """The columns that are the key of an aggregation under their own names."""
    if isinstance(grouped, steps.StreamGroupByKey):
        prepared = grouped.source
        return frozenset(given(prepared.key_column_names) or () if isinstance(prepared, steps.StreamSelect) else ())
    if isinstance(grouped, steps.StreamGroupBy):
        keys = map(parse_expression, grouped.group_by_expressions)
        return frozenset(key.name for key in keys if isinstance(key, ColumnRef))
    return frozenset()


def _told(step: Step) -> str:
    return f"{step.TAG} ({step.properties.query_context})"


def _refused(old: QueryPlan, why: str, position: Position | None) -> NotSupported:
    return NotSupported(
        f"query {old.query_id} cannot go on with the new plan",
        detail=why,
        hint="Filters and projections may change, and columns be added at the end. Else drop the object first.",
        position=position,
    )
