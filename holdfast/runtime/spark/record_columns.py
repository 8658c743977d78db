"""Which tables a query reads with ROWPARTITION or ROWOFFSET, the position of a row's latest record.

Plans name these columns wherever they rename columns before a join, needed or not. A table does not store them, so it
matters whether a later step reads them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.runtime.expressions.parse import parse_expression, parse_named, parse_schema
from holdfast.runtime.expressions.references import references
from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.plan.sources import SourceStep, TableSourceStep
from holdfast.runtime.plan.steps import (
    FkTableTableJoin,
    Step,
    StreamAggregate,
    StreamFilter,
    StreamFlatMap,
    StreamGroupBy,
    StreamGroupByV1,
    StreamSelect,
    StreamSelectKey,
    StreamSelectKeyV1,
    StreamWindowedAggregate,
    TableAggregate,
    TableFilter,
    TableGroupBy,
    TableGroupByV1,
    TableSelect,
    TableSelectKey,
    sources_of,
    walk,
)
from holdfast.types import Column, Scalar

RECORD_COLUMNS = (Column("ROWPARTITION", Scalar.INTEGER), Column("ROWOFFSET", Scalar.BIGINT))


def table_sources(top: Step) -> list[TableSourceStep]:
    """The table sources of a plan."""
    return [step for step in walk(top) if isinstance(step, TableSourceStep)]


def reads_records(top: Step) -> bool:
    """Whether a plan reads ROWPARTITION or ROWOFFSET of a table."""
    return any(
        isinstance(step, TableSourceStep) and _reads_position(step, read) for step, read in _reads(top, ColumnsRead())
    )


@dataclass(frozen=True, slots=True)
class ColumnsRead:
    """The columns that are read from a step: `names` and, with `everything`, all that it has."""

    names: frozenset[str] = frozenset()
    everything: bool = True


def _reads_position(step: TableSourceStep, read: ColumnsRead) -> bool:
    schema = parse_schema(step.source_schema)
    return any(column.name in read.names and schema.find(column.name) is None for column in RECORD_COLUMNS)


def _reads(step: Step, read: ColumnsRead) -> Iterable[tuple[SourceStep, ColumnsRead]]:
    if isinstance(step, SourceStep):
        yield step, read
        return
    for source in sources_of(step):
        yield from _reads(source, _of_source(step, read))


def _of_source(step: Step, read: ColumnsRead) -> ColumnsRead:
    """The columns that a step reads from its sources, for those that are read from it."""
    match step:
        case StreamSelect() | TableSelect():
            named = [parse_named(text) for text in step.select_expressions]
            chosen = [each for each in named if read.everything or each.name in read.names]
            names = frozenset(name for each in chosen for name in references(each.expression))
            return ColumnsRead(names, everything=False)
        case StreamAggregate() | StreamWindowedAggregate() | TableAggregate():
            carried = frozenset(n for n in step.non_aggregate_columns if read.everything or n in read.names)
            return ColumnsRead(carried | _names(step.aggregation_functions), everything=False)
        case StreamFilter() | TableFilter():
            return _with(read, (step.filter_expression,))
        case StreamGroupBy() | StreamGroupByV1() | TableGroupBy() | TableGroupByV1():
            return _with(read, step.group_by_expressions)
        case StreamSelectKey() | StreamSelectKeyV1() | TableSelectKey():
            keys = step.key_expression
            return _with(read, keys if isinstance(keys, tuple) else (keys,))
        case StreamFlatMap():
            return _with(read, step.table_functions)
        case FkTableTableJoin():
            key = value_of(step.left_join_expression)
            return _with(read, () if key is None else (key,))
        case _:
            return read


def _with(read: ColumnsRead, texts: Iterable[str]) -> ColumnsRead:
    return ColumnsRead(read.names | _names(texts), read.everything)


def _names(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(name for text in texts for name in references(parse_expression(text)))
