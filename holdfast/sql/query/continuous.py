"""Continuous queries: those of CREATE … AS and INSERT INTO … SELECT.

Bound expressions name columns as plans do: without a qualifier, and with the alias of their source as a prefix when the
query joins (`L_A`). Only the two sides of a join's condition are qualified. `COUNT(*)` has become `COUNT(ROWTIME)`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.catalog.objects import CatalogObject, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.catalog.system import is_system
from holdfast.errors import BindError, Feature, NotSupported, NotYetSupported, Position
from holdfast.runtime.expressions.tree import Call, ColumnRef, Expression
from holdfast.runtime.plan.windows import (
    Duration,
    OutputRefinement,
    SessionWindow,
    WindowExpression,
    WindowInfo,
    WindowType,
)
from holdfast.sql.properties.formats import KAFKA
from holdfast.sql.properties.session import ANY_VALUE_FORMAT
from holdfast.sql.query.aggregation import Aggregation, aggregates
from holdfast.sql.query.inline_views import explain_views, inlined
from holdfast.sql.query.joins import (
    BoundInput,
    BoundJoin,
    bind_joins,
    choose_keys,
    input_keys,
    is_stream,
    join_key,
    viable_keys,
    written_keys,
)
from holdfast.sql.query.partition_by import Partitioning, bind_partitioning
from holdfast.sql.query.projection import BoundColumn, bind_projection
from holdfast.sql.query.relation import RESERVED_COLUMNS, WINDOW_BOUNDS, BoundSource, Relation
from holdfast.sql.query.result_keys import check_values, key_names
from holdfast.sql.query.table_functions import (
    aggregated_rows,
    bind_table_functions,
    refuse_table_functions,
    table_functions,
)
from holdfast.sql.query.windows import window_of
from holdfast.sql.syntax import statements as sql
from holdfast.types import Column, Role, Schema

INSTEAD = {
    "ORDER BY": "Leave it out, and order the rows when you read them.",
    "OFFSET": "Leave it out, and select the rows when you read them.",
    "DISTINCT": "Group by the columns, and add COUNT(*) to the select list.",
    "UNION": "Write one INSERT INTO … SELECT into the same stream for each part.",
    "WITH": "Give the inner query a name with CREATE VIEW, and read that.",
    "a query in FROM": "Give the inner query a name with CREATE VIEW, and read that.",
    "GROUP BY ()": "Store the rows, and aggregate them when you read them.",
}
"""What to write instead of a clause that continuous queries do not support."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundQuery:
    """A continuous query. `keys` are the names of the result's key columns, in the order of the key.

    Key *i* is the column whose expression is `group_by[i]` or `partition_by[i]`; without those it renames key *i* of
    the input. `table_functions` are calls that produce rows; the projection names their results `KSQL_SYNTH_n`.
    """

    input: BoundInput
    sources: tuple[BoundSource, ...]
    projection: tuple[BoundColumn, ...]
    keys: tuple[str, ...]
    where: Expression | None = None
    partition_by: tuple[Expression, ...] = ()
    table_functions: tuple[Call, ...] = ()
    group_by: tuple[Expression, ...] = ()
    window: WindowExpression | None = None
    having: Expression | None = None

    @property
    def source(self) -> CatalogObject:
        """The first of its sources."""
        return self.sources[0].object

    @property
    def values(self) -> tuple[BoundColumn, ...]:
        """The value columns of the result."""
        return tuple(column for column in self.projection if column.name not in self.keys)

    @property
    def schema(self) -> Schema:
        """The columns of the result, its key first."""
        types = {column.name: column.type for column in self.projection}
        keys = (Column(name, types[name], Role.KEY) for name in self.keys)
        return Schema((*keys, *(Column(column.name, column.type) for column in self.values)))

    @property
    def aggregates(self) -> bool:
        return bool(self.group_by)


def result_window(query: BoundQuery) -> WindowInfo | None:
    """The window of the keys of a query's result: the query's own, or else that of its source."""
    if query.window is None:
        return None if query.aggregates else query.source.window
    size = None if isinstance(query.window, SessionWindow) else Duration.of(query.window.size.timedelta)
    emit = query.window.emit_strategy or OutputRefinement.CHANGES
    return WindowInfo(type=WindowType(query.window.TAG), size=size, emit_strategy=emit)


