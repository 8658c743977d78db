"""The output columns of each step of a plan.

Names always follow from the plan. A type is None where it depends on something that this release does not have, such
as a ksqlDB function that is not declared: a plan can be drawn even if it cannot run.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from holdfast.errors import HoldfastError
from holdfast.runtime.compiler.inference import type_of
from holdfast.runtime.expressions.parse import parse_expression, parse_named, parse_schema
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.expressions.text import format_expression
from holdfast.runtime.expressions.tree import ColumnRef, Expression, FieldRef, NullLiteral
from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.plan.steps import (
    CollectionSource,
    ExpressionText,
    FkTableTableJoin,
    JoinStep,
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
    WindowedStreamSource,
    WindowedTableSource,
    WindowStoreSource,
)
from holdfast.types import Role, Scalar, SqlType

PSEUDO = {
    "ROWTIME": Scalar.BIGINT,
    "ROWPARTITION": Scalar.INTEGER,
    "ROWOFFSET": Scalar.BIGINT,
    "WINDOWSTART": Scalar.BIGINT,
    "WINDOWEND": Scalar.BIGINT,
}
OLD_KEY = "ROWKEY"
"""The name of every key in ksqlDB 5.5."""


@dataclass(frozen=True, slots=True)
class GraphColumn:
    """An output column of a step. `expression` is what the step computes it from; None for a copy."""

    name: str
    type: SqlType | None
    key: bool = False
    expression: str | None = None


Columns = tuple[GraphColumn, ...]


def columns_of(step: Step, inputs: Sequence[Columns]) -> Columns:
    """The columns of a step over those of its inputs, key columns first."""
    match step:
        case StreamSource() | WindowedStreamSource() | TableSource() | TableSourceV1():
            return schema_columns(step.source_schema)
        case WindowedTableSource() | WindowStoreSource():
            return schema_columns(step.source_schema)
        case CollectionSource():
            return schema_columns(step.source_schema)
        case StreamFilter() | TableFilter() | StreamGroupByKey() | TableSuppress():
            return _copied(inputs[0])
        case StreamSink() | TableSink() | TableKeep():
            return _copied(inputs[0])
        case StreamSelect():
            selected = value_of(step.selected_keys)
            keys = [c for c in _keys(inputs[0]) if selected is None or c.name in selected]
            return _selected(step.select_expressions, inputs[0], keys, value_of(step.key_column_names))
        case TableSelect():
            return _selected(step.select_expressions, inputs[0], _keys(inputs[0]), value_of(step.key_column_names))
        case StreamSelectKey() | TableSelectKey():
            return _keyed(step.key_expressions, inputs[0])
        case StreamSelectKeyV1():
            return _keyed((step.key_expression,), inputs[0], name=OLD_KEY)
        case StreamFlatMap():
            results = [
                _computed(text, f"KSQL_SYNTH_{number}", inputs[0]) for number, text in enumerate(step.table_functions)
            ]
            return (*_copied(inputs[0]), *results)
        case StreamGroupBy() | TableGroupBy():
            return _keyed(step.group_by_expressions, inputs[0])
        case StreamGroupByV1() | TableGroupByV1():
            return _joined_key(step.group_by_expressions, inputs[0])
        case StreamAggregate() | StreamWindowedAggregate() | TableAggregate():
            return _aggregated(step, inputs[0])
        case StreamStreamJoin() | StreamTableJoin() | TableTableJoin() | FkTableTableJoin():
            return _joined(step, *inputs)
        case TableIndex():
            arranged = [_computed(text, text, inputs[0]) for text in step.index_expressions]
            return (*(replace(column, key=True) for column in arranged), *_copied(inputs[0]))
        case _:
            assert_never(step)


def schema_columns(schema: str) -> Columns:
    """The columns of a schema's text; none if it cannot be parsed."""
    try:
        columns = parse_schema(schema).columns
    except HoldfastError:
        return ()
    found = [GraphColumn(c.name, c.type, c.role is Role.KEY) for c in columns]
    return tuple(sorted(found, key=lambda column: not column.key))


def _keys(columns: Iterable[GraphColumn]) -> list[GraphColumn]:
    return [replace(column, expression=None) for column in columns if column.key]


