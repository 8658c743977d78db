"""CREATE, ALTER and DROP INDEX."""

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass
from itertools import count

from holdfast.catalog.commands import (
    CommandAction,
    CommandId,
    CommandType,
    retain_property,
)
from holdfast.catalog.objects import NO_PROPERTIES, CatalogObject, Index, Stream, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.catalog.system import is_system
from holdfast.errors import BindError, NotSupported, WrongObjectKind
from holdfast.names import ObjectName
from holdfast.runtime.compiler.sql import renderable
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.expressions.references import references
from holdfast.runtime.expressions.scope import Scope
from holdfast.runtime.expressions.text import format_expression
from holdfast.runtime.expressions.tree import Call, ColumnRef, Expression
from holdfast.runtime.plan import ddl
from holdfast.runtime.plan.sources import SchemaText
from holdfast.sql.bind.ddl_kind import BoundPlan, DdlKind, Privilege, TransactionRule
from holdfast.sql.bind.indexed_view import bind_indexed_view
from holdfast.sql.bind.nothing import BoundNothing
from holdfast.sql.plan_text import expression_text
from holdfast.sql.properties.with_clause import read_properties, retained_ms
from holdfast.sql.query.aggregation import aggregates
from holdfast.sql.query.continuous import BoundQuery
from holdfast.sql.query.relation import RECORD_COLUMNS, BoundSource, Relation
from holdfast.sql.query.table_functions import refuse_table_functions
from holdfast.sql.syntax import statements as sql
from holdfast.sql.syntax.walk import column_refs, walk
from holdfast.types import is_scalar

