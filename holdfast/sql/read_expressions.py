"""Expressions of a reading query as SQL text: names resolved, the queries inside them compiled."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.errors import BindError, TypeMismatch
from holdfast.runtime.expressions.casts import cast
from holdfast.runtime.expressions.coercion import comparison_type
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.expressions.render import Renderer, render, render_filter
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.expressions.tree import ColumnRef, Expression, Operator
from holdfast.runtime.expressions.typing import infer, type_of
from holdfast.runtime.functions.registry import CURRENT
from holdfast.sql import statements as sql
from holdfast.sql.aggregation import aggregates
from holdfast.sql.constants import refuse_constants
from holdfast.sql.moment_texts import check_moments
from holdfast.sql.read_blocks import Block
from holdfast.sql.read_names import Sight
from holdfast.sql.row_functions import refuse_table_functions
from holdfast.sql.walk import rewrite
from holdfast.types import Scalar, SqlType

if TYPE_CHECKING:
    SubQueries = Callable[[sql.Select, Sight], Block]


class Expressions:
    """Compiles the expressions of one SELECT over what it has in sight."""

    def __init__(self, sight: Sight, queries: "SubQueries", dialect: Dialect) -> None:
        self.sight, self._queries, self._dialect = sight, queries, dialect
        self.computed: list[ScopeColumn] = []

    @property
    def scope(self) -> Scope:
        return self.sight.scope(self.computed)

    def bound(self, expression: Expression) -> Expression:
        """A written expression with its names resolved and its queries as columns."""
        return self.without_queries(self.sight.resolved(expression))

    def without_queries(self, resolved: Expression) -> Expression:
        """A resolved expression with its queries as columns."""
        refuse_table_functions(resolved, clause="a query that reads")
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

    def condition(self, written: Expression, *, clause: str) -> str:
        """The text of a condition, which has no aggregates."""
        for call in aggregates(written):
            hint = "Filter groups with HAVING, after GROUP BY." if clause == "WHERE" else None
            raise BindError(f"{clause} cannot have the aggregate {call.shown}", hint=hint, position=call.position)
        return self.filter(self.bound(written), clause=clause)

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

    # ---- queries inside expressions

    def _query(self, ref: sql.QueryRef) -> Expression:
        assert ref.query is not None
        block = self._queries(ref.query, self.sight)
        if ref.form is sql.QueryForm.EXISTS:
            return self._column(ref, f"EXISTS ({block.sql})", Scalar.BOOLEAN)
        if len(block.columns) != 1:
            raise BindError(
                f"a query inside an expression must give one column, not {len(block.columns)}", position=ref.position
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
        given = block.sql
        if inner != common:
            given = f"SELECT ({cast('q.r0', inner, common, self._dialect)}) AS r0 FROM ({given}) AS q"
        value = Renderer(self.scope, self._dialect, CURRENT).as_type(operand, common)
        # As every comparison here: with NULL it is false.
        found = f"COALESCE({value} IN ({given}), FALSE)"
        return self._column(ref, f"(NOT {found})" if ref.negated else found, Scalar.BOOLEAN)

    def _column(self, ref: sql.QueryRef, text: str, type_: SqlType) -> Expression:
        name = f"query {len(self.computed) + 1}"
        self.computed.append(ScopeColumn(name, type_, text))
        return ColumnRef(name, None, ref.position)

    def after(self, sight: Sight, computed: list[ScopeColumn]) -> "Expressions":
        """Those over what is left when rows were grouped."""
        grouped = Expressions(sight, self._queries, self._dialect)
        grouped.computed = computed
        return grouped


def unlabelled(expression: Expression) -> Expression:
    """A resolved expression as a user would write it, for messages."""
    return rewrite(expression, lambda node: replace(node, qualifier=None) if isinstance(node, ColumnRef) else None)
