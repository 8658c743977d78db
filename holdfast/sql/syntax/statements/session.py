"""Statements about the session: transactions, properties, variables."""

from dataclasses import dataclass, field

from holdfast.errors import Position
from holdfast.runtime.expressions.transform import position_of, unquote
from holdfast.sql.syntax.statements.elements import Identifier
from holdfast.sql.syntax.statements.parts import Children, Flag, flags, identifier


@dataclass(frozen=True, slots=True)
class Begin:
    """`BEGIN [READ ONLY]`: later queries read at one time, or later changes are applied together."""

    read_only: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class End:
    """`COMMIT` or `ROLLBACK`, which differ only for a transaction with changes."""

    word: str
    position: Position | None = field(default=None, compare=False, repr=False)

    @property
    def commits(self) -> bool:
        return self.word.upper() == "COMMIT"


@dataclass(frozen=True, slots=True)
class SetProperty:
    name: str
    value: str
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class UnsetProperty:
    name: str
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Define:
    """`DEFINE name = 'value'`: in later statements, `${name}` is replaced by the value."""

    name: Identifier
    value: str
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Undefine:
    name: Identifier
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Refused:
    """A statement of ksqlDB or Materialize that this release does not support, by its leading words."""

    words: str
    position: Position | None = field(default=None, compare=False, repr=False)


SessionStatement = Begin | End | SetProperty | UnsetProperty | Define | Undefine | Refused


class SessionTransformer:
    """Builds these statements from the rules of the grammar."""

    def begin(self, children: Children) -> Begin:
        return Begin("only_reads" in flags(children), position_of(children[0]))

    def only_reads(self, _: Children) -> Flag:
        return Flag("only_reads")

    def commit(self, children: Children) -> End:
        return End(str(children[0]).upper(), position_of(children[0]))

    rollback = commit

    def set_property(self, children: Children) -> SetProperty:
        set_, name, value = children
        return SetProperty(unquote(str(name)), unquote(str(value)), position_of(set_))

    def unset_property(self, children: Children) -> UnsetProperty:
        return UnsetProperty(unquote(str(children[1])), position_of(children[0]))

    def define(self, children: Children) -> Define:
        define, name, value = children
        return Define(identifier(name), unquote(str(value)), position_of(define))

    def undefine(self, children: Children) -> Undefine:
        return Undefine(identifier(children[1]), position_of(children[0]))
