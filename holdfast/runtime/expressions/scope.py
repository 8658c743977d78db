"""The columns that an expression can name, with their types and their physical SQL."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from holdfast.errors import BindError, UnknownColumn
from holdfast.runtime.expressions.tree import ColumnRef
from holdfast.types import SqlType


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column under its SQL name; `sql` is its text in the engines (`c0`, `a1`)."""

    name: str
    type: SqlType
    sql: str = ""
    qualifier: str | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """The visible columns and, inside lambdas, their parameters, innermost first.

    `relation` is the name that errors show.
    """

    columns: tuple[ScopeColumn, ...]
    relation: str = ""
    parameters: tuple[tuple[ScopeColumn, ...], ...] = ()

    @staticmethod
    def of(columns: Iterable[ScopeColumn], *, relation: str = "") -> "Scope":
        return Scope(tuple(columns), relation)

    def find(self, ref: ColumnRef) -> ScopeColumn:
        """The column that a reference means. Columns do not hide each other: a name that several have is ambiguous."""
        if ref.qualifier is None:
            for parameters in self.parameters:
                for parameter in parameters:
                    if parameter.name == ref.name:
                        return parameter
        found = [
            column
            for column in self.columns
            if column.name == ref.name and (ref.qualifier is None or column.qualifier == ref.qualifier)
        ]
        if len(found) == 1:
            return found[0]
        if not found:
            known = [c.name for c in self.columns if ref.qualifier is None or c.qualifier == ref.qualifier]
            relation = ref.qualifier or self.relation
            raise UnknownColumn(ref.name, relation=relation, known=known, position=ref.position)
        choices = " or ".join(f"{c.qualifier}.{c.name}" if c.qualifier else c.name for c in found)
        raise BindError(f'column "{ref.name}" is ambiguous', hint=f"Write {choices}.", position=ref.position)

    def with_parameters(self, parameters: Iterable[ScopeColumn]) -> "Scope":
        """The scope inside a lambda: its parameters hide columns of the same name."""
        return replace(self, parameters=(tuple(parameters), *self.parameters))
