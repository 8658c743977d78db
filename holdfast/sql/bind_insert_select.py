"""INSERT INTO … SELECT: a query that writes to a stream which is there already."""

from collections.abc import Mapping
from dataclasses import replace

from holdfast.catalog.objects import CatalogObject, MaterializedView, Stream
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import BindError, NotSupported, TypeMismatch, WrongObjectKind
from holdfast.runtime.expressions.coercion import common_type
from holdfast.runtime.expressions.tree import Cast
from holdfast.sql import statements as sql
from holdfast.sql.bind_create import schema_of
from holdfast.sql.bind_insert import materialized
from holdfast.sql.bind_joins import is_stream
from holdfast.sql.bind_query import bind_query
from holdfast.sql.bound import BoundInsertSelect
from holdfast.sql.bound_query import BoundColumn, BoundQuery
from holdfast.sql.properties import OF_INSERTS, read_properties
from holdfast.sql.windows import result_window
from holdfast.types import Schema


def bind_insert_select(
    statement: sql.InsertSelect, catalog: Catalog, _properties: Mapping[str, str]
) -> BoundInsertSelect:
    """A query whose result must have the columns of its target."""
    with_ = read_properties(statement.properties, OF_INSERTS)
    target = _target(statement, catalog)
    if with_.query_id is not None and with_.query_id in catalog.queries:
        raise BindError(f"query {with_.query_id} already exists", position=with_.position("QUERY_ID"))
    query = _widened(bind_query(statement.select, catalog), target.schema)
    if query.aggregates or not is_stream(query.input):
        raise WrongObjectKind(
            f'"{target.name}" is a stream, and the result of this query is a table', position=statement.select.position
        )
    _check_cycle(statement, target, query, catalog)
    _check_schema(statement, target, schema_of(query))
    if result_window(query) != target.window:
        raise BindError(
            f'the keys of "{target.name}" and of the query are not windowed in the same way',
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
            f'INSERT INTO … SELECT needs a stream, and "{target.name}" is a table',
            detail="The rows of a table are those of one query.",
            hint="CREATE TABLE … AS SELECT makes one.",
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
    """Refuse to write what the query reads, where no topic is between: a tick would never end."""
    reached: dict[str, str] = {}
    waiting = [(source.object.name, "") for source in query.sources] if target.derived else []
    while waiting:
        name, reader = waiting.pop()
        if name not in reached and catalog.object(name).kept:
            reached[name] = reader
            waiting += [(source, name) for writer in catalog.writers(name) for source in writer.sources]
    if target.name not in reached:
        return
    path, reader = [f'"{target.name}"'], reached[target.name]
    while reader:
        path.append(f'"{reader}"')
        reader = reached[reader]
    raise NotSupported(
        f'the query would read what it writes to "{target.name}"',
        detail=f"It reads {', which reads '.join(reversed(path))}.",
        hint="Write to a stream over a topic of its own, CREATE STREAM … (columns) WITH (KAFKA_TOPIC = …).",
        position=statement.select.position,
    )


def _widened(query: BoundQuery, schema: Schema) -> BoundQuery:
    """The query with its value columns cast to those of the target, where they fit without loss."""
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
            f'the columns of the query are not those of "{target.name}"',
            detail=f"The query has {schema}; the stream has {target.schema}.",
            hint="Select the same names and types in the same order.",
            position=statement.select.position,
        )
