"""The columns of a result: stars spread out, names given, every expression typed."""

from collections.abc import Iterator

from holdfast.errors import BindError, TypeMismatch
from holdfast.runtime.expressions.tree import ColumnRef, Expression, FieldRef
from holdfast.sql import statements as sql
from holdfast.sql.bound import BoundColumn
from holdfast.sql.relation import Relation
from holdfast.types import Struct

AUTO_NAME = "KSQL_COL_"


def bind_projection(items: tuple[sql.SelectItem, ...], relation: Relation) -> tuple[BoundColumn, ...]:
    """The columns that a select list gives, in its order."""
    names = _Names(relation)
    columns: list[BoundColumn] = []
    for item in items:
        for name, expression in _spread(item, relation, names):
            columns.append(BoundColumn(name, expression, relation.type_of(expression)))
            if sum(column.name == name for column in columns) > 1:
                raise BindError(
                    f'the result has two columns named "{name}"',
                    hint="Give one of them another name with AS.",
                    position=item.position,
                )
    return tuple(columns)


class _Names:
    """Names for expressions without one, clear of the relation's columns."""

    def __init__(self, relation: Relation) -> None:
        self._taken = {column.name for column in relation.object.schema.columns}
        self._next = 0
        self._fields: dict[str, int] = {}

    def expression(self) -> str:
        while True:
            name = f"{AUTO_NAME}{self._next}"
            self._next += 1
            if name not in self._taken:
                return name

    def field(self, name: str) -> str:
        """A struct's field keeps its name where it can."""
        while True:
            number = self._fields.get(name, 0)
            self._fields[name] = number + 1
            candidate = f"{name}_{number}" if number else name
            if candidate not in self._taken:
                return candidate


def _spread(item: sql.SelectItem, relation: Relation, names: _Names) -> Iterator[tuple[str, Expression]]:
    match item:
        case sql.SelectStar():
            relation.check_qualifier(item)
            schema = relation.object.schema
            for column in (*schema.key, *schema.value, *schema.headers):
                yield column.name, ColumnRef(column.name, None, item.position)
        case sql.SelectFields():
            base = relation.resolve(item.base)
            type_ = relation.type_of(base)
            if not isinstance(type_, Struct):
                raise TypeMismatch(f"only a STRUCT has fields to spread, not {type_}", position=item.position)
            for field in type_.fields:
                yield field.name, FieldRef(base, field.name, item.position)
        case sql.SelectExpression():
            expression = relation.resolve(item.expression)
            yield item.alias or _name(expression, names), expression


def _name(expression: Expression, names: _Names) -> str:
    match expression:
        case ColumnRef(name):
            return name
        case FieldRef(_, name):
            return names.field(name)
        case _:
            return names.expression()
