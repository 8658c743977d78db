"""INSERT INTO … SELECT: a query that writes to an existing stream."""

from dataclasses import dataclass, replace

from holdfast.catalog.commands import CommandAction, CommandId, CommandType
from holdfast.catalog.objects import (
    CatalogObject,
    MaterializedView,
    Stream,
)
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import BindError, NotSupported, TypeMismatch, WrongObjectKind
from holdfast.runtime.expressions.coercion import common_type
from holdfast.runtime.expressions.tree import Cast
from holdfast.sql.bind.ddl_kind import BoundPlan, DdlKind, Privilege
from holdfast.sql.bind.insert import materialized
from holdfast.sql.properties.with_clause import OF_INSERTS, read_properties
from holdfast.sql.query.continuous import BoundQuery, bind_query, result_window
from holdfast.sql.query.joins import is_stream
from holdfast.sql.query.projection import BoundColumn
from holdfast.sql.syntax import statements as sql
from holdfast.types import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundInsertSelect(BoundPlan):
    """A query that writes its result to an existing stream. `query_id` is the user's choice, if any."""

    target: Stream
    query: BoundQuery
    query_id: str | None = None


def bind_insert_select(statement: sql.InsertSelect, catalog: Catalog) -> BoundInsertSelect:
    """Bind a query whose result has the same columns as its target."""
    with_ = read_properties(statement.properties, OF_INSERTS)
    target = _target(statement, catalog)
    if with_.query_id is not None and with_.query_id in catalog.queries:
        raise BindError(f"query {with_.query_id} already exists", position=with_.position("QUERY_ID"))
    query = _widened(bind_query(statement.select, catalog), target.schema)
    if query.aggregates or not is_stream(query.input):
        raise WrongObjectKind(
            f'"{target.name}" is a stream, but the result of this query is a table', position=statement.select.position
        )
    _check_cycle(statement, target, query, catalog)
    _check_schema(statement, target, query.schema)
    if result_window(query) != target.window:
        raise BindError(
            f'the keys of "{target.name}" and of the query are windowed differently',
            position=statement.select.position,
        )
    return BoundInsertSelect(target=target, query=query, query_id=with_.query_id)


def _target(statement: sql.InsertSelect, catalog: Catalog) -> Stream:
    position = statement.target.position
    target = catalog.relation(statement.target.text, position=position)
    if isinstance(target, MaterializedView):
        raise materialized(target, position)
    if not isinstance(target, Stream):
        raise WrongObjectKind(
            f'INSERT INTO … SELECT needs a stream, but "{target.name}" is a table',
            detail="Only one query can write to a table.",
            hint="Write CREATE TABLE … AS SELECT.",
            position=position,
        )
    if target.read_only:
        raise NotSupported(
            f'stream "{target.name}" is read only', detail="It was created as a SOURCE.", position=position
        )
    if target.schema.headers:
        raise NotSupported(
            f'cannot insert into "{target.name}", which has HEADER columns',
            detail="They are read from records; a query does not write headers.",
            position=position,
        )
    return target


def _check_cycle(statement: sql.InsertSelect, target: CatalogObject, query: BoundQuery, catalog: Catalog) -> None:
    """Refuse a query that reads its own output without a topic in between: its tick would never end."""
    reached: dict[str, str] = {}
    to_visit = [(source.object.name, "") for source in query.sources] if target.derived else []
    while to_visit:
        name, reader = to_visit.pop()
        if name not in reached and catalog.object(name).maintained:
            reached[name] = reader
            to_visit += [(source, name) for writer in catalog.writers(name) for source in writer.sources]
    if target.name not in reached:
        return
    path, reader = [f'"{target.name}"'], reached[target.name]
    while reader:
        path.append(f'"{reader}"')
        reader = reached[reader]
    raise NotSupported(
        f'the query would read its own output in "{target.name}"',
        detail=f"It reads {', which reads '.join(reversed(path))}.",
        hint="Write to a stream with its own topic: CREATE STREAM … (columns) WITH (KAFKA_TOPIC = …).",
        position=statement.select.position,
    )


def _widened(query: BoundQuery, schema: Schema) -> BoundQuery:
    """The query with its value columns cast to the target's types where that loses nothing."""
    wanted = {column.name: column.type for column in schema.value}

    def widened(column: BoundColumn) -> BoundColumn:
        type_ = wanted.get(column.name, column.type)
        if column.name in query.keys or type_ == column.type or common_type(column.type, type_) != type_:
            return column
        return BoundColumn(column.name, Cast(column.expression, type_), type_)

    return replace(query, projection=tuple(map(widened, query.projection)))


def _check_schema(statement: sql.InsertSelect, target: CatalogObject, schema: Schema) -> None:
    have = [(column.name, column.type, column.role) for column in schema.columns]
    want = [(column.name, column.type, column.role) for column in (*target.schema.key, *target.schema.value)]
    if have != want:
        raise TypeMismatch(
            f'the columns of the query do not match those of "{target.name}"',
            detail=f"The query has {schema}; the stream has {target.schema}.",
            hint="Select the same names and types in the same order.",
            position=statement.select.position,
        )


DDL = (
    DdlKind(
        statement=sql.InsertSelect,
        bound=BoundInsertSelect,
        bind=lambda statement, catalog, _: bind_insert_select(statement, catalog),
        id=lambda bound: CommandId(CommandType.of(bound.target.KIND), bound.target.name, CommandAction.INSERT),
        message=lambda bound: f"Query that writes to {bound.target.name} created.",
        privileges=(Privilege.INSERT, Privilege.SELECT, Privilege.USAGE),
        command=lambda _bound, _text: None,
    ),
)
