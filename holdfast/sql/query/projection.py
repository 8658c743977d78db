"""The columns of a result: stars expanded, unnamed expressions named, every expression typed."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from holdfast.errors import BindError, TypeMismatch
from holdfast.runtime.expressions.tree import ColumnRef, Expression, FieldRef
from holdfast.sql.query.relation import Relation
from holdfast.sql.syntax import statements as sql
from holdfast.types import SqlType, Struct

AUTO_NAME = "KSQL_COL_"

Star = Callable[[sql.SelectStar], Iterable[tuple[str, Expression]]]


@dataclass(frozen=True, slots=True)
class BoundColumn:
    """One column of a result."""

    name: str
    expression: Expression
    type: SqlType


def bind_projection(
    items: tuple[sql.SelectItem, ...], relation: Relation, star: Star | None = None
) -> tuple[BoundColumn, ...]:
    """The columns of a select list, in its order; `star` replaces the relation's expansion of a star."""
    names = NameGenerator(column.name for source in relation.sources for column in source.columns)
    columns: list[BoundColumn] = []
    for item in items:
        for name, expression in _expand(item, relation, star or relation.star, names):
            columns.append(BoundColumn(name, expression, relation.type_of(expression)))
            if sum(column.name == name for column in columns) > 1:
                raise BindError(
                    f'the result has two columns named "{name}"',
                    hint="Give one of them another name with AS.",
                    position=item.position,
                )
    return tuple(columns)


class NameGenerator:
    """Generates names for unnamed expressions that do not clash with existing names."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._next = 0
        self._fields: dict[str, int] = {}

    def of(self, expression: Expression) -> str:
        """A field keeps its name if it is free; other expressions are numbered."""
        return self._field(expression.name) if isinstance(expression, FieldRef) else self._number()

    def _number(self) -> str:
        while True:
            name = f"{AUTO_NAME}{self._next}"
            self._next += 1
            if name not in self._taken:
                return name

    def _field(self, name: str) -> str:
        while True:
            number = self._fields.get(name, 0)
            self._fields[name] = number + 1
            candidate = f"{name}_{number}" if number else name
            if candidate not in self._taken:
                return candidate


def _expand(
    item: sql.SelectItem, relation: Relation, star: Star, names: NameGenerator
) -> Iterator[tuple[str, Expression]]:
    match item:
        case sql.SelectStar():
            yield from star(item)
        case sql.SelectFields():
            base = relation.resolve(item.base)
            type_ = relation.type_of(base)
            if not isinstance(type_, Struct):
                raise TypeMismatch(f"->* needs a STRUCT, not {type_}", position=item.position)
            for field in type_.fields:
                yield field.name, FieldRef(base, field.name, item.position)
        case sql.SelectExpression(expression=ColumnRef() as ref):
            yield item.alias or relation.name_of(ref), relation.resolve(ref)
        case sql.SelectExpression():
            expression = relation.resolve(item.expression)
            yield item.alias or names.of(expression), expression
