"""Queries: those that CREATE … AS and INSERT INTO store, and those that a client asks."""

from collections.abc import Callable, Sequence

from holdfast.catalog.objects import Stream, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.catalog.system import is_system
from holdfast.errors import BindError, Feature, NotSupported, NotYetSupported, Position, WrongObjectKind
from holdfast.runtime.expressions.tree import ColumnRef, Expression
from holdfast.sql import statements as sql
from holdfast.sql.aggregation import Aggregation, aggregates
from holdfast.sql.bind_joins import bind_joins, choose_keys, input_keys, is_stream, join_key, viable_keys, written_keys
from holdfast.sql.bind_read import bind_read, computes, reads_view
from holdfast.sql.bound import BoundSelect, SelectKind
from holdfast.sql.bound_query import BoundColumn, BoundJoin, BoundQuery
from holdfast.sql.bound_read import BoundRead
from holdfast.sql.formats import KAFKA
from holdfast.sql.inlining import inlined, told_of_views
from holdfast.sql.moments import bind_as_of
from holdfast.sql.partitioning import Partitioning, bind_partitioning
from holdfast.sql.projection import bind_projection
from holdfast.sql.relation import RECORD_COLUMNS, RESERVED_COLUMNS, WINDOW_BOUNDS, Relation
from holdfast.sql.result_keys import check_values, key_names
from holdfast.sql.row_functions import aggregated_rows, bind_table_functions, refuse_table_functions, table_functions
from holdfast.sql.walk import column_refs
from holdfast.sql.windows import window_of
from holdfast.types import Column

INSTEAD = {
    "ORDER BY": "Leave it out, and order the rows where you read them.",
    "OFFSET": "Leave it out, and choose the rows where you read them.",
    "DISTINCT": "Group by the columns, with COUNT(*) as one more column.",
    "UNION": "Have each part INSERT INTO one stream, and read that.",
    "WITH": "Give the inner query a name with CREATE VIEW, and read that.",
    "a query in FROM": "Give the inner query a name with CREATE VIEW, and read that.",
    "GROUP BY ()": "Keep the rows, and aggregate them where you read them.",
}
"""What to write in place of a clause that continuous queries do not have."""
WINDOWED_TABLE = "Declare a stream over its topic, with the same WINDOW_TYPE and WINDOW_SIZE, and read that."
WINDOWED_VIEW = "Keep it as a table, whose topic can be read as a windowed stream: CREATE TABLE … AS SELECT …"


def bind_query(
    select: sql.Select, catalog: Catalog, check: Callable[[Sequence[BoundColumn]], None] | None = None
) -> BoundQuery:
    """A continuous query; `check` is asked about the columns of its result before their keys are looked for."""
    with told_of_views(select, catalog):
        return _bind_query(inlined(select, catalog), catalog, check)


def _bind_query(
    select: sql.Select, catalog: Catalog, check: Callable[[Sequence[BoundColumn]], None] | None
) -> BoundQuery:
    refuse_clauses(select)
    if select.emit is sql.Emit.ALL:
        raise NotSupported("EMIT ALL is for a SELECT of its own", hint="Write EMIT CHANGES.", position=select.position)
    if select.limit is not None:
        raise NotSupported(
            "LIMIT is not supported in a CREATE … AS",
            hint="Leave it out, and limit the rows where you read them.",
            position=select.position,
        )
    if select.as_of is not None:
        raise NotSupported(
            "AS OF is for a SELECT of its own",
            detail="A continuous query follows its sources from their start.",
            position=select.as_of.position,
        )
    relation = Relation.of(select, catalog)
    _check_sources(select, relation)
    input_ = bind_joins(select, relation)
    synthetic = join_key(input_, relation)
    relation = relation if synthetic is None else relation.also(synthetic)
    stream = is_stream(input_)
    partitioning = bind_partitioning(select, relation, stream=stream)
    _check_items(select, relation)
    projection, after = _projection(select, relation, partitioning, synthetic)
    if check is not None:
        check(projection)
    input_ = choose_keys(input_, projection, relation)
    where = _where(select, relation)
    group_by = tuple(map((after if select.window is not None else relation).resolve, select.group_by))
    having = after.condition(select.having, clause="HAVING") if select.having is not None else None
    grouped = bool(group_by) or having is not None or any(aggregates(column.expression) for column in projection)
    columns, calls = bind_table_functions(projection, stream=stream, aggregated=grouped)
    if grouped:
        Aggregation(select, after, projection, group_by, having, stream).check()
        keys = key_names(projection, group_by, what="grouping expression", position=select.position)
    elif partitioning is not None:
        keys = _partition_keys(projection, partitioning, select)
    else:
        choices = viable_keys(input_) if isinstance(input_, BoundJoin) and not input_.foreign_key else []
        what = "join column" if choices or synthetic is not None else "key column"
        wanted = input_keys(input_, relation)
        shown = written_keys(input_) if relation.joined and synthetic is None else wanted
        keys = key_names(projection, wanted, what=what, position=select.position, choices=choices, shown=shown)
    window = window_of(select)
    _check_names(projection, keys)
    check_values(projection, keys, select.position)
    return BoundQuery(
        input=input_,
        sources=relation.sources,
        projection=columns,
        keys=keys,
        where=where,
        partition_by=partitioning.expressions if partitioning is not None else (),
        table_functions=calls,
        group_by=group_by,
        window=window,
        having=having,
    )


