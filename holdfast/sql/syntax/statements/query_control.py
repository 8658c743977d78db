"""TERMINATE, PAUSE and RESUME of queries."""

from dataclasses import dataclass, field

from holdfast.errors import Position
from holdfast.runtime.expressions.transform import Name, position_of
from holdfast.sql.syntax.statements.elements import Identifier
from holdfast.sql.syntax.statements.parts import Children, identifier


@dataclass(frozen=True, slots=True)
class Terminate:
    """`TERMINATE query` or, with no query, `TERMINATE ALL`."""

    query: Identifier | None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pause:
    """`PAUSE query` or, with no query, `PAUSE ALL`."""

    query: Identifier | None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Resume:
    """`RESUME query` or, with no query, `RESUME ALL`."""

    query: Identifier | None
    position: Position | None = field(default=None, compare=False, repr=False)


QueryControlStatement = Terminate | Pause | Resume


class QueryControlTransformer:
    """Builds these statements from the rules of the grammar."""

    def terminate(self, children: Children) -> Terminate:
        return Terminate(_query(children), position_of(children[0]))

    def pause(self, children: Children) -> Pause:
        return Pause(_query(children), position_of(children[0]))

    def resume(self, children: Children) -> Resume:
        return Resume(_query(children), position_of(children[0]))


def _query(children: Children) -> Identifier | None:
    """The query that a statement names; None for all queries."""
    return identifier(children[1]) if isinstance(children[1], Name) else None
