"""CREATE VIEW and DROP VIEW."""

from dataclasses import dataclass, field

from holdfast.errors import Position
from holdfast.runtime.expressions.transform import Name, position_of
from holdfast.sql.syntax.statements.elements import Identifier
from holdfast.sql.syntax.statements.parts import Children, ClausePart, flags, identifier, pick
from holdfast.sql.syntax.statements.query import Select


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateView:
    """`CREATE VIEW [IF NOT EXISTS] name [(columns)] AS query`."""

    name: Identifier
    columns: tuple[Identifier, ...]
    query: Select
    if_not_exists: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropView:
    """`DROP VIEW [IF EXISTS] name [CASCADE]`."""

    name: Identifier
    if_exists: bool = False
    cascade: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


ViewStatement = CreateView | DropView


class ViewTransformer:
    """Builds these statements from the rules of the grammar."""

    def create_view(self, children: Children) -> CreateView:
        name, columns = pick(children, Name), pick(children, ClausePart)
        assert name is not None
        return CreateView(
            name=identifier(name),
            columns=columns.value if columns else (),
            query=children[-1],
            if_not_exists="if_not_exists" in flags(children),
            position=position_of(children[0]),
        )

    def drop_view(self, children: Children) -> DropView:
        name, found = pick(children, Name), flags(children)
        assert name is not None
        return DropView(
            name=identifier(name),
            if_exists="if_exists" in found,
            cascade="cascade" in found,
            position=position_of(children[0]),
        )
