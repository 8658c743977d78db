"""Expressions of a pull query as SQL text, with names resolved and subqueries compiled."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.errors import BindError, TypeMismatch
from holdfast.runtime.compiler.inference import infer, type_of
from holdfast.runtime.compiler.sql import Renderer, render, render_filter
from holdfast.runtime.expressions.casts import cast
from holdfast.runtime.expressions.coercion import comparison_type
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.expressions.tree import ColumnRef, Expression, Operator
from holdfast.runtime.functions.registry import CURRENT
from holdfast.sql.literals.constants import refuse_constants
from holdfast.sql.literals.temporal import check_moments
from holdfast.sql.query.aggregation import aggregates
from holdfast.sql.query.table_functions import refuse_table_functions
from holdfast.sql.read.blocks import Block
from holdfast.sql.read.names import VisibleRelations
from holdfast.sql.syntax import statements as sql
from holdfast.sql.syntax.walk import rewrite
from holdfast.types import Scalar, SqlType

if TYPE_CHECKING:
    SubQueries = Callable[[sql.Select, VisibleRelations], Block]


class Expressions:
    """Compiles the expressions of one SELECT over the relations visible to it."""

    def __init__(self, visible: VisibleRelations, queries: "SubQueries", dialect: Dialect) -> None:
        self.visible, self._queries, self._dialect = visible, queries, dialect
        self.computed: list[ScopeColumn] = []

    @property
    def scope(self) -> Scope:
        return self.visible.scope(self.computed)

    def bound(self, expression: Expression) -> Expression:
        """The expression with its names resolved and its subqueries as columns."""
        return self.without_queries(self.visible.resolved(expression))

    def without_queries(self, resolved: Expression) -> Expression:
        """A resolved expression with its subqueries as columns."""
        refuse_table_functions(resolved, clause="a pull query")
        refuse_constants(resolved)

        def change(node: Expression) -> Expression | None:
            return self._query(node) if isinstance(node, sql.QueryRef) else None

        return rewrite(resolved, change)

    def type_of(self, bound: Expression) -> SqlType:
        found = type_of(bound, self.scope)
        self._check_moments(bound)
        return found

    def _check_moments(self, bound: Expression) -> None:
        check_moments(bound, lambda inner: infer(inner, self.scope))

    def text(self, bound: Expression) -> str:
        return render(bound, self.scope, self._dialect)

    def condition(self, expression: Expression, *, clause: str) -> str:
        """The SQL text of a condition, which must not contain aggregates."""
        for call in aggregates(expression):
            hint = "Filter groups with HAVING, after GROUP BY." if clause == "WHERE" else None
            raise BindError(f"{clause} cannot contain the aggregate {call.shown}", hint=hint, position=call.position)
        return self.filter(self.bound(expression), clause=clause)

    def filter(self, bound: Expression, *, clause: str) -> str:
        type_ = infer(bound, self.scope)
        self._check_moments(bound)
        if type_ not in (Scalar.BOOLEAN, None):
            raise TypeMismatch(
                f"{clause} must be BOOLEAN, not {type_}",
                hint="Compare it with something.",
                position=bound.position,
            )
        return render_filter(bound, self.scope, self._dialect) if type_ is not None else "FALSE"

    # ---- subqueries

    def _query(self, ref: sql.QueryRef) -> Expression:
        assert ref.query is not None
        block = self._queries(ref.query, self.visible)
        if ref.form is sql.QueryForm.EXISTS:
            return self._column(ref, f"EXISTS ({block.sql})", Scalar.BOOLEAN)
        if len(block.columns) != 1:
            raise BindError(
                f"a query inside an expression must return one column, not {len(block.columns)}", position=ref.position
            )
        type_ = block.columns[0].type
        if ref.form is sql.QueryForm.SCALAR:
            return self._column(ref, f"({block.sql})", type_)
        return self._membership(ref, block, type_)

    def _membership(self, ref: sql.QueryRef, block: Block, inner: SqlType) -> Expression:
        assert ref.operand is not None
        operand = self.without_queries(ref.operand)
        outer = self.type_of(operand)
        common = comparison_type(Operator.EQUAL, outer, inner)
        if common is None:
            raise TypeMismatch(f"cannot compare {outer} with the {inner} of a query", position=ref.position)
        inner_sql = block.sql
        if inner != common:
            inner_sql = f"SELECT ({cast('q.r0', inner, common, self._dialect)}) AS r0 FROM ({inner_sql}) AS q"
        value = Renderer(self.scope, self._dialect, CURRENT).as_type(operand, common)
        # Like every comparison in pull queries, it is false with NULL.
        found = f"COALESCE({value} IN ({inner_sql}), FALSE)"
        return self._column(ref, f"(NOT {found})" if ref.negated else found, Scalar.BOOLEAN)

    def _column(self, ref: sql.QueryRef, text: str, type_: SqlType) -> Expression:
        name = f"query {len(self.computed) + 1}"
        self.computed.append(ScopeColumn(name, type_, text))
        return ColumnRef(name, None, ref.position)

    def over_groups(self, visible: VisibleRelations, computed: list[ScopeColumn]) -> "Expressions":
        """Expressions over the result of grouping the rows."""
        grouped = Expressions(visible, self._queries, self._dialect)
        grouped.computed = computed
        return grouped


def unlabelled(expression: Expression) -> Expression:
    """A resolved expression as a user would write it, for error messages."""
    return rewrite(expression, lambda node: replace(node, qualifier=None) if isinstance(node, ColumnRef) else None)