def _copied(columns: Iterable[GraphColumn]) -> Columns:
    return tuple(replace(column, expression=None) for column in columns)


def _selected(
    texts: Sequence[ExpressionText], source: Columns, keys: Sequence[GraphColumn], names: Sequence[str] | None
) -> Columns:
    if names and len(names) == len(keys):
        keys = [
            replace(key, name=name, expression=None if name == key.name else key.name)
            for key, name in zip(keys, names, strict=True)
        ]
    # ksqlDB's joins also copy a key to the values.
    copies = {(key.name, key.expression) for key in keys}
    values = [_named(text, source) for text in texts]
    return (*keys, *(value for value in values if (value.name, value.expression) not in copies))


def _named(text: str, source: Columns) -> GraphColumn:
    try:
        named = parse_named(text)
    except HoldfastError:
        return GraphColumn(text, None)
    copied = named.expression == ColumnRef(named.name)
    expression = None if copied else format_expression(named.expression)
    return GraphColumn(named.name, _type(named.expression, source), False, expression)


def _computed(text: str, name: str, source: Columns) -> GraphColumn:
    return GraphColumn(name, _type(_expression(text), source), False, text)


def _keyed(texts: Sequence[ExpressionText], source: Columns, *, name: str | None = None) -> Columns:
    """A new key; the old key columns become values."""
    keys: list[GraphColumn] = []
    number = 0
    for text in texts:
        expression = _expression(text)
        if isinstance(expression, NullLiteral):
            continue
        match expression:
            case ColumnRef(column) | FieldRef(_, column):
                found = column
            case _:
                found, number = f"KSQL_COL_{number}", number + 1
        found = name or found
        keys.append(GraphColumn(found, _type(expression, source), True, None if text == found else text))
    taken = {key.name for key in keys}
    return (*keys, *(replace(c, key=False, expression=None) for c in source if c.name not in taken))


def _joined_key(texts: Sequence[ExpressionText], source: Columns) -> Columns:
    """The key of the superseded GROUP BY: one column; a STRING if there are several expressions."""
    old = next((key.name for key in source if key.key and key.name == OLD_KEY), None)
    if len(texts) == 1:
        return _keyed(texts, source, name=old)
    key = GraphColumn(old or "KSQL_COL_0", Scalar.STRING, True, ", ".join(texts))
    return (key, *(replace(c, key=False, expression=None) for c in source))


def _aggregated(step: StreamAggregate | StreamWindowedAggregate | TableAggregate, source: Columns) -> Columns:
    keys = _keys(source)
    taken = {key.name for key in keys}
    types = {column.name: column.type for column in source}
    carried = [GraphColumn(c, types.get(c) or PSEUDO.get(c)) for c in step.non_aggregate_columns if c not in taken]
    results = [
        _computed(text, f"KSQL_AGG_VARIABLE_{number}", source) for number, text in enumerate(step.aggregation_functions)
    ]
    return (*keys, *carried, *results)


def _joined(step: JoinStep, left: Columns, right: Columns) -> Columns:
    """The key of the left side, under the name that the step gives it, then both sides' columns."""
    keys = _keys(left)
    if not isinstance(step, FkTableTableJoin) and len(keys) == 1:
        keys = [replace(keys[0], name=value_of(step.key_column_name) or OLD_KEY)]
    both: dict[str, GraphColumn] = {}
    for column in (*left, *right):
        both.setdefault(column.name, replace(column, key=False, expression=None))
    taken = {key.name for key in keys}
    return (*keys, *(column for column in both.values() if column.name not in taken))


def _expression(text: str) -> Expression | None:
    try:
        return parse_expression(text)
    except HoldfastError:
        return None


def _type(expression: Expression | None, source: Columns) -> SqlType | None:
    if expression is None:
        return None
    known = {column.name: column.type for column in source if column.type is not None}
    hidden = {column.name for column in source}
    pseudo = {name: type_ for name, type_ in PSEUDO.items() if name not in hidden}
    try:
        return type_of(expression, Scope.of(ScopeColumn(name, type_) for name, type_ in (pseudo | known).items()))
    except HoldfastError:
        return None
