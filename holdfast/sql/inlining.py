"""Views in continuous queries: a view in FROM is replaced by what it reads, and its columns by their expressions.

That can be done where the two queries together are one that the planner has steps for: a view that filters, projects
and joins goes into any query, one that aggregates into a query that only filters and projects it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from holdfast.catalog.snapshot import Catalog
from holdfast.errors import BindError, HoldfastError, NotSupported, Position, UnknownColumn, UnknownObject
from holdfast.names import ObjectName, show
from holdfast.runtime.expressions.tree import Binary, ColumnRef, Expression, FieldRef, Lambda, Operator
from holdfast.runtime.plan.steps import JoinType
from holdfast.sql import statements as sql
from holdfast.sql.aggregation import aggregates
from holdfast.sql.projection import Names, bind_projection
from holdfast.sql.relation import WINDOW_BOUNDS, BoundSource, Relation, joined_name
from holdfast.sql.views import created_view
from holdfast.sql.walk import rewrite
from holdfast.types import Column, Struct

ANSWERED_ONCE = "The view can be read by a SELECT that is answered once, and by SUBSCRIBE."
NULLABLE_LEFT = (JoinType.RIGHT, JoinType.OUTER)
NULLABLE_RIGHT = (JoinType.LEFT, JoinType.OUTER)


def inlined(select: sql.Select, catalog: Catalog) -> sql.Select:
    """The query without views; itself, when it reads none."""
    written = _relations(select)
    if not any(each.query is None and each.full_name in catalog.views for each in written):
        return select
    sources = [_source(each, written, catalog) for each in written]
    return _Outer(select, tuple(sources)).merged()


def check_view(created: sql.CreateView, catalog: Catalog) -> None:
    """Refuse a view of a stream that no continuous query could read: nothing else can."""
    name, body = created.name, inlined(created.query, catalog)
    for refused in body.clauses:
        raise NotSupported(
            f"{refused.name} cannot be used in a view of a stream",
            detail="A stream has no current rows: what reads the view follows it, and cannot have this.",
            position=refused.position or body.position,
        )
    _of_view(created, sql.Relation(name.text, name.text, name.position), (), catalog)
    relation = _relation(body, catalog)
    bind_projection(body.items, relation)
    for clause, condition in (("WHERE", body.where), ("HAVING", body.having)):
        if condition is not None:
            relation.condition(condition, clause=clause)


@contextmanager
def told_of_views(select: sql.Select, catalog: Catalog) -> Iterator[None]:
    """Have an error about a query say which of what it reads is a view: it may name what the user did not write."""
    names = [f'"{each.full_name}"' for each in _relations(select) if each.full_name in catalog.views]
    try:
        yield
    except HoldfastError as error:
        if names and not isinstance(error, ViewRefused):
            said = f"{' and '.join(names)} stands here for the query of the view."
            error.detail = f"{error.detail} {said}" if error.detail else said
        raise


class ViewRefused(NotSupported):
    """A view that cannot be a part of the continuous query that reads it."""

    def __init__(self, view: str, why: str, position: Position | None, *, hint: str = ANSWERED_ONCE) -> None:
        super().__init__(
            f'a continuous query cannot read the view "{view}" here', detail=why, hint=hint, position=position
        )


@dataclass(frozen=True, slots=True)
class _Source:
    """A relation of the outer query. `body` is what stands for it: its own query for a view, itself for an object."""

    alias: str
    name: str
    columns: Mapping[str, Expression]
    """What its columns are, over the relations of the body."""
    starred: tuple[str, ...]
    body: sql.Select | None
    relation: sql.Relation

    @property
    def aggregates(self) -> bool:
        return self.body is not None and _aggregates(self.body, self.columns.values())

    def refuse(self, why: str) -> ViewRefused:
        hint = f"Keep the view's result, and read that: CREATE MATERIALIZED VIEW … AS SELECT * FROM {show(self.name)};"
        return ViewRefused(self.name, why, self.relation.position, hint=hint)


def _relations(select: sql.Select) -> tuple[sql.Relation, ...]:
    return (select.relation, *(join.relation for join in select.joins))


def _aggregates(select: sql.Select, shown: Iterable[Expression]) -> bool:
    return bool(select.group_by) or select.having is not None or any(aggregates(each) for each in shown)


# ---- what is read


def _source(written: sql.Relation, beside: Sequence[sql.Relation], catalog: Catalog) -> _Source:
    view = catalog.views.get(ObjectName(written.full_name)) if written.query is None else None
    if view is not None:
        try:
            return _of_view(created_view(view, catalog), written, beside, catalog)
        except ViewRefused:
            raise
        except HoldfastError as error:
            raise ViewRefused(view.name, f"Of its query: {error.message}.", written.position) from None
    bound = BoundSource(catalog.relation(written.full_name, position=written.position), written.alias)
    names = [column.name for column in (*bound.columns, *bound.pseudo_columns)]
    columns: dict[str, Expression] = {name: ColumnRef(name, written.alias, written.position) for name in names}
    return _Source(written.alias, bound.object.name, columns, tuple(c.name for c in bound.columns), None, written)


def _of_view(
    created: sql.CreateView, written: sql.Relation, beside: Sequence[sql.Relation], catalog: Catalog
) -> _Source:
    name, body = created.name.text, inlined(created.query, catalog)
    _check_body(name, body, written)
    relation = _relation(body, catalog)
    renamed = _aliases(written, beside, relation)

    def moved(expression: Expression) -> Expression:
        return _moved(relation.qualified(expression), renamed, written.position)

    columns = [(shown, moved(expression)) for shown, expression in _columns(body, relation)]
    names = [given.text for given in created.columns] or [shown for shown, _ in columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ViewRefused(name, f'It has two columns named "{twice}".', written.position)
    if len(names) != len(columns):
        message = f'view "{name}" names {len(names)} columns, and its query has {len(columns)}'
        raise BindError(message, position=created.columns[0].position)
    body = replace(
        body,
        relation=replace(body.relation, alias=renamed[body.relation.alias], position=written.position),
        joins=tuple(
            replace(
                join,
                relation=replace(join.relation, alias=renamed[join.relation.alias], position=written.position),
                condition=moved(join.condition),
                position=written.position,
            )
            for join in body.joins
        ),
        where=None if body.where is None else moved(body.where),
        group_by=tuple(map(moved, body.group_by)),
        having=None if body.having is None else moved(body.having),
    )
    found = {shown: expression for shown, (_, expression) in zip(names, columns, strict=True)}
    return _Source(written.alias, name, found, tuple(names), body, written)


def _relation(body: sql.Select, catalog: Catalog) -> Relation:
    relation = Relation.of(body, catalog)
    if body.window is None:
        return relation
    return relation.also(*(Column(name, type_) for name, type_ in WINDOW_BOUNDS.items()))


def _check_body(view: str, body: sql.Select, written: sql.Relation) -> None:
    """Refuse what no step serves, by the name of the clause."""
    clause = next((clause.name for clause in body.clauses), None)
    if clause is None and body.limit is not None:
        clause = "LIMIT"
    if clause is not None:
        raise ViewRefused(view, f"Its query has {clause}, which a continuous query cannot have.", written.position)


def _aliases(written: sql.Relation, beside: Sequence[sql.Relation], relation: Relation) -> dict[str, str]:
    """What the relations of a view are called beside the others of the query that reads it."""
    if not relation.joined:
        return {relation.source.alias: written.alias}
    taken = {each.alias for each in beside}
    renamed: dict[str, str] = {}
    for source in relation.sources:
        name = joined_name(written.alias, source.alias)
        while name in taken:
            name += "_"
        taken.add(name)
        renamed[source.alias] = name
    return renamed


def _columns(body: sql.Select, relation: Relation) -> Iterator[tuple[str, Expression]]:
    """The columns of a view, named as a SELECT that reads it names them."""
    found: list[tuple[str | None, Expression]] = []
    names = Names(column.name for source in relation.sources for column in source.columns)
    for item in body.items:
        match item:
            case sql.SelectStar(qualifier=qualifier):
                if qualifier is not None and all(source.alias != qualifier for source in relation.sources):
                    raise UnknownObject(qualifier, kind="relation", known=[s.alias for s in relation.sources])
                for source in relation.sources:
                    if qualifier in (None, source.alias):
                        found += [(None, ColumnRef(column.name, source.alias)) for column in source.columns]
            case sql.SelectFields():
                base = relation.qualified(item.base)
                type_ = relation.type_of(relation.over_rows(base))
                assert isinstance(type_, Struct)
                found += [(field.name, FieldRef(base, field.name)) for field in type_.fields]
            case sql.SelectExpression(expression=ColumnRef() as ref):
                found.append((item.alias, relation.qualified(ref)))
            case sql.SelectExpression():
                expression = relation.qualified(item.expression)
                found.append((item.alias or names.of(expression), expression))
    plain = [name or (e.name if isinstance(e, ColumnRef) else "") for name, e in found]
    for (name, expression), shown in zip(found, plain, strict=True):
        clashes = name is None and plain.count(shown) > 1
        if clashes and isinstance(expression, ColumnRef) and expression.qualifier is not None:
            shown = joined_name(expression.qualifier, shown)
        yield shown, expression


def _moved(expression: Expression, renamed: Mapping[str, str], position: Position | None) -> Expression:
    """An expression of a view as if it were written where the view is."""

    def change(node: Expression) -> Expression | None:
        if isinstance(node, ColumnRef) and node.qualifier is not None:
            return ColumnRef(node.name, renamed.get(node.qualifier, node.qualifier), position)
        return None

    return _positioned(rewrite(expression, change), position)


def _positioned(expression: Expression, position: Position | None) -> Expression:
    here = replace(expression, position=position)
    return rewrite(here, lambda node: None if node is here else _positioned(node, position))


# ---- the query around


@dataclass(frozen=True, slots=True)
class _Outer:
    """A query that reads views, and all that it reads."""

    select: sql.Select
    sources: tuple[_Source, ...]

    def merged(self) -> sql.Select:
        """One query over what the views read."""
        for place, source in enumerate(self.sources):
            if source.body is not None:
                self._check(place, source, source.body)
        grouping = next((source.body for source in self.sources if source.aggregates), None)
        select = self._resolved()
        where = [source.body.where for source in self.sources if source.body is not None]
        merged = replace(select, relation=self._first(), joins=tuple(self._joins(select)))
        if grouping is None:
            return replace(merged, where=_both(*where, select.where))
        return replace(
            merged,
            window=grouping.window,
            where=_both(*where),
            group_by=grouping.group_by,
            having=_both(grouping.having, select.where),
        )

    def _check(self, place: int, source: _Source, body: sql.Select) -> None:
        select = self.select
        if source.aggregates:
            shown = [item.expression for item in select.items if isinstance(item, sql.SelectExpression)]
            if len(self.sources) > 1:
                raise source.refuse("It aggregates, and its result would be joined.")
            if _aggregates(select, shown) or select.window is not None:
                raise source.refuse("It aggregates, and its result would be aggregated again.")
            if select.partition_by:
                raise source.refuse("It aggregates, and its result would get another key.")
            return
        if place and body.joins:
            raise source.refuse("It joins, and would be joined to what is before it. It can be the first relation.")
        later = any(join.kind in NULLABLE_LEFT for join in select.joins[place:])
        own = place > 0 and select.joins[place - 1].kind in NULLABLE_RIGHT
        if not later and not own:
            return
        if body.where is not None:
            raise source.refuse("It filters, and the join keeps rows for which it has none.")
        computed = [name for name, column in source.columns.items() if not isinstance(column, ColumnRef)]
        if computed:
            raise source.refuse(f"It computes {', '.join(computed)}, and the join keeps rows for which it has none.")

    def _first(self) -> sql.Relation:
        body = self.sources[0].body
        return self.select.relation if body is None else body.relation

    def _joins(self, select: sql.Select) -> Iterator[sql.Join]:
        first = self.sources[0].body
        yield from first.joins if first is not None else ()
        for join, source in zip(select.joins, self.sources[1:], strict=True):
            yield join if source.body is None else replace(join, relation=source.body.relation)

    # ---- names

    def _resolved(self) -> sql.Select:
        """The query with every column that it names as an expression over what the views read."""
        select, of = self.select, self._expression
        return replace(
            select,
            items=tuple(item for written in select.items for item in self._items(written)),
            joins=tuple(replace(join, condition=of(join.condition)) for join in select.joins),
            where=None if select.where is None else of(select.where),
            partition_by=tuple(map(of, select.partition_by)),
            group_by=tuple(map(of, select.group_by)),
            having=None if select.having is None else of(select.having),
        )

    def _items(self, item: sql.SelectItem) -> Iterator[sql.SelectItem]:
        match item:
            case sql.SelectStar():
                if item.qualifier is not None:
                    self._named(item.qualifier, item.position)
                for source in self.sources:
                    for name in source.starred if item.qualifier in (None, source.alias) else ():
                        shown = joined_name(source.alias, name) if len(self.sources) > 1 else name
                        yield sql.SelectExpression(source.columns[name], shown, item.position)
            case sql.SelectFields():
                yield replace(item, base=self._expression(item.base))
            case sql.SelectExpression(expression=ColumnRef() as ref) if item.alias is None:
                of = self._source_of(ref)
                clashes = sum(ref.name in each.columns for each in self.sources) > 1
                alias = joined_name(of.alias, ref.name) if clashes and of is not None else ref.name
                yield sql.SelectExpression(self._expression(ref), alias, item.position)
            case sql.SelectExpression():
                yield replace(item, expression=self._expression(item.expression))

    def _expression(self, expression: Expression) -> Expression:
        def changing(hidden: frozenset[str]) -> Callable[[Expression], Expression | None]:
            def change(node: Expression) -> Expression | None:
                match node:
                    case ColumnRef(name, None) if name in hidden:
                        return node
                    case ColumnRef():
                        source = self._source_of(node)
                        return node if source is None else _positioned(source.columns[node.name], node.position)
                    case Lambda(parameters, body):
                        return replace(node, body=rewrite(body, changing(hidden | set(parameters))))
                return None

            return change

        return rewrite(expression, changing(frozenset()))

    def _source_of(self, ref: ColumnRef) -> _Source | None:
        """What has a column; None for the bounds of a window, which nothing has."""
        within = self.sources if ref.qualifier is None else (self._named(ref.qualifier, ref.position),)
        found = [source for source in within if ref.name in source.columns]
        if not found:
            if ref.name in WINDOW_BOUNDS:
                return None
            known = [name for source in within for name in source.columns]
            relation = " or ".join(source.name for source in within)
            raise UnknownColumn(ref.name, relation=relation, known=known, position=ref.position)
        if len(found) > 1:
            choices = " or ".join(f"{source.alias}.{ref.name}" for source in found)
            raise BindError(f'column "{ref.name}" is ambiguous', hint=f"Write {choices}.", position=ref.position)
        return found[0]

    def _named(self, alias: str, position: Position | None) -> _Source:
        for source in self.sources:
            if source.alias == alias:
                return source
        raise UnknownObject(alias, kind="relation", known=[s.alias for s in self.sources], position=position)


def _both(*conditions: Expression | None) -> Expression | None:
    """All of some conditions."""
    found: Expression | None = None
    for condition in conditions:
        if condition is not None:
            found = condition if found is None else Binary(Operator.AND, found, condition, condition.position)
    return found
