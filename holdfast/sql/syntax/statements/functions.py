"""CREATE FUNCTION and DROP FUNCTION."""

from dataclasses import dataclass, field

from holdfast.errors import Position
from holdfast.runtime.expressions.transform import Name, position_of, unquote
from holdfast.sql.syntax.statements.elements import ColumnDefinition, Identifier
from holdfast.sql.syntax.statements.parts import Children, flags, identifier
from holdfast.types import SqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateFunction:
    """`CREATE [OR REPLACE] FUNCTION [IF NOT EXISTS] name(argument type, …) RETURNS type LANGUAGE name AS 'source'`."""

    name: Identifier
    arguments: tuple[ColumnDefinition, ...]
    returns: SqlType
    language: Identifier
    source: str
    or_replace: bool = False
    if_not_exists: bool = False
    source_position: Position | None = field(default=None, compare=False, repr=False)
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropFunction:
    """`DROP FUNCTION [IF EXISTS] name`."""

    name: Identifier
    if_exists: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


FunctionStatement = CreateFunction | DropFunction


class FunctionTransformer:
    """Builds these statements from the rules of the grammar."""

    def create_function(self, children: Children) -> CreateFunction:
        found = flags(children)
        name, language = (child for child in children if isinstance(child, Name))
        source = children[-1]
        return CreateFunction(
            name=identifier(name),
            arguments=tuple(child for child in children if isinstance(child, ColumnDefinition)),
            returns=children[children.index(language) - 1],
            language=identifier(language),
            source=unquote(str(source)),
            or_replace="or_replace" in found,
            if_not_exists="if_not_exists" in found,
            source_position=position_of(source),
            position=position_of(children[0]),
        )

    def function_argument(self, children: Children) -> ColumnDefinition:
        name, type_ = children
        return ColumnDefinition(str(name), type_, position=name.position)

    def drop_function(self, children: Children) -> DropFunction:
        return DropFunction(
            name=identifier(children[-1]),
            if_exists="if_exists" in flags(children),
            position=position_of(children[0]),
        )
