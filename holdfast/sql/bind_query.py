"""Queries: those that CREATE … AS stores, and those that a client asks."""

from collections.abc import Iterator, Sequence

from holdfast.catalog.objects import Stream, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import BindError, Feature, NotSupported, NotYetSupported, WrongObjectKind
from holdfast.runtime.expressions.text import format_expression
from holdfast.runtime.expressions.tree import Call, ColumnRef, Expression, Lambda
from holdfast.runtime.functions.registry import functions, is_aggregate
from holdfast.sql import statements as sql
from holdfast.sql.bound import BoundColumn, BoundQuery, BoundSelect, SelectKind
from holdfast.sql.projection import bind_projection
from holdfast.sql.relation import RECORD_COLUMNS, RESERVED_COLUMNS, Relation
from holdfast.sql.walk import children, column_refs, walk


def bind_query(select: sql.Select, catalog: Catalog) -> BoundQuery:
    """The continuous query of a CREATE … AS."""
    refuse_clauses(select)
    if select.emit in (sql.Emit.FINAL, sql.Emit.ALL):
        message = f"EMIT {select.emit} is not supported here yet"
        raise NotYetSupported(Feature.CLAUSE, f"EMIT {select.emit}", message, position=select.position)
    if select.limit is not None:
        raise NotSupported("LIMIT is not supported in a CREATE … AS", position=select.position)
    relation = Relation(select.relation, catalog)
    projection = bind_projection(select.items, relation)
    for column in projection:
        if column.name in RESERVED_COLUMNS:
            raise BindError(
                f'a column cannot be named "{column.name}"',
                hint=f"Give it another name: {column.name} AS {column.name}_1.",
                position=column.expression.position,
            )
    where = _where(select, relation)
    group_by = tuple(map(relation.resolve, select.group_by))
    having = relation.condition(select.having, clause="HAVING") if select.having is not None else None
    if group_by or having is not None or any(_aggregates(column.expression) for column in projection):
        _check_aggregation(select, relation, projection, group_by, having)
        keys = _key_names(select, projection, group_by, what="grouping expression")
    else:
        keys = _key_names(select, projection, _source_key(relation), what="key column")
    if len(keys) == len(projection):
        raise BindError(
            "the result has no value columns",
            detail=f"Only the key is selected: {', '.join(keys)}.",
            hint=_copy_hint(keys[0], f"{keys[0]}_1") if keys else None,
            position=select.position,
        )
    return BoundQuery(
        source=relation.object,
        projection=projection,
        keys=keys,
        where=where,
        group_by=group_by,
        having=having,
    )


def bind_select(select: sql.Select, catalog: Catalog) -> BoundSelect:
    """A query that a client asks: a pull without EMIT, a push with EMIT CHANGES."""
    refuse_clauses(select)
    relation = Relation(select.relation, catalog)
    kind = _select_kind(select, relation)
    columns = bind_projection(select.items, relation)
    for clause, present in (("GROUP BY", bool(select.group_by)), ("HAVING", select.having is not None)):
        if present:
            raise _not_in_select(clause, select)
    for column in columns:
        for call in _aggregates(column.expression):
            raise NotYetSupported(
                Feature.CLAUSE,
                "aggregates in a SELECT",
                f"{call.name} is not supported in a SELECT yet",
                hint="Keep the aggregate in a table with CREATE TABLE … AS, and select from that.",
                position=call.position,
            )
    where = _where(select, relation)
    if kind is SelectKind.PULL:
        _refuse_record_columns(columns, where)
    return BoundSelect(kind=kind, relation=relation.object, columns=columns, where=where, limit=select.limit)


def refuse_clauses(select: sql.Select) -> None:
    for clause in select.clauses:
        message = f"{clause.name} is not supported yet"
        raise NotYetSupported(Feature.CLAUSE, clause.name, message, position=clause.position or select.position)


def _select_kind(select: sql.Select, relation: Relation) -> SelectKind:
    stream = isinstance(relation.object, Stream)
    match select.emit:
        case None if stream:
            raise WrongObjectKind(
                f'"{relation.object.name}" is a stream and has no current rows',
                hint="Add EMIT CHANGES to follow it.",
                position=select.relation.position,
            )
        case None:
            return SelectKind.PULL
        case sql.Emit.CHANGES:
            return SelectKind.PUSH
        case sql.Emit.ALL if stream:
            raise WrongObjectKind(
                f'EMIT ALL needs a table, and "{relation.object.name}" is a stream',
                hint="SET 'auto.offset.reset'='earliest' and use EMIT CHANGES.",
                position=select.relation.position,
            )
        case _:
            message = f"EMIT {select.emit} is not supported yet"
            raise NotYetSupported(Feature.CLAUSE, f"EMIT {select.emit}", message, position=select.position)


def _not_in_select(clause: str, select: sql.Select) -> NotSupported:
    return NotYetSupported(
        Feature.CLAUSE,
        f"{clause} in a SELECT",
        f"{clause} is not supported in a SELECT yet",
        hint="Keep the result in a table with CREATE TABLE … AS, and select from that.",
        position=select.position,
    )