def _check_sources(select: sql.Select, relation: Relation) -> None:
    """Refuse sources whose rows no continuous query can take."""
    clause = "GROUP BY" if select.group_by else "JOIN" if select.joins else None
    for written, source in zip((select.relation, *(j.relation for j in select.joins)), relation.sources, strict=True):
        found = source.object
        if is_system(found):
            raise NotSupported(
                f'a continuous query cannot read the system table "{found.name}"',
                hint="Read it with a SELECT of its own, or follow it with SUBSCRIBE.",
                position=written.position,
            )
        if found.window is not None and isinstance(found, Table):
            raise NotSupported(
                f'a continuous query cannot read the windowed {found.KIND} "{found.name}"',
                detail="Its rows change until their windows close, and are gone when they expire.",
                hint=WINDOWED_VIEW if found.topic is None else WINDOWED_TABLE,
                position=written.position,
            )
        if clause is not None and found.formats.value_format.format == KAFKA:
            raise NotSupported(
                f'{clause} cannot read "{found.name}", whose value format is KAFKA',
                detail="That format holds one column, and the rows inside the query have more.",
                hint="Copy it into a stream with VALUE_FORMAT='JSON' first.",
                position=written.position,
            )


def _check_items(select: sql.Select, relation: Relation) -> None:
    """Refuse what no types are needed for, before they are looked at."""
    written = [item for item in select.items if isinstance(item, sql.SelectExpression)]
    grouped = select.group_by or any(aggregates(item.expression) for item in written)
    for item in written:
        for call in table_functions(item.expression) if grouped else ():
            raise aggregated_rows(call)
        ref = item.expression
        if not isinstance(ref, ColumnRef) or item.alias is not None or select.window is not None:
            continue
        if ref.name in WINDOW_BOUNDS and all(source.find(ref.name) is None for source in relation.sources):
            raise _reserved(ref.name, ref.position)


def _projection(
    select: sql.Select, relation: Relation, partitioning: Partitioning | None, synthetic: Column | None
) -> tuple[tuple[BoundColumn, ...], Relation]:
    """The select list, and the relation with all columns that it can name."""
    if partitioning is not None:
        after = relation.also(*partitioning.added)
        return bind_projection(select.items, after, partitioning.star), after
    if select.window is not None:
        relation = relation.also(*(Column(name, type_) for name, type_ in WINDOW_BOUNDS.items()))

    def star(written: sql.SelectStar) -> list[tuple[str, Expression]]:
        columns = list(relation.star(written))
        if synthetic is not None and written.qualifier is None:
            columns.insert(0, (synthetic.name, ColumnRef(synthetic.name, None, written.position)))
        return columns

    return bind_projection(select.items, relation, star), relation


def _partition_keys(
    projection: Sequence[BoundColumn], partitioning: Partitioning, select: sql.Select
) -> tuple[str, ...]:
    """A part of the key may be selected as it is written in PARTITION BY, or by a star under the name it has then."""
    selected = {column.expression for column in projection}
    wanted: list[Expression] = []
    for expression, column in zip(partitioning.expressions, partitioning.columns, strict=False):
        named = ColumnRef(column.name)
        wanted.append(expression if expression in selected or named not in selected else named)
    return key_names(projection, wanted, what="partitioning expression", position=select.position)


def _check_names(projection: Sequence[BoundColumn], keys: Sequence[str]) -> None:
    for column in projection:
        if column.name in RESERVED_COLUMNS and column.name not in keys:
            raise _reserved(column.name, column.expression.position)


def _reserved(name: str, position: Position | None) -> BindError:
    return BindError(
        f'a column cannot be named "{name}"', hint=f"Give it another name: {name} AS {name}_1.", position=position
    )


