"""ALTER STREAM, TABLE and MATERIALIZED VIEW: add columns, or change the retention of history."""

from dataclasses import dataclass

from holdfast.catalog.commands import (
    CommandAction,
    CommandId,
    CommandType,
    retain_property,
)
from holdfast.catalog.objects import NO_PROPERTIES, CatalogObject, Stream, Table
from holdfast.catalog.snapshot import Catalog, wrong_kind
from holdfast.errors import BindError, NotSupported
from holdfast.runtime.plan import ddl
from holdfast.runtime.plan.sources import SchemaText
from holdfast.sql.bind.ddl_kind import BoundPlan, DdlKind, Privilege
from holdfast.sql.properties.formats import check_value
from holdfast.sql.properties.with_clause import no_history, retained_ms
from holdfast.sql.query.relation import RESERVED_COLUMNS, reserved
from holdfast.sql.syntax import statements as sql
from holdfast.types import Column


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundAlter(BoundPlan):
    """Columns to add to an object, or if `retains`, its new history retention: `retain_ms`, None for the default."""

    target: CatalogObject
    columns: tuple[Column, ...]
    retains: bool = False
    retain_ms: int | None = None


def bind_alter(statement: sql.Alter, catalog: Catalog) -> BoundAlter:
    name, position = statement.name.text, statement.name.position
    found = catalog.object(name, kind=statement.kind.lower(), position=position)
    if statement.kind.lower() != found.KIND:
        raise wrong_kind(found, wanted=statement.kind.lower(), position=position)
    if statement.retain is not None:
        if not isinstance(found, Table):
            raise no_history(name, statement.retain.position)
        retain = statement.retain if statement.retain.value is not None else None
        return BoundAlter(target=found, columns=(), retains=True, retain_ms=retained_ms(retain))
    if found.read_only:
        raise NotSupported(
            f'{found.KIND} "{name}" is a SOURCE and cannot be altered',
            hint="Drop it and create it again with the new columns; its topic is not affected.",
            position=position,
        )
    if found.derived:
        raise NotSupported(
            f'{found.KIND} "{name}" is maintained by a query and cannot be altered',
            detail="Its columns are those of the query.",
            hint=f"Write CREATE OR REPLACE {found.KIND.upper()} {name} AS …",
            position=position,
        )
    known = {column.name for column in found.schema.columns}
    for column in statement.columns:
        if column.name in RESERVED_COLUMNS:
            raise reserved(column.name, column.position)
        if column.name in known:
            raise BindError(f'column "{column.name}" already exists in "{name}"', position=column.position)
        known.add(column.name)
    columns = tuple(Column(column.name, column.type) for column in statement.columns)
    check_value(found.formats.value_format.format, (*found.schema.value, *columns), position=position)
    return BoundAlter(target=found, columns=columns)


def _command(bound: BoundAlter) -> ddl.AlterSource:
    return ddl.AlterSource(
        source_name=bound.target.name,
        ksql_type=ddl.SourceType.STREAM if isinstance(bound.target, Stream) else ddl.SourceType.TABLE,
        new_columns=tuple(SchemaText(str(column)) for column in bound.columns),
    )


DDL = (
    DdlKind(
        statement=sql.Alter,
        bound=BoundAlter,
        bind=lambda statement, catalog, _: bind_alter(statement, catalog),
        id=lambda bound: CommandId(CommandType.of(bound.target.KIND), bound.target.name, CommandAction.ALTER),
        message=lambda bound: f"{bound.target.KIND.capitalize()} {bound.target.name} altered.",
        privileges=(Privilege.OWNER,),
        command=lambda bound, _: _command(bound),
        properties=lambda bound: retain_property(bound.retain_ms) if bound.retains else NO_PROPERTIES,
    ),
)
