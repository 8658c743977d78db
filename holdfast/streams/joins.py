"""Joins of streams and tables."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from holdfast.errors import TopologyError
from holdfast.runtime.compiler.inference import type_of
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.expressions.tree import Call, ColumnRef, Expression
from holdfast.sql.syntax.statements import ObjectKind
from holdfast.sql.syntax.walk import rewrite
from holdfast.streams.callables import Callables, is_annotated, row, trace
from holdfast.streams.expressions import Expr, tree_of
from holdfast.streams.python_functions import PythonFunction, row_function, versioned
from holdfast.streams.topology_rows import (
    KEY,
    LEFT,
    RIGHT,
    VALUE,
    Field,
    JoinInput,
    Scan,
    TopologyRows,
    as_key_copies,
    free_name,
    key_format,
    row_format,
    single_format,
)
from holdfast.streams.windows import JoinWindows
from holdfast.streams.workspace import Workspace
from holdfast.types import SqlType

FULL = "FULL OUTER JOIN"
SYNTHETIC_KEY = "ROWKEY"


def stream_join(
    workspace: Workspace,
    join_type: str,
    left: TopologyRows,
    right: TopologyRows,
    joiner: Any,
    windows: JoinWindows | None,
    on: Any,
) -> TopologyRows:
    """The join of a stream with a stream or a table."""
    if right.kind is ObjectKind.STREAM and windows is None:
        raise TopologyError(
            "a join of two streams needs windows",
            detail="Records match when their keys are equal and their times are close.",
            hint="Write join(other, joiner, JoinWindows.of(timedelta(minutes=5))).",
        )
    if right.kind is ObjectKind.TABLE and windows is not None:
        raise TopologyError(
            "a join with a table has no windows", detail="A record is joined with the row that the table has then."
        )
    within = "" if windows is None else windows.clause
    return _join(workspace, join_type, left, right, joiner, on, within)


def table_join(
    workspace: Workspace, join_type: str, left: TopologyRows, right: TopologyRows, joiner: Any, on: Any
) -> TopologyRows:
    """The join of two tables, by their keys or by a column that names the key of the right one."""
    return _join(workspace, join_type, left, right, joiner, on, "")


def _join(
    workspace: Workspace, join_type: str, left: TopologyRows, right: TopologyRows, joiner: Any, on: Any, within: str
) -> TopologyRows:
    if len(right.key) != 1:
        raise TopologyError("only relations with a key of one column can be joined", hint="Change the key before.")
    foreign = on is not None and left.kind is ObjectKind.TABLE
    callables = Callables(left)
    condition = callables.expression(on) if on is not None else ColumnRef(_only_key(left).name)
    left = callables.with_functions()
    # A filtered or projected left side is folded into the join's query, except in a full join.
    folded = isinstance(left.input, Scan) and join_type != FULL
    if not folded:
        left = TopologyRows.of(workspace.node(left))
    left_node = left.input.nodes[0]
    right_node = workspace.node(right)
    right = TopologyRows.of(right_node)
    left_key, right_key = _qualified(left.resolve(condition), LEFT), ColumnRef(right.key[0].name, RIGHT)
    values, single, functions = _values(left, right, joiner)
    if foreign:
        key = tuple(replace(each, expression=_qualified(each.expression, LEFT)) for each in left.key)
    else:
        name = free_name(left.key[0].name if left.key else KEY, values)
        key = (Field(name, _joined_key(join_type, left_key, right_key), left.type_of(condition)),)
    fields = tuple(replace(each, expression=_over_sides(each.expression, left, right)) for each in values)
    return TopologyRows(
        kind=left.kind,
        input=JoinInput(
            join_type=join_type, left=left_node, right=right_node, left_key=left_key, right_key=right_key, within=within
        ),
        key=key,
        values=as_key_copies(fields, key),
        key_format=left.key_format if foreign or on is None else key_format(key),
        value_format=single_format(fields[0].type) if single else row_format(left.value_format, fields),
        where=None if left.where is None else _qualified(left.where, LEFT),
        window=left.window,
        functions=(*left.functions, *functions),
    )


def _only_key(left: TopologyRows) -> Field:
    if len(left.key) != 1:
        raise TopologyError(
            "only relations with a key of one column can be joined", hint="Pass on=…, or change the key."
        )
    return left.key[0]


def _joined_key(join_type: str, left: Expression, right: ColumnRef) -> Expression:
    """The key of the result: either side, as they are equal; of a full join, a column of its own."""
    if join_type == FULL:
        return ColumnRef(SYNTHETIC_KEY)
    return left if isinstance(left, ColumnRef) else right


def _values(
    left: TopologyRows, right: TopologyRows, joiner: Any
) -> tuple[tuple[Field, ...], bool, tuple[PythonFunction, ...]]:
    """The value columns of the result, whether they are a single value, and the functions that they use."""
    functions: tuple[PythonFunction, ...] = ()
    if joiner is None:
        result: Any = _both(left, right)
    elif is_annotated(joiner):
        function = row_function(joiner)
        functions = (function,)
        result = _call(function, left, right)
    else:
        sides = (
            row(side, side.values, single=side.is_single, qualifier=alias)
            for side, alias in ((left, LEFT), (right, RIGHT))
        )
        result = trace(joiner, *sides) if callable(joiner) else joiner
    known = (*left.functions, *functions)
    if isinstance(result, Mapping):
        trees = {name: tree_of(each) for name, each in result.items()}
        fields = tuple(Field(name, each, _type_of(each, left, right, known)) for name, each in trees.items())
        return fields, False, functions
    single = tree_of(result)
    return (Field(VALUE, single, _type_of(single, left, right, known)),), True, functions


def _both(left: TopologyRows, right: TopologyRows) -> Mapping[str, Any]:
    """The value columns of both sides."""
    found: dict[str, Expr[Any]] = {}
    for side, alias in ((left, LEFT), (right, RIGHT)):
        for each in side.values:
            if each.name in found:
                raise TopologyError(
                    f'both sides of the join have a column "{each.name}"',
                    hint="Name the columns of the result: join(other, lambda left, right: {…}).",
                )
            found[each.name] = Expr(ColumnRef(each.name, alias))
    return found


def _call(function: PythonFunction, left: TopologyRows, right: TopologyRows) -> Expr[Any]:
    """The call of a function with both values, each of one column."""
    if len(function.parameters) != 2 or not (left.is_single and right.is_single):
        raise TopologyError(
            f"{function.name} cannot join these rows",
            detail="A function of Python joins two values of one column each.",
            hint="Use a lambda that returns a mapping of expressions.",
        )
    return Expr(Call(function.name, (ColumnRef(left.values[0].name, LEFT), ColumnRef(right.values[0].name, RIGHT))))


def _type_of(
    expression: Expression, left: TopologyRows, right: TopologyRows, functions: Iterable[PythonFunction]
) -> SqlType:
    columns = [
        ScopeColumn(each.name, each.type, qualifier=alias)
        for side, alias in ((left, LEFT), (right, RIGHT))
        for each in (*side.key, *side.values)
    ]
    return type_of(versioned(expression, functions), Scope.of(columns, relation=f"{left.name} or {right.name}"))


def _over_sides(expression: Expression, left: TopologyRows, right: TopologyRows) -> Expression:
    """An expression of a joiner over the two inputs: its columns of the left side as that side computes them."""

    def change(node: Expression) -> Expression | None:
        match node:
            case ColumnRef(qualifier=qualifier) if qualifier == RIGHT:
                return node
            case ColumnRef(name, qualifier) if qualifier == LEFT or any(each.name == name for each in left.values):
                return _qualified(left.field(name).expression, LEFT)
            case ColumnRef(name):
                return ColumnRef(right.field(name).name, RIGHT)
        return None

    return rewrite(expression, change)


def _qualified(expression: Expression, alias: str) -> Expression:
    def change(node: Expression) -> Expression | None:
        return ColumnRef(node.name, alias) if isinstance(node, ColumnRef) and node.qualifier is None else None

    return rewrite(expression, change)
