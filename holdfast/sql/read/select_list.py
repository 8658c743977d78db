"""The select list of a pull query, its groups and the order of its rows."""

from collections.abc import Sequence

from holdfast.errors import BindError, TypeMismatch
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.expressions.tree import ColumnRef, Expression, FieldRef, IntegerLiteral
from holdfast.sql.query.aggregation import aggregates
from holdfast.sql.query.projection import NameGenerator
from holdfast.sql.read.blocks import Sort
from holdfast.sql.read.expressions import Expressions
from holdfast.sql.read.groups import Grouping
from holdfast.sql.syntax import statements as sql
from holdfast.sql.syntax.walk import column_refs
from holdfast.types import Column, Struct


def output_number(expression: Expression, columns: Sequence[Column]) -> int | None:
    """The index of the result column that ORDER BY refers to by number or by name; None for other expressions."""
    match expression:
        case IntegerLiteral(number):
            if 1 <= number <= len(columns):
                return number - 1
            raise BindError(f"ORDER BY position {number} is not in the select list", position=expression.position)
        case ColumnRef(name, None) if not isinstance(expression, sql.QueryRef):
            return next((i for i, column in enumerate(columns) if column.name == name), None)
        case _:
            return None


class SelectList:
    """The select list of one SELECT, over its rows or their groups; `texts` are the SQL texts of `columns`."""

    def __init__(self, select: sql.Select, rows: Expressions, dialect: Dialect) -> None:
        self._select, self._rows = select, rows
        resolved = self._named()
        self._resolved = [expression for _, expression in resolved]
        self.grouping = self._grouping(dialect)
        self._over = self.grouping.groups if self.grouping is not None else rows
        bound = [self._bound(expression) for expression in self._resolved]
        types = [self._over.type_of(expression) for expression in bound]
        self.columns = tuple(Column(name, type_) for (name, _), type_ in zip(resolved, types, strict=True))
        self.texts = [self._over.text(expression) for expression in bound]
        self._check_names()

    def _bound(self, resolved: Expression) -> Expression:
        return self.grouping.bound(resolved) if self.grouping is not None else self._rows.without_queries(resolved)

    def _check_names(self) -> None:
        names = [column.name for column in self.columns]
        for name in names:
            if names.count(name) > 1:
                raise BindError(
                    f'the result has two columns named "{name}"',
                    hint="Give one of them another name with AS.",
                    position=self._select.position,
                )

    # ---- items

    def _named(self) -> list[tuple[str, Expression]]:
        """Names and resolved expressions. Columns with the same name are prefixed with their relation's alias."""
        found = self._expanded()
        names = [name or plain for name, plain, _ in found]
        aliases = {source.label: source.alias for source in self._rows.visible.sources}
        named = []
        for name, plain, expression in found:
            shown = name or plain
            if name is None and names.count(plain) > 1 and isinstance(expression, ColumnRef):
                shown = f"{aliases.get(expression.qualifier or '', '')}_{plain}".lstrip("_")
            named.append((shown, expression))
        return named

    def _expanded(self) -> list[tuple[str | None, str, Expression]]:
        """Aliases, default names and resolved expressions, with stars expanded."""
        visible = self._rows.visible
        names = NameGenerator(column.name for source in visible.sources for column in source.columns)
        found: list[tuple[str | None, str, Expression]] = []
        for item in self._select.items:
            match item:
                case sql.SelectStar(qualifier=qualifier):
                    found += [(None, ref.name, ref) for ref in visible.star(qualifier, item.position)]
                case sql.SelectFields():
                    found += self._fields(item)
                case sql.SelectExpression(expression=sql.QueryRef() as query):
                    found.append((item.alias or names.of(query), "", visible.resolved(query)))
                case sql.SelectExpression(expression=ColumnRef() as ref):
                    found.append((item.alias, ref.name, visible.resolved(ref)))
                case sql.SelectExpression():
                    expression = visible.resolved(item.expression)
                    found.append((item.alias or names.of(expression), "", expression))
        return found

    def _fields(self, item: sql.SelectFields) -> list[tuple[str | None, str, Expression]]:
        base = self._rows.visible.resolved(item.base)
        type_ = self._rows.type_of(self._rows.without_queries(base))
        if not isinstance(type_, Struct):
            raise TypeMismatch(f"->* needs a STRUCT, not {type_}", position=item.position)
        return [(field.name, "", FieldRef(base, field.name, item.position)) for field in type_.fields]

    # ---- groups

    def _grouping(self, dialect: Dialect) -> Grouping | None:
        select = self._select
        sorted_by = [item.expression for item in select.order_by]
        expressions = [*self._resolved, *sorted_by]
        one_group = any(clause.name == "GROUP BY ()" for clause in select.clauses)
        grouped = one_group or select.group_by or select.having is not None or any(map(aggregates, expressions))
        if not grouped:
            return None
        keys = [self._key(expression) for expression in select.group_by]
        return Grouping(self._rows, keys, dialect)

    def _key(self, key: Expression) -> Expression:
        """The resolved grouping expression; a number or a name may refer to a column of the select list."""
        for call in aggregates(key):
            raise BindError(f"GROUP BY cannot contain the aggregate {call.shown}", position=call.position)
        if isinstance(key, IntegerLiteral) and 1 <= key.value <= len(self._resolved):
            selected = self._resolved[key.value - 1]
            if not aggregates(selected):
                return selected
        if isinstance(key, ColumnRef) and key.qualifier is None:
            own = any(source.find(key.name) is not None for source in self._rows.visible.sources)
            named = [i for i, item in enumerate(self._select.items) if getattr(item, "alias", None) == key.name]
            stars = any(not isinstance(item, sql.SelectExpression) for item in self._select.items)
            if not own and named and not stars:
                return self._resolved[named[0]]
        return self._rows.visible.resolved(key)

    def grouped(self, from_: str) -> str:
        assert self.grouping is not None
        return self.grouping.sql(from_)

    def having(self) -> str:
        """The SQL text of HAVING; empty without one."""
        if self._select.having is None:
            return ""
        assert self.grouping is not None
        bound = self.grouping.bound(self._rows.visible.resolved(self._select.having))
        return self._over.filter(bound, clause="HAVING")

    # ---- order

    def order(self) -> list[Sort]:
        """The sort keys: output columns such as `r0` with DISTINCT, else expressions. Constants are left out."""
        found = []
        for item in self._select.order_by:
            text = self._sort_text(item.expression)
            if text is not None:
                found.append(Sort(text, item.descending, item.nulls_first))
        return found

    def _sort_text(self, expression: Expression) -> str | None:
        number = output_number(expression, self.columns)
        resolved = self._rows.visible.resolved(expression) if number is None else self._resolved[number]
        if number is None and resolved in self._resolved:
            number = self._resolved.index(resolved)
        if self._select.distinct:
            if number is None:
                raise BindError(
                    "with DISTINCT, rows can only be sorted by selected expressions", position=expression.position
                )
            return f"r{number}"
        if not any(column_refs(resolved)) and not aggregates(resolved):
            return None
        return self.texts[number] if number is not None else self._over.text(self._bound(resolved))
