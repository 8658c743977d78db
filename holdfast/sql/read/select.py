"""A client's SELECT: a pull query, or a push query with EMIT."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.catalog.objects import CatalogObject, Index, Stream, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import Feature, NotSupported, NotYetSupported, WrongObjectKind
from holdfast.runtime.expressions.tree import Expression
from holdfast.sql.literals.moment import BoundAsOf, bind_as_of
from holdfast.sql.query.aggregation import aggregates
from holdfast.sql.query.continuous import bind_where, refuse_clauses
from holdfast.sql.query.inline_views import explain_views, inlined
from holdfast.sql.query.projection import BoundColumn, bind_projection
from holdfast.sql.query.relation import RECORD_COLUMNS, Relation
from holdfast.sql.query.table_functions import (
    refuse_table_functions,
)
from holdfast.sql.read.pull import BoundRead, bind_read, computes, reads_view
from holdfast.sql.syntax import statements as sql
from holdfast.sql.syntax.walk import column_refs


class SelectKind(StrEnum):
    """What a SELECT returns: the current rows, their changes, or the current rows and then their changes."""

    PULL = "PULL"
    PUSH = "PUSH"
    ALL = "ALL"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundSelect:
    """A client's query that filters and projects the rows of one object."""

    kind: SelectKind
    relation: CatalogObject
    columns: tuple[BoundColumn, ...]
    where: Expression | None = None
    limit: int | None = None
    as_of: BoundAsOf | None = None
    indexes: tuple[Index, ...] = ()
    """The indexes on its relation."""

    @property
    def tables(self) -> tuple[Table, ...]:
        """Its relation, if that is a table."""
        return (self.relation,) if isinstance(self.relation, Table) else ()


def bind_select(select: sql.Select, catalog: Catalog) -> BoundSelect | BoundRead:
    """Bind a client's SELECT: a pull without EMIT, a push with EMIT CHANGES, a pull and then a push with EMIT ALL."""
    if select.emit is None and (computes(select) or reads_view(select, catalog)):
        return bind_read(select, catalog)
    with explain_views(select, catalog):
        return _bind_simple(inlined(select, catalog), catalog)


def _bind_simple(select: sql.Select, catalog: Catalog) -> BoundSelect:
    """Bind a query that filters and projects the rows of one object."""
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
    for clause, is_present in present:
        if is_present:
            raise _not_in_select(clause, kind, select)
    columns = bind_projection(select.items, relation)
    for column in columns:
        for call in aggregates(column.expression):
            raise NotYetSupported(
                Feature.CLAUSE,
                "aggregates in a SELECT",
                f"{call.shown} is not supported in a push query yet",
                hint="Store the aggregate in a table with CREATE TABLE … AS, and select from that.",
                position=call.position,
            )
        refuse_table_functions(column.expression, clause="a standalone SELECT")
    where = bind_where(select, relation)
    if not isinstance(relation.source.object, Stream):
        _refuse_record_columns(relation, columns, where, kind)
    if kind is not SelectKind.PULL and select.as_of is not None:
        raise NotSupported(
            f"AS OF cannot be used with EMIT {select.emit}",
            hint="Leave out EMIT to read the rows at that time.",
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
                f'EMIT ALL needs a table, but "{found.name}" is a stream',
                detail="A stream has no current rows; its past rows are the records of its topic.",
                hint="SET 'auto.offset.reset'='earliest' and use EMIT CHANGES: past rows come first, then new ones.",
                position=select.relation.position,
            )
        case sql.Emit.ALL:
            return SelectKind.ALL
        case _:
            message = f"EMIT {select.emit} is not supported yet"
            raise NotYetSupported(Feature.CLAUSE, f"EMIT {select.emit}", message, position=select.position)


def _query_text(kind: SelectKind) -> str:
    return "pull query" if kind is SelectKind.PULL else "push query"


def _not_in_select(clause: str, kind: SelectKind, select: sql.Select) -> NotSupported:
    return NotYetSupported(
        Feature.CLAUSE,
        f"{clause} in a SELECT",
        f"{clause} is not supported in a {_query_text(kind)} yet",
        hint="Store the result in a table with CREATE TABLE … AS, and select from that.",
        position=select.position,
    )


def _refuse_record_columns(
    relation: Relation, columns: Sequence[BoundColumn], where: Expression | None, kind: SelectKind
) -> None:
    expressions = [column.expression for column in columns] + ([where] if where is not None else [])
    for expression in expressions:
        for ref in column_refs(expression):
            if ref.name in RECORD_COLUMNS and relation.source.object.schema.find(ref.name) is None:
                raise NotSupported(
                    f"{ref.name} of a table is not supported in a {_query_text(kind)}",
                    detail="A table does not store the positions of its records.",
                    hint=f"Store it as a column: CREATE TABLE … AS SELECT …, {ref.name} AS …, and select from that.",
                    position=ref.position,
                )
