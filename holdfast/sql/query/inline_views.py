"""Views in continuous queries: a view in FROM is replaced by its sources, and its columns by their expressions.

This works if the planner has steps for the combined query: a view that filters, projects and joins can be inlined into
any query, a view that aggregates only into a query that filters and projects it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from holdfast.catalog.snapshot import Catalog
from holdfast.errors import BindError, HoldfastError, NotSupported, Position, UnknownColumn, UnknownObject
from holdfast.names import ObjectName, show
from holdfast.runtime.expressions.tree import Binary, ColumnRef, Expression, FieldRef, Lambda, Operator
from holdfast.runtime.plan.steps import JoinType
from holdfast.sql.query.aggregation import aggregates
from holdfast.sql.query.projection import NameGenerator, bind_projection
from holdfast.sql.query.relation import WINDOW_BOUNDS, BoundSource, Relation, joined_name
from holdfast.sql.query.view_definition import created_view
from holdfast.sql.syntax import statements as sql
from holdfast.sql.syntax.walk import rewrite
from holdfast.types import Column, Struct

OTHER_READERS = "Read the view with a pull query or with SUBSCRIBE."
NULLABLE_LEFT = (JoinType.RIGHT, JoinType.OUTER)
NULLABLE_RIGHT = (JoinType.LEFT, JoinType.OUTER)


def inlined(select: sql.Select, catalog: Catalog) -> sql.Select:
    """The query with its views inlined; the query itself if it reads none."""
    relations = _relations(select)
    if not any(each.query is None and each.full_name in catalog.views for each in relations):
        return select
    sources = [_source(each, relations, catalog) for each in relations]
    return _Outer(select, tuple(sources)).merged()


def check_view(created: sql.CreateView, catalog: Catalog) -> None:
    """Refuse a view of a stream that cannot be inlined, because it could not be read at all."""
    name, body = created.name, inlined(created.query, catalog)
    for clause in body.clauses:
        raise NotSupported(
            f"{clause.name} cannot be used in a view of a stream",
            detail="A stream has no current rows, and the queries that follow its changes do not support this.",
            position=clause.position or body.position,
        )
    _view_source(created, sql.RelationReference(name.text, name.text, name.position), (), catalog)
    relation = _relation(body, catalog)
    bind_projection(body.items, relation)
    for keyword, condition in (("WHERE", body.where), ("HAVING", body.having)):
        if condition is not None:
            relation.condition(condition, clause=keyword)


@contextmanager
def explain_views(select: sql.Select, catalog: Catalog) -> Iterator[None]:
    """Add the names of views to an error about a query, which may mention things that the user did not write."""
    names = [f'"{each.full_name}"' for each in _relations(select) if each.full_name in catalog.views]
    try:
        yield
    except HoldfastError as error:
        if names and not isinstance(error, ViewRefused):
            note = f"A view is replaced by its query here: {' and '.join(names)}."
            error.detail = f"{error.detail} {note}" if error.detail else note
        raise


class ViewRefused(NotSupported):
    """A view that cannot be inlined into the continuous query that reads it."""

    def __init__(self, view: str, reason: str, position: Position | None, *, hint: str = OTHER_READERS) -> None:
        super().__init__(
            f'a continuous query cannot read the view "{view}" here', detail=reason, hint=hint, position=position
        )


@dataclass(frozen=True, slots=True)
class _Source:
    """A relation of the outer query. `body` is the query of a view, None for an object."""

    alias: str
    name: str
    columns: Mapping[str, Expression]
    """Its columns as expressions over the relations of the body."""
    starred: tuple[str, ...]
    body: sql.Select | None
    relation: sql.RelationReference

    @property
    def aggregates(self) -> bool:
        return self.body is not None and _aggregates(self.body, self.columns.values())

    def refuse(self, reason: str) -> ViewRefused:
        hint = f"Store the view's result, and read that: CREATE MATERIALIZED VIEW … AS SELECT * FROM {show(self.name)};"
        return ViewRefused(self.name, reason, self.relation.position, hint=hint)


def _relations(select: sql.Select) -> tuple[sql.RelationReference, ...]:
    return (select.relation, *(join.relation for join in select.joins))


def _aggregates(select: sql.Select, shown: Iterable[Expression]) -> bool:
    return bool(select.group_by) or select.having is not None or any(aggregates(each) for each in shown)


# ---- sources


def _source(reference: sql.RelationReference, others: Sequence[sql.RelationReference], catalog: Catalog) -> _Source:
    view = catalog.views.get(ObjectName(reference.full_name)) if reference.query is None else None
    if view is not None:
        try:
            return _view_source(created_view(view, catalog), reference, others, catalog)
        except ViewRefused:
            raise
        except HoldfastError as error:
            raise ViewRefused(view.name, f"In its query: {error.message}.", reference.position) from None
    bound = BoundSource(catalog.relation(reference.full_name, position=reference.position), reference.alias)
    names = [column.name for column in (*bound.columns, *bound.pseudo_columns)]
    columns: dict[str, Expression] = {name: ColumnRef(name, reference.alias, reference.position) for name in names}
    return _Source(reference.alias, bound.object.name, columns, tuple(c.name for c in bound.columns), None, reference)


def _view_source(
    created: sql.CreateView, reference: sql.RelationReference, others: Sequence[sql.RelationReference], catalog: Catalog
) -> _Source:
    name, body = created.name.text, inlined(created.query, catalog)
    _check_body(name, body, reference)
    relation = _relation(body, catalog)
    renamed = _aliases(reference, others, relation)

    def moved(expression: Expression) -> Expression:
        return _moved(relation.qualified(expression), renamed, reference.position)

    columns = [(shown, moved(expression)) for shown, expression in _columns(body, relation)]
    names = [column.text for column in created.columns] or [shown for shown, _ in columns]
    if len(set(names)) < len(names):
        duplicate = next(name for name in names if names.count(name) > 1)
        raise ViewRefused(name, f'It has two columns named "{duplicate}".', reference.position)
    if len(names) != len(columns):
        message = f'view "{name}" names {len(names)} columns, but its query has {len(columns)}'
        raise BindError(message, position=created.columns[0].position)
    body = replace(
        body,
        relation=replace(body.relation, alias=renamed[body.relation.alias], position=reference.position),
        joins=tuple(
            replace(
                join,
                relation=replace(join.relation, alias=renamed[join.relation.alias], position=reference.position),
                condition=moved(join.condition),
                position=reference.position,
            )
            for join in body.joins
        ),
        where=None if body.where is None else moved(body.where),
        group_by=tuple(map(moved, body.group_by)),
        having=None if body.having is None else moved(body.having),
    )
    by_name = {shown: expression for shown, (_, expression) in zip(names, columns, strict=True)}
    return _Source(reference.alias, name, by_name, tuple(names), body, reference)


def _relation(body: sql.Select, catalog: Catalog) -> Relation:
    relation = Relation.of(body, catalog)
    if body.window is None:
        return relation
    return relation.also(*(Column(name, type_) for name, type_ in WINDOW_BOUNDS.items()))


def _check_body(view: str, body: sql.Select, reference: sql.RelationReference) -> None:
    """Refuse clauses that no step implements."""
    clause = next((clause.name for clause in body.clauses), None)
    if clause is None and body.limit is not None:
        clause = "LIMIT"
    if clause is not None:
        raise ViewRefused(view, f"Its query has {clause}, which a continuous query cannot have.", reference.position)


def _aliases(
    reference: sql.RelationReference, others: Sequence[sql.RelationReference], relation: Relation
) -> dict[str, str]:
    """New aliases for the relations of a view, unique in the query that reads it."""
    if not relation.joined:
        return {relation.source.alias: reference.alias}
    taken = {each.alias for each in others}
    renamed: dict[str, str] = {}
    for source in relation.sources:
        name = joined_name(reference.alias, source.alias)
        while name in taken:
            name += "_"
        taken.add(name)
        renamed[source.alias] = name
    return renamed


def _columns(body: sql.Select, relation: Relation) -> Iterator[tuple[str, Expression]]:
    """The columns of a view, with the names that a SELECT from it sees."""
    found: list[tuple[str | None, Expression]] = []
    names = NameGenerator(column.name for source in relation.sources for column in source.columns)
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
    """An expression of a view with the aliases of the outer query and the position of the view in it."""

    def change(node: Expression) -> Expression | None:
        if isinstance(node, ColumnRef) and node.qualifier is not None:
            return ColumnRef(node.name, renamed.get(node.qualifier, node.qualifier), position)
        return None

    return _positioned(rewrite(expression, change), position)


def _positioned(expression: Expression, position: Position | None) -> Expression:
    here = replace(expression, position=position)
    return rewrite(here, lambda node: None if node is here else _positioned(node, position))


# ---- the outer query


@dataclass(frozen=True, slots=True)
class _Outer:
    """A query that reads views, with its sources."""

    select: sql.Select
    sources: tuple[_Source, ...]

    def merged(self) -> sql.Select:
        """One query over the sources of the views."""
        for index, source in enumerate(self.sources):
            if source.body is not None:
                self._check(index, source, source.body)
        grouping = next((source.body for source in self.sources if source.aggregates), None)
        select = self._resolved()
        where = [source.body.where for source in self.sources if source.body is not None]
        merged = replace(select, relation=self._first(), joins=tuple(self._joins(select)))
        if grouping is None:
            return replace(merged, where=_conjunction(*where, select.where))
        return replace(
            merged,
            window=grouping.window,
            where=_conjunction(*where),
            group_by=grouping.group_by,
            having=_conjunction(grouping.having, select.where),
        )

    def _check(self, index: int, source: _Source, body: sql.Select) -> None:
        select = self.select
        if source.aggregates:
            shown = [item.expression for item in select.items if isinstance(item, sql.SelectExpression)]
            if len(self.sources) > 1:
                raise source.refuse("It aggregates, and its result would be joined.")
            if _aggregates(select, shown) or select.window is not None:
                raise source.refuse("It aggregates, and its result would be aggregated again.")
            if select.partition_by:
                raise source.refuse("It aggregates, and its result would be repartitioned.")
            return
        if index and body.joins:
            raise source.refuse("It contains a join, and can only be the first relation of a query.")
        later = any(join.kind in NULLABLE_LEFT for join in select.joins[index:])
        own = index > 0 and select.joins[index - 1].kind in NULLABLE_RIGHT
        if not later and not own:
            return
        if body.where is not None:
            raise source.refuse("It filters, and the outer join keeps rows without a match in it.")
        computed = [name for name, column in source.columns.items() if not isinstance(column, ColumnRef)]
        if computed:
            names = ", ".join(computed)
            raise source.refuse(f"It computes {names}, and the outer join keeps rows without a match in it.")

    def _first(self) -> sql.RelationReference:
        body = self.sources[0].body
        return self.select.relation if body is None else body.relation

    def _joins(self, select: sql.Select) -> Iterator[sql.Join]:
        first = self.sources[0].body
        yield from first.joins if first is not None else ()
        for join, source in zip(select.joins, self.sources[1:], strict=True):
            yield join if source.body is None else replace(join, relation=source.body.relation)

    # ---- names

    def _resolved(self) -> sql.Select:
        """The query with every column replaced by an expression over the sources of the views."""
        select, resolve = self.select, self._expression
        return replace(
            select,
            items=tuple(resolved for item in select.items for resolved in self._items(item)),
            joins=tuple(replace(join, condition=resolve(join.condition)) for join in select.joins),
            where=None if select.where is None else resolve(select.where),
            partition_by=tuple(map(resolve, select.partition_by)),
            group_by=tuple(map(resolve, select.group_by)),
            having=None if select.having is None else resolve(select.having),
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
                owner = self._source_of(ref)
                clashes = sum(ref.name in each.columns for each in self.sources) > 1
                alias = joined_name(owner.alias, ref.name) if clashes and owner is not None else ref.name
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
        """The source of a column; None for the bounds of a window, which belong to no source."""
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


def _conjunction(*conditions: Expression | None) -> Expression | None:
    """The conditions that are not None, joined by AND."""
    result: Expression | None = None
    for condition in conditions:
        if condition is not None:
            result = condition if result is None else Binary(Operator.AND, result, condition, condition.position)
    return result
