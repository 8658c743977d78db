"""CREATE, ALTER and DROP HOLD."""

from collections.abc import Sequence

from holdfast.catalog.objects import Held, Stream
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import BadTime, BindError, WrongObjectKind
from holdfast.names import ObjectName
from holdfast.runtime.expressions.tree import StringLiteral
from holdfast.sql import statements as sql
from holdfast.sql.bound_hold import BoundAdvanceHold, BoundCreateHold, BoundDropHold, BoundRenameHold
from holdfast.sql.duration_texts import EXAMPLES, duration_ms
from holdfast.sql.moments import bind_moment

MAX_LAG_MS = 3 * 3_600_000
"""How far a hold may trail its objects when its statement does not say."""


def bind_create_hold(statement: sql.CreateHold, catalog: Catalog) -> BoundCreateHold:
    if statement.name is None:
        raise BindError(
            "a hold needs a name",
            hint="Write CREATE HOLD name ON …; only in the transaction that creates its object it may have none.",
            position=statement.position,
        )
    name = ObjectName(statement.name.text)
    catalog.check_free(name, position=statement.name.position)
    return BoundCreateHold(
        name=name,
        on=_objects(statement.on, catalog),
        at=bind_moment(statement.at) if statement.at is not None else None,
        max_lag_ms=_max_lag(statement.max_lag),
    )


def bind_advance_hold(statement: sql.AdvanceHold, catalog: Catalog) -> BoundAdvanceHold:
    hold = catalog.hold(statement.name.text, position=statement.name.position)
    return BoundAdvanceHold(hold, bind_moment(statement.to) if statement.to is not None else None)


def bind_rename_hold(statement: sql.RenameHold, catalog: Catalog) -> BoundRenameHold:
    hold = catalog.hold(statement.name.text, position=statement.name.position)
    catalog.check_free(statement.to.text, position=statement.to.position)
    return BoundRenameHold(hold, ObjectName(statement.to.text))


def bind_drop_hold(statement: sql.DropHold, catalog: Catalog) -> BoundDropHold | None:
    """None when there is none and the statement does not mind."""
    if statement.if_exists and statement.name.text not in catalog.holds:
        return None
    return BoundDropHold(catalog.hold(statement.name.text, position=statement.name.position))


def _objects(names: Sequence[sql.Identifier], catalog: Catalog) -> tuple[Held, ...]:
    found: list[Held] = []
    for name in names:
        index = catalog.indexes.get(ObjectName(name.text))
        named = index or catalog.object(name.text, kind="table or index", position=name.position)
        if isinstance(named, Stream):
            raise WrongObjectKind(
                f'a hold cannot be on "{name.text}", which is a stream',
                detail="A stream keeps no rows of earlier times: there is nothing to hold.",
                hint="Hold a table that is made from it.",
                position=name.position,
            )
        if named in found:
            raise BindError(f'"{name.text}" is named twice', position=name.position)
        found.append(named)
    return tuple(found)


def _max_lag(text: StringLiteral | None) -> int:
    if text is None:
        return MAX_LAG_MS
    found = duration_ms(text.value)
    if found is None:
        raise BadTime(f"'{text.value}' cannot be read as a duration", hint=EXAMPLES, position=text.position)
    if found <= 0:
        raise BadTime("MAX LAG must be more than nothing", hint=EXAMPLES, position=text.position)
    return found
