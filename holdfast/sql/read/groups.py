"""GROUP BY, HAVING and aggregates of a pull query: an inner SELECT groups the rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from holdfast.errors import BindError, NotSupported
from holdfast.runtime.compiler.calls import bind_aggregate
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.expressions.scope import ScopeColumn
from holdfast.runtime.expressions.text import format_expression
from holdfast.runtime.expressions.tree import Call, ColumnRef, Expression, Lambda
from holdfast.runtime.functions.registry import is_aggregate
from holdfast.sql.literals.constants import refuse_constants
from holdfast.sql.query.aggregation import aggregates
from holdfast.sql.read.expressions import Expressions, unlabelled
from holdfast.sql.read.names import ReadSource, VisibleRelations
from holdfast.sql.syntax.walk import rewrite

GROUPS = "g"


@dataclass
class Grouping:
    """Rows grouped by keys. `bound` adds the aggregates that an expression needs; `sql` contains all of them."""

    rows: Expressions
    keys: Sequence[Expression]
    dialect: Dialect
    _items: list[str] = field(default_factory=list)
    _computed: list[ScopeColumn] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._labels = {source.label for source in self.rows.visible.sources}
        self._columns: dict[ColumnRef, str] = {}
        self._substitutes: dict[Expression, ColumnRef] = {}
        for key in self.keys:
            bound = self.rows.without_queries(key)
            name = self._item(self.rows.text(bound))
            if isinstance(key, ColumnRef) and key.qualifier in self._labels:
                self._columns.setdefault(key, name)
            else:
                self._substitutes.setdefault(key, self._compute(key, name, bound))
        self.groups = self.rows.over_groups(self._visible(), self._computed)

    def _item(self, text: str) -> str:
        self._items.append(f"{text} AS {GROUPS}{len(self._items)}")
        return f"{GROUPS}.{GROUPS}{len(self._items) - 1}"

    def _compute(self, key: Expression, sql: str, bound: Expression) -> ColumnRef:
        text = format_expression(unlabelled(key))
        ref = ColumnRef(f"{text} #{len(self._computed)}", None, key.position)
        self._computed.append(ScopeColumn(ref.name, self.rows.type_of(bound), sql))
        return ref

    def _visible(self) -> VisibleRelations:
        """The relations, reduced to the columns that are keys."""
        sources = []
        for source in self.rows.visible.sources:
            columns = [
                replace(column, sql=sql)
                for column in source.columns
                if (sql := self._columns.get(ColumnRef(column.name, source.label))) is not None
            ]
            sources.append(ReadSource(source.alias, source.label, tuple(columns)))
        return VisibleRelations(tuple(sources), self.rows.visible.outer)

    def bound(self, resolved: Expression) -> Expression:
        """A resolved expression over the groups."""

        def change(node: Expression, hidden: frozenset[str]) -> Expression | None:
            if node in self._substitutes:
                return self._substitutes[node]
            match node:
                case Call() if is_aggregate(node.name):
                    self._substitutes[node] = self._aggregate(node)
                    return self._substitutes[node]
                case ColumnRef(name, None) if name in hidden:
                    return node
                case ColumnRef() if node.qualifier in self._labels and node not in self._columns:
                    raise BindError(
                        f'column "{node.name}" is neither aggregated nor in GROUP BY',
                        hint=f"Add {format_expression(unlabelled(node))} to GROUP BY, or aggregate it.",
                        position=node.position,
                    )
                case Lambda(parameters, body):
                    inner = hidden | set(parameters)
                    return replace(node, body=rewrite(body, lambda child: change(child, inner)))
            return None

        return self.groups.without_queries(rewrite(resolved, lambda node: change(node, frozenset())))

    def _aggregate(self, call: Call) -> ColumnRef:
        for argument in call.arguments:
            for inner in aggregates(argument):
                raise BindError(
                    f"aggregates cannot be nested: {inner.shown} in {call.shown}",
                    hint=f"Compute {inner.shown} in a subquery, and select from that.",
                    position=inner.position,
                )
        refuse_constants(call)
        arguments = tuple(self.rows.without_queries(argument) for argument in call.arguments)
        bound = bind_aggregate(replace(call, arguments=arguments), self.rows.scope, dialect=self.dialect)
        if bound.form.needs_records:
            raise NotSupported(
                f"the aggregate {call.shown} cannot be used in a pull query",
                detail="It depends on the order of records, which the rows of a table do not have.",
                position=call.position,
            )
        name = self._item(bound.read(self.dialect))
        ref = ColumnRef(f"{format_expression(unlabelled(call))} #{len(self._computed)}", None, call.position)
        self._computed.append(ScopeColumn(ref.name, bound.returns, name))
        return ref

    def sql(self, from_: str) -> str:
        """The groups as a relation; `from_` is the FROM clause of the rows."""
        by = f" GROUP BY {', '.join(str(i + 1) for i in range(len(self.keys)))}" if self.keys else ""
        # Without keys there is one group, even if there are no rows.
        return f"(SELECT {', '.join(self._items) or 'COUNT(*) AS nothing'} FROM {from_}{by}) AS {GROUPS}"
