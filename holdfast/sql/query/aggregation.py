"""The rules of GROUP BY and HAVING."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.errors import BindError, NotSupported
from holdfast.runtime.compiler.calls import not_over_tables, not_until_closed
from holdfast.runtime.compiler.inference import argument_type
from holdfast.runtime.expressions.text import format_expression
from holdfast.runtime.expressions.tree import Call, ColumnRef, Expression, Lambda
from holdfast.runtime.functions.declaration import AggregateForm
from holdfast.runtime.functions.registry import is_aggregate, resolve
from holdfast.runtime.plan.windows import SessionWindow
from holdfast.sql.query.projection import BoundColumn
from holdfast.sql.query.relation import WINDOW_BOUNDS, Relation
from holdfast.sql.syntax import statements as sql
from holdfast.sql.syntax.walk import children, column_refs, walk


def aggregates(expression: Expression) -> list[Call]:
    """The calls to aggregate functions inside an expression."""
    return [node for node in walk(expression) if isinstance(node, Call) and is_aggregate(node.name)]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """The parts of a query with GROUP BY, HAVING or aggregates."""

    select: sql.Select
    relation: Relation
    projection: Sequence[BoundColumn]
    group_by: tuple[Expression, ...]
    having: Expression | None
    stream: bool

    def check(self) -> None:
        """Raise if the query breaks a rule of aggregation."""
        expressions = [column.expression for column in self.projection]
        searched = expressions if self.having is None else [*expressions, self.having]
        calls = [call for expression in searched for call in aggregates(expression)]
        if calls and not self.group_by:
            self._refuse_ungrouped()
        self._check_grouped(calls)
        self._check_group_by()
        if not calls:
            raise BindError(
                "GROUP BY needs an aggregate in the select list or in HAVING",
                hint="Add one, for instance COUNT(*).",
                position=self.select.position,
            )
        for call in calls:
            self._check_call(call)
        self._refuse_ungrouped()
        for ref in self._ungrouped(self.having) if self.having is not None else ():
            raise BindError(
                f'HAVING uses column "{ref.name}", which is not in GROUP BY',
                hint="Filter rows with WHERE, before GROUP BY.",
                position=ref.position,
            )

    def _refuse_ungrouped(self) -> None:
        for expression in (column.expression for column in self.projection):
            for ref in self._ungrouped(expression):
                within = None if expression == ref else f"It is in {format_expression(expression)}."
                raise BindError(
                    f'column "{ref.name}" is neither aggregated nor in GROUP BY',
                    detail=within,
                    hint=f"Add {format_expression(ref)} to GROUP BY, or aggregate it.",
                    position=ref.position,
                )

    def _check_grouped(self, calls: Sequence[Call]) -> None:
        if self.group_by:
            return
        if calls:
            raise BindError(
                f"the aggregate {calls[0].shown} needs a GROUP BY",
                hint="Group by a constant to aggregate everything: SELECT 1 AS k, … GROUP BY 1.",
                position=calls[0].position,
            )
        raise BindError(
            "HAVING needs a GROUP BY",
            hint="Filter rows with WHERE.",
            position=self.select.having.position if self.select.having is not None else None,
        )

    def _check_group_by(self) -> None:
        if self.select.window is not None and not self.stream:
            raise NotSupported(
                "WINDOW is only allowed on streams, not on tables",
                detail="A table has one current row for each key, regardless of time.",
                hint="Leave WINDOW out, or declare a stream over the table's topic and group that.",
                position=self.select.window.position,
            )
        for index, expression in enumerate(self.group_by):
            for call in aggregates(expression):
                raise BindError(f"GROUP BY cannot contain the aggregate {call.shown}", position=call.position)
            if expression in self.group_by[:index]:
                text = format_expression(expression)
                raise BindError(f"GROUP BY has {text} twice", hint="Leave one out.", position=expression.position)
            if self.select.window is not None:
                _refuse_bounds(expression, "GROUP BY")
            self.relation.type_of(expression)

    def _check_call(self, call: Call) -> None:
        for argument in call.arguments:
            for inner in aggregates(argument):
                raise BindError(
                    f"aggregates cannot be nested: {inner.shown} in {call.shown}",
                    hint=f"Compute {inner.shown} in a table first, and aggregate that.",
                    position=inner.position,
                )
            if self.select.window is not None:
                _refuse_bounds(argument, call.name)
        form = resolve(call, [argument_type(argument, self.relation.scope) for argument in call.arguments]).form
        assert isinstance(form, AggregateForm)
        for index in sorted(index % len(call.arguments) for index in form.constants):
            argument = call.arguments[index]
            if any(column_refs(argument)):
                raise BindError(
                    f"argument {index + 1} of {call.shown} must be a constant, not {format_expression(argument)}",
                    hint="Write a value that is the same for all rows.",
                    position=argument.position,
                )
        if not self.stream and form.undoing is None:
            raise not_over_tables(call)
        if form.merged_before is not None and self._stored_until_closed:
            raise not_until_closed(call.shown, call.position)

    @property
    def _stored_until_closed(self) -> bool:
        """Whether the query has windows that are stored apart until they close."""
        if self.select.window is None:
            return False
        return isinstance(self.select.window.window, SessionWindow) or self.select.emit is sql.Emit.FINAL

    def _ungrouped(self, expression: Expression) -> Iterator[ColumnRef]:
        """The columns of an expression that have no single value within a group."""
        if expression in self.group_by or (isinstance(expression, Call) and is_aggregate(expression.name)):
            return
        if isinstance(expression, ColumnRef):
            if self.select.window is None or expression.name not in WINDOW_BOUNDS:
                yield expression
            return
        parameters = expression.parameters if isinstance(expression, Lambda) else ()
        for child in children(expression):
            yield from (ref for ref in self._ungrouped(child) if ref.name not in parameters)


def _refuse_bounds(expression: Expression, clause: str) -> None:
    for ref in column_refs(expression):
        if ref.name in WINDOW_BOUNDS:
            raise BindError(
                f"{clause} cannot use {ref.name}",
                detail="The bounds of a window are known only after its rows are aggregated.",
                position=ref.position,
            )