def bind_select(select: sql.Select, catalog: Catalog) -> BoundSelect | BoundRead:
    """A query that a client asks: a pull without EMIT, a push with EMIT CHANGES, one after the other with EMIT ALL."""
    if select.emit is None and (computes(select) or reads_view(select, catalog)):
        return bind_read(select, catalog)
    with told_of_views(select, catalog):
        return _bind_followed(inlined(select, catalog), catalog)


def _bind_followed(select: sql.Select, catalog: Catalog) -> BoundSelect:
    """A query that one object's rows answer, one by one."""
    refuse_clauses(select)
    present = (
        ("JOIN", bool(select.joins)),
        ("WINDOW", select.window is not None),
        ("PARTITION BY", bool(select.partition_by)),
        ("GROUP BY", bool(select.group_by)),
        ("HAVING", select.having is not None),
    )
    relation = Relation.of(select, catalog)
    kind = _select_kind(select, relation)
    for clause, given in present:
        if given:
            raise _not_in_select(clause, select)
    columns = bind_projection(select.items, relation)
    for column in columns:
        for call in aggregates(column.expression):
            raise NotYetSupported(
                Feature.CLAUSE,
                "aggregates in a SELECT",
                f"{call.shown} is not supported in a SELECT yet",
                hint="Keep the aggregate in a table with CREATE TABLE … AS, and select from that.",
                position=call.position,
            )
        refuse_table_functions(column.expression, clause="a SELECT of its own")
    where = _where(select, relation)
    if not isinstance(relation.source.object, Stream):
        _refuse_record_columns(relation, columns, where, "pull" if kind is SelectKind.PULL else "push")
    if kind is not SelectKind.PULL and select.as_of is not None:
        raise NotSupported(
            f"AS OF cannot be used with EMIT {select.emit}",
            hint="Leave out EMIT to read the rows of that time.",
            position=select.as_of.position,
        )
    return BoundSelect(
        kind=kind,
        relation=relation.source.object,
        columns=columns,
        where=where,
        limit=select.limit,
        as_of=bind_as_of(select.as_of),
        indexes=catalog.indexes_on(relation.source.object.name),
    )


def refuse_clauses(select: sql.Select) -> None:
    for clause in select.clauses:
        message, hint = f"{clause.name} is not supported yet", INSTEAD.get(clause.name)
        position = clause.position or select.position
        raise NotYetSupported(Feature.CLAUSE, clause.name, message, hint=hint, position=position)


def _select_kind(select: sql.Select, relation: Relation) -> SelectKind:
    found = relation.source.object
    stream = isinstance(found, Stream)
    match select.emit:
        case None if stream:
            raise WrongObjectKind(
                f'"{found.name}" is a stream and has no current rows',
                hint="Add EMIT CHANGES to follow it.",
                position=select.relation.position,
            )
        case None:
            return SelectKind.PULL
        case sql.Emit.CHANGES:
            return SelectKind.PUSH
        case sql.Emit.ALL if stream:
            raise WrongObjectKind(
                f'EMIT ALL needs a table, and "{found.name}" is a stream',
                detail="A stream has no current rows; all that it ever had are those of its topic.",
                hint="SET 'auto.offset.reset'='earliest' and use EMIT CHANGES: past rows come first, then new ones.",
                position=select.relation.position,
            )
        case sql.Emit.ALL:
            return SelectKind.ALL
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


def _refuse_record_columns(
    relation: Relation, columns: Sequence[BoundColumn], where: Expression | None, what: str
) -> None:
    expressions = [column.expression for column in columns] + ([where] if where is not None else [])
    for expression in expressions:
        for ref in column_refs(expression):
            if ref.name in RECORD_COLUMNS and relation.source.object.schema.find(ref.name) is None:
                raise NotSupported(
                    f"{ref.name} of a table is not supported in a {what}",
                    detail="A table does not keep where the records of its rows are.",
                    hint=f"A query does: CREATE TABLE … AS SELECT …, {ref.name} AS …; select from that.",
                    position=ref.position,
                )


def _where(select: sql.Select, relation: Relation) -> Expression | None:
    if select.where is None:
        return None
    resolved = relation.resolve(select.where)
    for call in aggregates(resolved):
        raise BindError(
            f"WHERE cannot have the aggregate {call.shown}",
            hint="Filter groups with HAVING, after GROUP BY.",
            position=call.position,
        )
    refuse_table_functions(resolved, clause="WHERE")
    return relation.condition(select.where, clause="WHERE")
