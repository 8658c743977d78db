"""CREATE TYPE and DROP TYPE."""

from dataclasses import dataclass, field

from holdfast.errors import Position
from holdfast.runtime.expressions.transform import Name, position_of
from holdfast.sql.syntax.statements.elements import Identifier
from holdfast.sql.syntax.statements.parts import Children, flags, identifier, pick
from holdfast.types import SqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateType:
    """`CREATE TYPE [IF NOT EXISTS] name AS type`."""

    name: Identifier
    type: SqlType
    if_not_exists: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropType:
    """`DROP TYPE [IF EXISTS] name`."""

    name: Identifier
    if_exists: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


TypeStatement = CreateType | DropType


class TypeTransformer:
    """Builds these statements from the rules of the grammar."""

    def create_type(self, children: Children) -> CreateType:
        name = pick(children, Name)
        assert name is not None
        return CreateType(
            name=identifier(name),
            type=children[-1],
            if_not_exists="if_not_exists" in flags(children),
            position=position_of(children[0]),
        )

    def drop_type(self, children: Children) -> DropType:
        return DropType(
            name=identifier(children[-1]),
            if_exists="if_exists" in flags(children),
            position=position_of(children[0]),
        )
