"""ALTER STREAM and ALTER TABLE: columns are added, never changed or taken away; how long history is kept."""

from holdfast.catalog.objects import Table
from holdfast.catalog.snapshot import Catalog, wrong_kind
from holdfast.errors import BindError, NotSupported
from holdfast.sql import statements as sql
from holdfast.sql.bound import BoundAlter
from holdfast.sql.formats import check_value
from holdfast.sql.properties import no_history, retained_ms
from holdfast.sql.relation import RESERVED_COLUMNS, reserved
from holdfast.types import Column


def bind_alter(statement: sql.Alter, catalog: Catalog) -> BoundAlter:
    name, position = statement.name.text, statement.name.position
    found = catalog.object(name, kind=statement.kind.lower(), position=position)
    if statement.kind.lower() != found.KIND:
        raise wrong_kind(found, wanted=statement.kind.lower(), position=position)
    if statement.retain is not None:
        if not isinstance(found, Table):
            raise no_history(name, statement.retain.position)
        given = statement.retain if statement.retain.value is not None else None
        return BoundAlter(target=found, columns=(), retains=True, retain_ms=retained_ms(given))
    if found.read_only:
        raise NotSupported(
            f'{found.KIND} "{name}" is a SOURCE and cannot be altered',
            hint="Drop it and create it with the columns that it should have; its topic stays as it is.",
            position=position,
        )
    if found.derived:
        raise NotSupported(
            f'{found.KIND} "{name}" is kept by a query and cannot be altered',
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
