"""CREATE, ALTER and DROP INDEX."""

import re
from collections.abc import Iterable, Set
from itertools import count

from holdfast.catalog.objects import Stream, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.catalog.system import is_system
from holdfast.errors import BindError, NotSupported, WrongObjectKind
from holdfast.names import ObjectName
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.expressions.references import references
from holdfast.runtime.expressions.render import renderable
from holdfast.runtime.expressions.scope import Scope
from holdfast.runtime.expressions.text import format_expression
from holdfast.runtime.expressions.tree import Call, ColumnRef, Expression
from holdfast.sql import statements as sql
from holdfast.sql.aggregation import aggregates
from holdfast.sql.bind_indexed_view import bind_kept_view
from holdfast.sql.bound import BoundNothing
from holdfast.sql.bound_index import BoundAlterIndex, BoundCreateIndex, BoundDropIndex
from holdfast.sql.bound_query import BoundQuery
from holdfast.sql.properties import read_properties, retained_ms
from holdfast.sql.relation import RECORD_COLUMNS, BoundSource, Relation
from holdfast.sql.row_functions import refuse_table_functions
from holdfast.sql.walk import column_refs, walk
from holdfast.types import is_scalar

LONGEST = 40
"""Characters that a made name takes from what the index is by."""


def bind_create_index(statement: sql.CreateIndex, catalog: Catalog) -> BoundCreateIndex | BoundNothing:
    name = statement.name
    if name is not None and statement.if_not_exists and name.text in catalog.indexes:
        return BoundNothing(f'index "{name.text}" already exists')
    on, query = _indexed(statement.on, catalog)
    expressions = _expressions(statement, on, catalog)
    if name is None:
        made = _free_name(on, expressions, catalog)
    else:
        catalog.check_free(name.text, position=name.position)
        made = ObjectName(name.text)
    retained = read_properties(statement.properties, known=(sql.RETAIN_HISTORY,)).retain_ms
    return BoundCreateIndex(name=made, on=on, expressions=expressions, query=query, retain_ms=retained)


def bind_alter_index(statement: sql.AlterIndex, catalog: Catalog) -> BoundAlterIndex:
    found = catalog.index(statement.name.text, position=statement.name.position)
    return BoundAlterIndex(found, retained_ms(statement.retain if statement.retain.value is not None else None))


def bind_drop_index(statement: sql.DropIndex, catalog: Catalog) -> BoundDropIndex | BoundNothing:
    name, position = statement.name.text, statement.name.position
    if statement.if_exists and name not in catalog.indexes:
        return BoundNothing(f'index "{name}" does not exist')
    found = catalog.index(name, position=position)
    catalog.check_holds(found, cascade=statement.cascade, position=position)
    return BoundDropIndex(found)


def _indexed(name: sql.Identifier, catalog: Catalog) -> tuple[Table, BoundQuery | None]:
    """What an index is on; for a plain view, which has no rows, also the query that gives them."""
    if name.text in catalog.views:
        return bind_kept_view(catalog.views[ObjectName(name.text)], catalog, name.position)
    found = catalog.relation(name.text, position=name.position)
    if isinstance(found, Stream):
        raise WrongObjectKind(
            f'an index cannot be on "{found.name}", which is a stream',
            detail="A stream keeps no rows: there is nothing to find in it.",
            hint="Index a table that is made from it.",
            position=name.position,
        )
    if is_system(found):
        raise WrongObjectKind(f'an index cannot be on "{found.name}", which is a system table', position=name.position)
    return found, None


def _expressions(statement: sql.CreateIndex, on: Table, catalog: Catalog) -> tuple[Expression, ...]:
    if statement.default and statement.expressions:
        raise BindError(
            "a DEFAULT INDEX has no expressions: it is by the key",
            hint=f"Leave out DEFAULT, or write CREATE DEFAULT INDEX ON {on.name}.",
            position=statement.expressions[0].position,
        )
    if not statement.default and not statement.expressions:
        raise BindError(
            "an index needs expressions to be by",
            hint=f"Write CREATE INDEX ON {on.name} (column), or CREATE DEFAULT INDEX for one by the key.",
            position=statement.position,
        )
    relation = Relation((BoundSource(on, on.name),))
    users = {function.versioned for function in catalog.functions.values()}
    found: list[Expression] = []
    for written in statement.expressions:
        bound = _expression(written, relation, users)
        if bound in found:
            raise BindError(f"the index has {format_expression(bound)} twice", position=written.position)
        found.append(bound)
    return tuple(found)


def _expression(written: Expression, relation: Relation, users: Set[str]) -> Expression:
    """One that gives the same for the same row at any time, and that the store can compare."""
    resolved, position = relation.resolve(written), written.position
    for call in aggregates(resolved):
        raise BindError(f"an index cannot be by the aggregate {call.shown}", position=call.position)
    refuse_table_functions(resolved, clause="an index")
    if not references(resolved):
        raise BindError("an index by what is the same in all rows finds nothing", position=position)
    for ref in column_refs(resolved):
        if ref.name in RECORD_COLUMNS:
            raise NotSupported(
                f"an index cannot be by {ref.name}",
                detail="A table's current row can come from many records.",
                position=ref.position,
            )
    type_ = relation.type_of(resolved)
    if not is_scalar(type_):
        raise NotSupported(
            f"an index cannot be by a value of type {type_}",
            hint="Index what is inside it: a field (s->a), an element (a[1], m['k']).",
            position=position,
        )
    for node in walk(resolved):
        if isinstance(node, Call) and (node.name in users or _is_volatile(node)):
            raise NotSupported(
                f"an index cannot be by {node.shown}",
                detail="What it gives may be something else each time: a row could not be found where it was put.",
                hint="Compute it as a column of a table, and index that.",
                position=node.position or position,
            )
    return resolved


def _is_volatile(call: Call) -> bool:
    """A function of nothing gives the same each time if the store has a form of it: PI() does, UUID() does not."""
    return not call.arguments and not renderable(call, Scope.of([]), Dialect.DUCKDB)


def _free_name(on: Table, expressions: Iterable[Expression], catalog: Catalog) -> ObjectName:
    by = "_".join(e.name if isinstance(e, ColumnRef) else _word(e) for e in expressions)[:LONGEST].strip("_")
    name = f"{on.name}_{by or 'PRIMARY'}_IDX"
    for number in count(1):
        candidate = ObjectName(name if number == 1 else f"{name}{number}")
        if not catalog.is_taken(candidate):
            return candidate
    raise AssertionError


def _word(expression: Expression) -> str:
    """An expression as part of a name."""
    return re.sub(r"\W+", "_", format_expression(expression)).strip("_")
