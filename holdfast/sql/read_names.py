"""What a name means inside a query that reads: the columns of its relations, then those of the queries around it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from holdfast.catalog.objects import IndexedView, Table
from holdfast.errors import BindError, Position, UnknownColumn, UnknownObject
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.expressions.tree import ColumnRef, Expression, Lambda
from holdfast.sql.relation import WINDOW_BOUNDS
from holdfast.sql.statements import QueryRef
from holdfast.sql.time_texts import read_time_texts
from holdfast.sql.walk import rewrite
from holdfast.types import Scalar, SqlType


@dataclass(frozen=True, slots=True)
class ReadColumn:
    """A column of a relation and the SQL by which engines know it; a `*` leaves a hidden one out."""

    name: str
    type: SqlType
    sql: str
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class ReadSource:
    """A relation of a FROM. `label` is what resolved expressions call it: no relation in sight has the same.

    `relation` is what the SQL calls it, when it is a table.
    """

    alias: str
    label: str
    columns: tuple[ReadColumn, ...]
    relation: str | None = None

    def find(self, name: str) -> ReadColumn | None:
        return next((column for column in self.columns if column.name == name), None)


def table_columns(table: Table) -> tuple[ReadColumn, ...]:
    """The columns of a table, as the store has them; a view has those that it shows, and no others."""
    found = [ReadColumn(c.name, c.type, f"k{i}") for i, c in enumerate(table.schema.key)]
    found += [ReadColumn(c.name, c.type, f"c{i}") for i, c in enumerate(table.schema.value)]
    if isinstance(table, IndexedView):
        named = {column.name: column for column in found}
        return tuple(named[name] for name in table.columns)
    taken = {column.name for column in found}
    extra = [ReadColumn("ROWTIME", Scalar.BIGINT, "ts", hidden=True)]
    if table.window is not None:
        bounds = enumerate(WINDOW_BOUNDS.items(), start=len(table.schema.key))
        extra += [ReadColumn(name, type_, f"k{i}", hidden=True) for i, (name, type_) in bounds]
    return (*found, *(column for column in extra if column.name not in taken))


@dataclass(frozen=True, slots=True)
class Sight:
    """The relations that an expression can name, innermost first."""

    sources: tuple[ReadSource, ...]
    outer: "Sight | None" = None

    def also(self, source: ReadSource) -> "Sight":
        return replace(self, sources=(*self.sources, source))

    def label(self, alias: str) -> str:
        """A label for another relation of this alias."""
        taken = {source.label for source in self._all()}
        return (
            alias if alias not in taken else next(f"{alias}_{i}" for i in range(2, 999) if f"{alias}_{i}" not in taken)
        )

    def scope(self, computed: Sequence[ScopeColumn] = ()) -> Scope:
        """All columns in sight under their labels, and columns that were computed."""
        columns = [
            ScopeColumn(column.name, column.type, column.sql, source.label)
            for source in self._all()
            for column in source.columns
        ]
        return Scope.of([*columns, *computed], relation=self.name)

    @property
    def name(self) -> str:
        return " or ".join(source.alias for source in self.sources)

    def _all(self) -> Iterator[ReadSource]:
        yield from self.sources
        if self.outer is not None:
            yield from self.outer._all()

    # ---- names

    def resolved(self, expression: Expression) -> Expression:
        """The expression with every column under the label of its relation; queries inside it are left alone."""

        def change(node: Expression, hidden: frozenset[str]) -> Expression | None:
            match node:
                case QueryRef():
                    operand = node.operand
                    return node if operand is None else replace(node, operand=self.resolved(operand))
                case ColumnRef(name, None) if name in hidden:
                    return node
                case ColumnRef():
                    return ColumnRef(node.name, self.source_of(node).label, node.position)
                case Lambda(parameters, body):
                    inner = hidden | set(parameters)
                    return replace(node, body=rewrite(body, lambda child: change(child, inner)))
            return None

        return read_time_texts(rewrite(expression, lambda node: change(node, frozenset())))

    def source_of(self, ref: ColumnRef) -> ReadSource:
        """The relation that a column is of; an inner one hides an outer one."""
        sight: Sight | None = self
        while sight is not None:
            found = sight._own(ref)
            if found is not None:
                return found
            sight = sight.outer
        if ref.qualifier is not None and not any(source.alias == ref.qualifier for source in self._all()):
            known = sorted({source.alias for source in self._all()})
            raise UnknownObject(ref.qualifier, kind="relation", known=known, position=ref.position)
        known = [c.name for s in self.sources if ref.qualifier in (None, s.alias) for c in s.columns]
        raise UnknownColumn(ref.name, relation=ref.qualifier or self.name, known=known, position=ref.position)

    def _own(self, ref: ColumnRef) -> ReadSource | None:
        named = [source for source in self.sources if ref.qualifier in (None, source.alias)]
        found = [source for source in named if source.find(ref.name) is not None]
        if len(found) > 1:
            choices = " or ".join(f"{source.alias}.{ref.name}" for source in found)
            raise BindError(f'column "{ref.name}" is ambiguous', hint=f"Write {choices}.", position=ref.position)
        return found[0] if found else None

    def star(self, qualifier: str | None, position: Position | None) -> list[ColumnRef]:
        """The columns that `*` or `x.*` stands for."""
        if qualifier is not None and all(source.alias != qualifier for source in self.sources):
            known = [source.alias for source in self.sources]
            raise UnknownObject(qualifier, kind="relation", known=known, position=position)
        return [
            ColumnRef(column.name, source.label, position)
            for source in self.sources
            if qualifier in (None, source.alias)
            for column in source.columns
            if not column.hidden
        ]
