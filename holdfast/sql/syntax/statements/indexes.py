"""CREATE, ALTER and DROP INDEX."""

from dataclasses import dataclass, field

from holdfast.errors import Position
from holdfast.runtime.expressions.transform import Name, position_of
from holdfast.runtime.expressions.tree import Expression
from holdfast.sql.syntax.statements.elements import Identifier, Property
from holdfast.sql.syntax.statements.parts import Children, ClausePart, Flag, flags, identifier, pick
from holdfast.sql.syntax.statements.relations import RETAIN_HISTORY


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateIndex:
    """`CREATE [DEFAULT] INDEX [IF NOT EXISTS] [name] ON object [(expression, …)] [WITH (RETAIN HISTORY FOR …)]`."""

    name: Identifier | None
    on: Identifier
    expressions: tuple[Expression, ...] = ()
    properties: tuple[Property, ...] = ()
    default: bool = False
    if_not_exists: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterIndex:
    """`ALTER INDEX name SET|RESET (RETAIN HISTORY …)`; the value of `retain` is None for the default."""

    name: Identifier
    retain: Property
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropIndex:
    """`DROP INDEX [IF EXISTS] name [CASCADE]`."""

    name: Identifier
    if_exists: bool = False
    cascade: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


IndexStatement = CreateIndex | AlterIndex | DropIndex


class IndexTransformer:
    """Builds these statements from the rules of the grammar."""

    def create_index(self, children: Children) -> CreateIndex:
        found, names = flags(children), [child for child in children if isinstance(child, Name)]
        parts = {part.name: part.value for part in children if isinstance(part, ClausePart)}
        return CreateIndex(
            name=identifier(names[0]) if len(names) > 1 else None,
            on=identifier(names[-1]),
            expressions=parts.get("index_by", ()),
            properties=parts.get("with", ()),
            default="default_index" in found,
            if_not_exists="if_not_exists" in found,
            position=position_of(children[0]),
        )

    def default_index(self, _: Children) -> Flag:
        return Flag("default_index")

    def index_by(self, children: Children) -> ClausePart:
        return ClausePart("index_by", tuple(children))

    def alter_index(self, children: Children) -> AlterIndex:
        keyword, name, *_, retained = children
        return AlterIndex(name=identifier(name), retain=retained, position=position_of(keyword))

    def reset_index(self, children: Children) -> AlterIndex:
        position = position_of(children[0])
        retained = Property(RETAIN_HISTORY, None, position)
        return AlterIndex(name=identifier(children[1]), retain=retained, position=position)

    def drop_index(self, children: Children) -> DropIndex:
        name, found = pick(children, Name), flags(children)
        assert name is not None
        return DropIndex(
            name=identifier(name),
            if_exists="if_exists" in found,
            cascade="cascade" in found,
            position=position_of(children[0]),
        )
