"""PARTITION BY: the new key of a stream."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.errors import BindError, NotSupported
from holdfast.runtime.expressions.text import format_expression
from holdfast.runtime.expressions.tree import ColumnRef, Expression, NullLiteral
from holdfast.sql.query.aggregation import aggregates
from holdfast.sql.query.projection import NameGenerator
from holdfast.sql.query.relation import PSEUDO_COLUMNS, WINDOW_BOUNDS, Relation
from holdfast.sql.syntax import statements as sql
from holdfast.types import Column


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The new key: `expressions` over the rows, and the columns that then hold their values.

    PARTITION BY NULL removes the key: it has an expression but no columns.
    """

    expressions: tuple[Expression, ...]
    columns: tuple[Column, ...]
    relation: Relation

    @property
    def added(self) -> tuple[Column, ...]:
        """The columns of no source."""
        own = {column.name for column in self.relation.scope.columns}
        return tuple(column for column in self.columns if column.name not in own)

    def star(self, star: sql.SelectStar) -> Iterator[tuple[str, Expression]]:
        """The new key, then the other columns in the order of the rows: values first, the old key last."""
        if star.qualifier is not None:
            yield from self.relation.star(star)
            return
        keys = [column.name for column in self.columns]
        rest = [name for name in row_columns(self.relation) if name not in keys]
        for name in (*keys, *rest):
            yield name, ColumnRef(name, None, star.position)


def row_columns(relation: Relation) -> Iterator[str]:
    """The columns of the rows to repartition. In joined rows, pseudo columns are ordinary columns."""
    hidden = () if relation.joined else (*PSEUDO_COLUMNS, *WINDOW_BOUNDS)
    for source in relation.sources:
        schema = source.object.schema
        for column in (*schema.value, *schema.headers, *source.pseudo_columns, *schema.key):
            if column.name not in hidden or column in source.columns:
                yield relation.planned(source, column.name)


def bind_partitioning(select: sql.Select, relation: Relation, *, stream: bool) -> Partitioning | None:
    """The PARTITION BY of a query; None without one."""
    if not select.partition_by:
        return None
    position = select.partition_by[0].position
    if not stream:
        raise NotSupported(
            "a table cannot be repartitioned",
            detail="Rows of different keys could get the same key.",
            hint="Aggregate it by the new key with GROUP BY.",
            position=position,
        )
    if select.group_by:
        raise BindError("a query cannot have both GROUP BY and PARTITION BY", position=position)
    if any(source.object.window is not None for source in relation.sources):
        raise NotSupported(
            "a windowed stream cannot be repartitioned",
            detail="Its window is part of its key.",
            hint="Aggregate it by the new key with GROUP BY.",
            position=position,
        )
    expressions = tuple(map(relation.resolve, select.partition_by))
    _check(expressions, select.partition_by)
    if isinstance(expressions[0], NullLiteral):
        return Partitioning(expressions, (), relation)
    names = NameGenerator(column.name for column in relation.scope.columns)
    columns = tuple(
        Column(expression.name if isinstance(expression, ColumnRef) else names.of(expression), type_)
        for expression, type_ in ((e, relation.type_of(e)) for e in expressions)
    )
    return Partitioning(expressions, columns, relation)


def _check(expressions: Sequence[Expression], written: Sequence[Expression]) -> None:
    for index, (expression, original) in enumerate(zip(expressions, written, strict=True)):
        for call in aggregates(expression):
            raise BindError(f"PARTITION BY cannot contain the aggregate {call.shown}", position=call.position)
        if isinstance(expression, NullLiteral) and len(expressions) > 1:
            raise BindError(
                "PARTITION BY NULL cannot be combined with other columns",
                hint="Leave out NULL or the other columns.",
                position=original.position,
            )
        if expression in expressions[:index]:
            text = format_expression(expression)
            raise BindError(f"PARTITION BY has {text} twice", position=original.position)