MAX_EXPRESSION_LENGTH = 40
"""Maximum length of the part of a generated name that comes from the index's expressions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCreateIndex(BoundPlan):
    """An index on expressions over an object's columns, or on its key if there are none.

    `query` is the query of a plain view; None if `on` stores its own rows.
    """

    name: ObjectName
    on: CatalogObject
    expressions: tuple[Expression, ...]
    query: BoundQuery | None = None
    retain_ms: int | None = None


@dataclass(frozen=True, slots=True)
class BoundAlterIndex(BoundPlan):
    """New history retention of an index; None is the default."""

    index: Index
    retain_ms: int | None


@dataclass(frozen=True, slots=True)
class BoundDropIndex(BoundPlan):
    """An index to drop, with the holds on it."""

    index: Index


def bind_create_index(statement: sql.CreateIndex, catalog: Catalog) -> BoundCreateIndex | BoundNothing:
    name = statement.name
    if name is not None and statement.if_not_exists and name.text in catalog.indexes:
        return BoundNothing(f'index "{name.text}" already exists')
    on, query = _indexed(statement.on, catalog)
    expressions = _expressions(statement, on, catalog)
    if name is None:
        index_name = _free_name(on, expressions, catalog)
    else:
        catalog.check_free(name.text, position=name.position)
        index_name = ObjectName(name.text)
    retain_ms = read_properties(statement.properties, known=(sql.RETAIN_HISTORY,)).retain_ms
    return BoundCreateIndex(name=index_name, on=on, expressions=expressions, query=query, retain_ms=retain_ms)


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
    """The indexed object; for a plain view, which stores no rows, also its query."""
    if name.text in catalog.views:
        return bind_indexed_view(catalog.views[ObjectName(name.text)], catalog, name.position)
    found = catalog.relation(name.text, position=name.position)
    if isinstance(found, Stream):
        raise WrongObjectKind(
            f'an index cannot be on "{found.name}", which is a stream',
            detail="A stream has no current rows.",
            hint="Create the index on a table derived from it.",
            position=name.position,
        )
    if is_system(found):
        raise WrongObjectKind(f'an index cannot be on "{found.name}", which is a system table', position=name.position)
    return found, None


def _expressions(statement: sql.CreateIndex, on: Table, catalog: Catalog) -> tuple[Expression, ...]:
    if statement.default and statement.expressions:
        raise BindError(
            "a DEFAULT INDEX is on the key and cannot have expressions",
            hint=f"Leave out DEFAULT, or write CREATE DEFAULT INDEX ON {on.name}.",
            position=statement.expressions[0].position,
        )
    if not statement.default and not statement.expressions:
        raise BindError(
            "CREATE INDEX needs at least one expression",
            hint=f"Write CREATE INDEX ON {on.name} (column), or CREATE DEFAULT INDEX for one on the key.",
            position=statement.position,
        )
    relation = Relation((BoundSource(on, on.name),))
    user_functions = {function.versioned for function in catalog.functions.values()}
    resolved: list[Expression] = []
    for expression in statement.expressions:
        bound = _expression(expression, relation, user_functions)
        if bound in resolved:
            raise BindError(
                f"index expression {format_expression(bound)} is listed twice", position=expression.position
            )
        resolved.append(bound)
    return tuple(resolved)


def _expression(expression: Expression, relation: Relation, user_functions: Set[str]) -> Expression:
    """The resolved expression; its result must depend only on the row, and the store must be able to compare it."""
    resolved, position = relation.resolve(expression), expression.position
    for call in aggregates(resolved):
        raise BindError(f"an index expression cannot contain the aggregate {call.shown}", position=call.position)
    refuse_table_functions(resolved, clause="an index")
    if not references(resolved):
        raise BindError("an index expression must depend on the row", position=position)
    for ref in column_refs(resolved):
        if ref.name in RECORD_COLUMNS:
            raise NotSupported(
                f"an index expression cannot use {ref.name}",
                detail="A table's current row can come from many records.",
                position=ref.position,
            )
    type_ = relation.type_of(resolved)
    if not is_scalar(type_):
        raise NotSupported(
            f"an index expression cannot be of type {type_}",
            hint="Index a field (s->a) or an element (a[1], m['k']) of it.",
            position=position,
        )
    for node in walk(resolved):
        if isinstance(node, Call) and (node.name in user_functions or _is_volatile(node)):
            raise NotSupported(
                f"an index expression cannot use {node.shown}",
                detail="Its result can differ from call to call, so rows could not be found again.",
                hint="Compute it as a column of a table, and index that column.",
                position=node.position or position,
            )
    return resolved


def _is_volatile(call: Call) -> bool:
    """A call without arguments is stable if the store can compute it: PI() is, UUID() is not."""
    return not call.arguments and not renderable(call, Scope.of([]), Dialect.DUCKDB)


def _free_name(on: Table, expressions: Iterable[Expression], catalog: Catalog) -> ObjectName:
    by = "_".join(e.name if isinstance(e, ColumnRef) else _word(e) for e in expressions)
    by = by[:MAX_EXPRESSION_LENGTH].strip("_")
    name = f"{on.name}_{by or 'PRIMARY'}_IDX"
    for number in count(1):
        candidate = ObjectName(name if number == 1 else f"{name}{number}")
        if not catalog.is_taken(candidate):
            return candidate
    raise AssertionError


def _word(expression: Expression) -> str:
    """An expression as part of a name."""
    return re.sub(r"\W+", "_", format_expression(expression)).strip("_")


def _command(bound: BoundCreateIndex) -> ddl.CreateIndex:
    return ddl.CreateIndex(
        index_name=bound.name,
        source_name=bound.on.name,
        schema=SchemaText(str(bound.on.schema)),
        window_info=bound.on.window,
        expressions=tuple(map(expression_text, bound.expressions)),
    )


DDL = (
    DdlKind(
        statement=sql.CreateIndex,
        bound=BoundCreateIndex,
        bind=lambda statement, catalog, _: bind_create_index(statement, catalog),
        id=lambda bound: CommandId(CommandType.INDEX, bound.name, CommandAction.CREATE),
        message=lambda bound: f"Index {bound.name} created.",
        privileges=(Privilege.CREATE, Privilege.SELECT, Privilege.USAGE),
        transaction=TransactionRule.CREATES,
        command=lambda bound, _: _command(bound),
        properties=lambda bound: NO_PROPERTIES if bound.retain_ms is None else retain_property(bound.retain_ms),
    ),
    DdlKind(
        statement=sql.AlterIndex,
        bound=BoundAlterIndex,
        bind=lambda statement, catalog, _: bind_alter_index(statement, catalog),
        id=lambda bound: CommandId(CommandType.INDEX, bound.index.name, CommandAction.ALTER),
        message=lambda bound: f"Index {bound.index.name} altered.",
        privileges=(Privilege.OWNER,),
        command=lambda bound, _: ddl.AlterIndex(index_name=bound.index.name),
        properties=lambda bound: retain_property(bound.retain_ms),
    ),
    DdlKind(
        statement=sql.DropIndex,
        bound=BoundDropIndex,
        bind=lambda statement, catalog, _: bind_drop_index(statement, catalog),
        id=lambda bound: CommandId(CommandType.INDEX, bound.index.name, CommandAction.DROP),
        message=lambda bound: f"Index {bound.index.name} dropped.",
        privileges=(Privilege.OWNER,),
        command=lambda bound, _: ddl.DropIndex(index_name=bound.index.name),
    ),
)
