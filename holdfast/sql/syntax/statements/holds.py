"""CREATE, ALTER and DROP HOLD."""

from dataclasses import dataclass, field

from holdfast.errors import BadTime, Position
from holdfast.runtime.expressions.transform import Name, position_of, unquote
from holdfast.runtime.expressions.tree import Expression, StringLiteral
from holdfast.sql.syntax.span import INTERVAL
from holdfast.sql.syntax.statements.elements import Identifier
from holdfast.sql.syntax.statements.parts import Children, flags, identifier


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateHold:
    """`CREATE HOLD [name] ON object[, …] [AT time] [WITH (MAX LAG = duration)]`."""

    name: Identifier | None
    on: tuple[Identifier, ...]
    at: Expression | None = None
    max_lag: StringLiteral | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AdvanceHold:
    """`ALTER HOLD name ADVANCE [TO time]`."""

    name: Identifier
    to: Expression | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RenameHold:
    """`ALTER HOLD name RENAME TO name`."""

    name: Identifier
    to: Identifier
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DropHold:
    """`DROP HOLD [IF EXISTS] name`."""

    name: Identifier
    if_exists: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


HoldStatement = CreateHold | RenameHold | DropHold
"""The statements that change the catalog; ADVANCE only changes a time in the store."""


@dataclass(frozen=True, slots=True)
class _HoldAt:
    time: Expression


@dataclass(frozen=True, slots=True)
class _MaxLag:
    text: StringLiteral


class HoldTransformer:
    """Builds these statements from the rules of the grammar."""

    def create_hold(self, children: Children) -> CreateHold:
        keyword, *rest = children
        return CreateHold(
            name=identifier(rest[0]) if isinstance(rest[0], Name) else None,
            on=next(part for part in rest if isinstance(part, tuple)),
            at=next((part.time for part in rest if isinstance(part, _HoldAt)), None),
            max_lag=next((part.text for part in rest if isinstance(part, _MaxLag)), None),
            position=position_of(keyword),
        )

    def held(self, children: Children) -> tuple[Identifier, ...]:
        return tuple(identifier(name) for name in children)

    def hold_at(self, children: Children) -> _HoldAt:
        return _HoldAt(children[0])

    def hold_with(self, children: Children) -> _MaxLag:
        lag: _MaxLag = children[0]
        return lag

    def max_lag(self, children: Children) -> _MaxLag:
        """A duration, optionally with INTERVAL before or after it."""
        text = next(child for child in children if not isinstance(child, Name))
        for word in (child for child in children if isinstance(child, Name)):
            if str(word).upper() != INTERVAL:
                raise BadTime(f"{word} is not a duration type", hint="Write '3h'::INTERVAL.", position=word.position)
        return _MaxLag(StringLiteral(unquote(str(text)), position_of(text)))

    def advance_hold(self, children: Children) -> AdvanceHold:
        keyword, name, *to = children
        return AdvanceHold(identifier(name), to[0] if to else None, position_of(keyword))

    def rename_hold(self, children: Children) -> RenameHold:
        keyword, name, to = children
        return RenameHold(identifier(name), identifier(to), position_of(keyword))

    def drop_hold(self, children: Children) -> DropHold:
        return DropHold(identifier(children[-1]), "if_exists" in flags(children), position_of(children[0]))