def bind_query(
    select: sql.Select,
    catalog: Catalog,
    check: Callable[[Sequence[BoundColumn]], None] | None = None,
    *,
    any_format: bool = False,
) -> BoundQuery:
    """Bind a continuous query; `check` is called with the result's columns before its key is determined.

    With `any_format`, it may also group and join rows of topics with the value format KAFKA, unlike in ksqlDB.
    """
    with explain_views(select, catalog):
        return _bind_query(inlined(select, catalog), catalog, check, any_format)


def _bind_query(
    select: sql.Select,
    catalog: Catalog,
    check: Callable[[Sequence[BoundColumn]], None] | None,
    any_format: bool,
) -> BoundQuery:
    refuse_clauses(select)
    if select.emit is sql.Emit.ALL:
        raise NotSupported(
            "EMIT ALL is only allowed in a standalone SELECT", hint="Write EMIT CHANGES.", position=select.position
        )
    if select.limit is not None:
        raise NotSupported(
            "LIMIT is not supported in a CREATE … AS",
            hint="Leave it out, and limit the rows when you read them.",
            position=select.position,
        )
    if select.as_of is not None:
        raise NotSupported(
            "AS OF is only allowed in a standalone SELECT",
            detail="A continuous query reads its sources from their start.",
            position=select.as_of.position,
        )
    relation = Relation.of(select, catalog)
    _check_sources(select, relation, any_format=any_format)
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
    where = bind_where(select, relation)
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


def _check_sources(select: sql.Select, relation: Relation, *, any_format: bool) -> None:
    """Refuse sources that no continuous query can read."""
    clause = "GROUP BY" if select.group_by else "JOIN" if select.joins else None
    references = (select.relation, *(join.relation for join in select.joins))
    for reference, source in zip(references, relation.sources, strict=True):
        found = source.object
        if is_system(found):
            raise NotSupported(
                f'a continuous query cannot read the system table "{found.name}"',
                hint="Read it with a standalone SELECT or with SUBSCRIBE.",
                position=reference.position,
            )
        # Results of Kafka Streams applications often have this format. ksqlDB has no window-store tables, so allowing
        # them breaks no ksqlDB statement.
        allowed = any_format or (isinstance(found, Table) and found.window_store is not None)
        if clause is not None and found.formats.value_format.format == KAFKA and not allowed:
            raise NotSupported(
                f'{clause} cannot read "{found.name}", whose value format is KAFKA',
                detail="That format holds one column, but the rows inside the query have more.",
                hint=f"SET '{ANY_VALUE_FORMAT}' = 'true', or copy it into a stream with VALUE_FORMAT='JSON' first.",
                position=reference.position,
            )


def _check_items(select: sql.Select, relation: Relation) -> None:
    """Checks that need no types; they come before type errors."""
    items = [item for item in select.items if isinstance(item, sql.SelectExpression)]
    grouped = select.group_by or any(aggregates(item.expression) for item in items)
    for item in items:
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
    """The select list, and the relation with all columns that it can refer to."""
    if partitioning is not None:
        after = relation.also(*partitioning.added)
        return bind_projection(select.items, after, partitioning.star), after
    if select.window is not None:
        relation = relation.also(*(Column(name, type_) for name, type_ in WINDOW_BOUNDS.items()))

    def star(item: sql.SelectStar) -> list[tuple[str, Expression]]:
        columns = list(relation.star(item))
        if synthetic is not None and item.qualifier is None:
            columns.insert(0, (synthetic.name, ColumnRef(synthetic.name, None, item.position)))
        return columns

    return bind_projection(select.items, relation, star), relation


def _partition_keys(
    projection: Sequence[BoundColumn], partitioning: Partitioning, select: sql.Select
) -> tuple[str, ...]:
    """A key column may be selected by its expression in PARTITION BY, or by a star under its new name."""
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


def refuse_clauses(select: sql.Select) -> None:
    for clause in select.clauses:
        message, hint = f"{clause.name} is not supported yet", INSTEAD.get(clause.name)
        position = clause.position or select.position
        raise NotYetSupported(Feature.CLAUSE, clause.name, message, hint=hint, position=position)


def bind_where(select: sql.Select, relation: Relation) -> Expression | None:
    if select.where is None:
        return None
    resolved = relation.resolve(select.where)
    for call in aggregates(resolved):
        raise BindError(
            f"WHERE cannot contain the aggregate {call.shown}",
            hint="Filter groups with HAVING, after GROUP BY.",
            position=call.position,
        )
    refuse_table_functions(resolved, clause="WHERE")
    return relation.condition(select.where, clause="WHERE")
