"""INSERT INTO."""

from dataclasses import dataclass, field

from holdfast.errors import Position
from holdfast.runtime.expressions.transform import position_of
from holdfast.runtime.expressions.tree import Expression
from holdfast.sql.syntax.statements.elements import Identifier, Property
from holdfast.sql.syntax.statements.parts import Children, ClausePart, identifier, pick
from holdfast.sql.syntax.statements.query import Select


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertValues:
    """`INSERT INTO name [(columns)] VALUES (…)`; `columns` is empty without a column list."""

    target: Identifier
    columns: tuple[Identifier, ...]
    values: tuple[Expression, ...]
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertSelect:
    """`INSERT INTO name [WITH (QUERY_ID = …)] SELECT …`."""

    target: Identifier
    properties: tuple[Property, ...]
    select: Select
    position: Position | None = field(default=None, compare=False, repr=False)


class InsertTransformer:
    """Builds these statements from the rules of the grammar."""

    def insert_values(self, children: Children) -> InsertValues:
        columns = children[2].value if len(children) > 3 else ()
        return InsertValues(
            target=identifier(children[1]),
            columns=columns,
            values=tuple(children[-1]),
            position=position_of(children[0]),
        )

    def insert_select(self, children: Children) -> InsertSelect:
        with_ = pick(children, ClausePart)
        return InsertSelect(
            target=identifier(children[1]),
            properties=with_.value if with_ else (),
            select=children[-1],
            position=position_of(children[0]),
        )
