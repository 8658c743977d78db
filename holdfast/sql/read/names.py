"""Name resolution in pull queries: first the columns of a query's relations, then those of the enclosing queries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from holdfast.catalog.objects import IndexedView, Table
from holdfast.errors import BindError, Position, UnknownColumn, UnknownObject
from holdfast.runtime import physical_columns as col
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.expressions.tree import ColumnRef, Expression, Lambda
from holdfast.sql.literals.timestamp import replace_time_literals
from holdfast.sql.query.relation import WINDOW_BOUNDS
from holdfast.sql.syntax.statements import QueryRef
from holdfast.sql.syntax.walk import rewrite
from holdfast.types import Scalar, SqlType


@dataclass(frozen=True, slots=True)
class ReadColumn:
    """A column of a relation and its SQL text; `*` leaves out hidden columns."""

    name: str
    type: SqlType
    sql: str
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class ReadSource:
    """A relation of a FROM clause. `label` qualifies its columns in resolved expressions; it is unique among the
    visible relations. `relation` is its name in the SQL if it is a table.
    """

    alias: str
    label: str
    columns: tuple[ReadColumn, ...]
    relation: str | None = None

    def find(self, name: str) -> ReadColumn | None:
        return next((column for column in self.columns if column.name == name), None)


def table_columns(table: Table) -> tuple[ReadColumn, ...]:
    """The columns of a table as named in the store; for an indexed view, only the columns of the view."""
    found = [ReadColumn(c.name, c.type, col.key(i)) for i, c in enumerate(table.schema.key)]
    found += [ReadColumn(c.name, c.type, col.value(i)) for i, c in enumerate(table.schema.value)]
    if isinstance(table, IndexedView):
        named = {column.name: column for column in found}
        return tuple(named[name] for name in table.columns)
    taken = {column.name for column in found}
    extra = [ReadColumn("ROWTIME", Scalar.BIGINT, col.ROW_TIME, hidden=True)]
    if table.window is not None:
        bounds = enumerate(WINDOW_BOUNDS.items(), start=len(table.schema.key))
        extra += [ReadColumn(name, type_, col.key(i), hidden=True) for i, (name, type_) in bounds]
    return (*found, *(column for column in extra if column.name not in taken))


@dataclass(frozen=True, slots=True)
class VisibleRelations:
    """The relations that an expression can refer to, innermost first."""

    sources: tuple[ReadSource, ...]
    outer: "VisibleRelations | None" = None

    def also(self, source: ReadSource) -> "VisibleRelations":
        return replace(self, sources=(*self.sources, source))

    def label(self, alias: str) -> str:
        """An unused label for a relation with this alias."""
        taken = {source.label for source in self._all()}
        return (
            alias if alias not in taken else next(f"{alias}_{i}" for i in range(2, 999) if f"{alias}_{i}" not in taken)
        )

    def scope(self, computed: Sequence[ScopeColumn] = ()) -> Scope:
        """All visible columns qualified by their labels, and the computed columns."""
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
        """The expression with every column qualified by the label of its relation; subqueries are left unchanged."""

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

        return replace_time_literals(rewrite(expression, lambda node: change(node, frozenset())))

    def source_of(self, ref: ColumnRef) -> ReadSource:
        """The relation of a column; inner relations hide outer ones."""
        visible: VisibleRelations | None = self
        while visible is not None:
            found = visible._own(ref)
            if found is not None:
                return found
            visible = visible.outer
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
        """The columns of `*` or `x.*`."""
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
