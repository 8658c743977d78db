"""GROUP BY, HAVING and aggregates of a reading query: rows are grouped in a SELECT of their own."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from holdfast.errors import BindError, NotSupported
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.expressions.scope import ScopeColumn
from holdfast.runtime.expressions.text import format_expression
from holdfast.runtime.expressions.tree import Call, ColumnRef, Expression, Lambda
from holdfast.runtime.functions.bound import bind_aggregate
from holdfast.runtime.functions.registry import is_aggregate
from holdfast.sql.aggregation import aggregates
from holdfast.sql.constants import refuse_constants
from holdfast.sql.read_expressions import Expressions, unlabelled
from holdfast.sql.read_names import ReadSource, Sight
from holdfast.sql.walk import rewrite

PLACE = "g"


@dataclass
class Grouping:
    """Rows grouped by keys. Asking for expressions adds the aggregates that they need; `sql` has all of them."""

    rows: Expressions
    keys: Sequence[Expression]
    dialect: Dialect
    _items: list[str] = field(default_factory=list)
    _computed: list[ScopeColumn] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._own = {source.label for source in self.rows.sight.sources}
        self._columns: dict[ColumnRef, str] = {}
        self._others: dict[Expression, ColumnRef] = {}
        for key in self.keys:
            bound = self.rows.without_queries(key)
            name = self._item(self.rows.text(bound))
            if isinstance(key, ColumnRef) and key.qualifier in self._own:
                self._columns.setdefault(key, name)
            else:
                self._others.setdefault(key, self._compute(key, name, bound))
        self.groups = self.rows.after(self._sight(), self._computed)

    def _item(self, text: str) -> str:
        self._items.append(f"{text} AS {PLACE}{len(self._items)}")
        return f"{PLACE}.{PLACE}{len(self._items) - 1}"

    def _compute(self, written: Expression, sql: str, bound: Expression) -> ColumnRef:
        text = format_expression(unlabelled(written))
        ref = ColumnRef(f"{text} #{len(self._computed)}", None, written.position)
        self._computed.append(ScopeColumn(ref.name, self.rows.type_of(bound), sql))
        return ref

    def _sight(self) -> Sight:
        """The relations with those of their columns that are keys."""
        sources = []
        for source in self.rows.sight.sources:
            kept = [
                replace(column, sql=sql)
                for column in source.columns
                if (sql := self._columns.get(ColumnRef(column.name, source.label))) is not None
            ]
            sources.append(ReadSource(source.alias, source.label, tuple(kept)))
        return Sight(tuple(sources), self.rows.sight.outer)

    def bound(self, resolved: Expression) -> Expression:
        """A resolved expression over the groups."""

        def change(node: Expression, hidden: frozenset[str]) -> Expression | None:
            if node in self._others:
                return self._others[node]
            match node:
                case Call() if is_aggregate(node.name):
                    self._others[node] = self._aggregate(node)
                    return self._others[node]
                case ColumnRef(name, None) if name in hidden:
                    return node
                case ColumnRef() if node.qualifier in self._own and node not in self._columns:
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
                    hint=f"Have {inner.shown} in a query of its own, and select from that.",
                    position=inner.position,
                )
        refuse_constants(call)
        arguments = tuple(self.rows.without_queries(argument) for argument in call.arguments)
        bound = bind_aggregate(replace(call, arguments=arguments), self.rows.scope, dialect=self.dialect)
        if bound.form.needs_records:
            raise NotSupported(
                f"the aggregate {call.shown} cannot be used in a query that reads",
                detail="It goes by the order of records, which the rows of a table do not have.",
                position=call.position,
            )
        name = self._item(bound.read(self.dialect))
        ref = ColumnRef(f"{format_expression(unlabelled(call))} #{len(self._computed)}", None, call.position)
        self._computed.append(ScopeColumn(ref.name, bound.returns, name))
        return ref

    def sql(self, from_: str) -> str:
        """The groups as a relation; `from_` are the rows."""
        by = f" GROUP BY {', '.join(str(i + 1) for i in range(len(self.keys)))}" if self.keys else ""
        # A group without keys is there even of no rows.
        return f"(SELECT {', '.join(self._items) or 'COUNT(*) AS nothing'} FROM {from_}{by}) AS {PLACE}"
