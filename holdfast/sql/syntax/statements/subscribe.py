"""SUBSCRIBE."""

from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import Position, SyntaxProblem
from holdfast.runtime.expressions.transform import position_of
from holdfast.runtime.expressions.tree import Expression
from holdfast.sql.syntax.statements.elements import Identifier, Property
from holdfast.sql.syntax.statements.parts import Children, ClausePart, identifier
from holdfast.sql.syntax.statements.query import AsOf, Select


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribe:
    """`SUBSCRIBE [TO] object | (query) …`. `key` are the columns of `ENVELOPE UPSERT (KEY (…))`."""

    target: Identifier | Select
    options: tuple[Property, ...] = ()
    as_of: AsOf | None = None
    up_to: Expression | None = None
    key: tuple[Identifier, ...] = ()
    hold: Identifier | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


class SubscribeTransformer:
    """Builds these statements from the rules of the grammar."""

    def subscribe(self, children: Children) -> Subscribe:
        target = next(child for child in children if isinstance(child, Identifier | Select))
        parts = [child for child in children if isinstance(child, ClausePart)]
        value: dict[str, Any] = {}
        for part in parts:
            if part.name in value:
                raise SyntaxProblem(f"{part.name} is specified twice", position=part.position)
            value[part.name] = part.value
        options = value.get("WITH", ())
        return Subscribe(
            target=target,
            options=tuple(option for option in options if isinstance(option, Property)),
            hold=next((option for option in options if isinstance(option, Identifier)), None),
            as_of=value.get("AS OF"),
            up_to=value.get("UP TO"),
            key=value.get("ENVELOPE", ()),
            position=position_of(children[0]),
        )

    def subscribed(self, children: Children) -> Identifier | Select:
        target = children[0]
        if isinstance(target, Select):
            return target
        return Identifier(".".join(map(str, children)), target.position)

    def subscribe_with(self, children: Children) -> ClausePart:
        return ClausePart("WITH", tuple(children[1:]), position_of(children[0]))

    def subscribe_option(self, children: Children) -> Property:
        """An option without a value is true."""
        name, *value = children
        return Property(str(name).upper(), value[0] if value else True, position_of(name))

    def subscribe_hold(self, children: Children) -> Identifier:
        return identifier(children[0])

    def up_to(self, children: Children) -> ClausePart:
        return ClausePart("UP TO", children[1], position_of(children[0]))

    def envelope(self, children: Children) -> ClausePart:
        return ClausePart("ENVELOPE", tuple(map(identifier, children[1:])), position_of(children[0]))