def _refuse_record_columns(columns: Sequence[BoundColumn], where: Expression | None) -> None:
    expressions = [column.expression for column in columns] + ([where] if where is not None else [])
    for expression in expressions:
        for ref in column_refs(expression):
            if ref.name in RECORD_COLUMNS:
                raise NotSupported(
                    f"{ref.name} is not supported in a pull",
                    detail="A table's current row can come from many records.",
                    position=ref.position,
                )


def _where(select: sql.Select, relation: Relation) -> Expression | None:
    if select.where is None:
        return None
    resolved = relation.resolve(select.where)
    for call in _aggregates(resolved):
        raise BindError(
            f"WHERE cannot have the aggregate {call.name}",
            hint="Filter groups with HAVING, after GROUP BY.",
            position=call.position,
        )
    return relation.condition(select.where, clause="WHERE")


def _aggregates(expression: Expression) -> list[Call]:
    return [node for node in walk(expression) if isinstance(node, Call) and is_aggregate(node.name)]


# ---- keys


def _source_key(relation: Relation) -> list[Expression]:
    return [ColumnRef(column.name) for column in relation.object.schema.key]


def _copy_hint(key: str, name: str) -> str | None:
    return f"Copy it into the value with AS_VALUE({key}) AS {name}." if "AS_VALUE" in functions() else None


def _key_names(
    select: sql.Select, projection: tuple[BoundColumn, ...], wanted: Sequence[Expression], *, what: str
) -> tuple[str, ...]:
    """The names under which the result has the parts of its key; each must be selected once."""
    names = []
    for expression in wanted:
        found = [column for column in projection if column.expression == expression]
        text = format_expression(expression)
        if not found:
            every = ", ".join(map(format_expression, wanted))
            raise BindError(
                f"the {what} {text} is missing from the select list",
                detail="The key of the result is made of it.",
                hint=f"Write SELECT {every}, …",
                position=select.position,
            )
        if len(found) > 1:
            aliases = " and ".join(column.name for column in found)
            raise BindError(
                f"the {what} {text} is selected more than once, as {aliases}",
                hint=_copy_hint(text, found[1].name),
                position=found[1].expression.position,
            )
        names.append(found[0].name)
    return tuple(names)


# ---- aggregation


def _check_aggregation(
    select: sql.Select,
    relation: Relation,
    projection: tuple[BoundColumn, ...],
    group_by: tuple[Expression, ...],
    having: Expression | None,
) -> None:
    expressions = [column.expression for column in projection]
    searched = expressions if having is None else [*expressions, having]
    calls = [call for expression in searched for call in _aggregates(expression)]
    if not group_by:
        if calls:
            raise BindError(
                f"the aggregate {calls[0].name} needs a GROUP BY",
                hint="Group by a constant to aggregate everything: SELECT 1 AS k, … GROUP BY 1.",
                position=calls[0].position,
            )
        raise BindError(
            "HAVING needs a GROUP BY",
            hint="Filter rows with WHERE.",
            position=select.having.position if select.having is not None else None,
        )
    if isinstance(relation.object, Table):
        raise NotYetSupported(
            Feature.CLAUSE,
            "GROUP BY over a table",
            "GROUP BY over a table is not supported yet",
            detail=f"{relation.object.name} is a table.",
            position=select.relation.position,
        )
    _check_group_by(relation, group_by)
    if not calls:
        raise BindError("GROUP BY needs an aggregate in the select list or in HAVING", position=select.position)
    for call in calls:
        for inner in (node for argument in call.arguments for node in _aggregates(argument)):
            raise BindError(f"aggregates cannot be nested: {inner.name} in {call.name}", position=inner.position)
    for expression in expressions:
        for ref in _ungrouped(expression, group_by):
            raise BindError(
                f'column "{ref.name}" is neither aggregated nor in GROUP BY',
                hint=f"Add {format_expression(ref)} to GROUP BY, or aggregate it.",
                position=ref.position,
            )
    for ref in _ungrouped(having, group_by) if having is not None else ():
        raise BindError(
            f'HAVING names column "{ref.name}", which is not in GROUP BY',
            hint="Filter rows with WHERE, before GROUP BY.",
            position=ref.position,
        )


def _check_group_by(relation: Relation, group_by: tuple[Expression, ...]) -> None:
    for index, expression in enumerate(group_by):
        for call in _aggregates(expression):
            raise BindError(f"GROUP BY cannot have the aggregate {call.name}", position=call.position)
        if expression in group_by[:index]:
            text = format_expression(expression)
            raise BindError(f"GROUP BY has {text} twice", position=expression.position)
        relation.type_of(expression)


def _ungrouped(expression: Expression, group_by: tuple[Expression, ...]) -> Iterator[ColumnRef]:
    """The columns of an expression that have no single value within a group."""
    if expression in group_by or (isinstance(expression, Call) and is_aggregate(expression.name)):
        return
    if isinstance(expression, ColumnRef):
        yield expression
        return
    parameters = expression.parameters if isinstance(expression, Lambda) else ()
    for child in children(expression):
        yield from (ref for ref in _ungrouped(child, group_by) if ref.name not in parameters)
