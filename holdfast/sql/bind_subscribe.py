"""SUBSCRIBE: what is followed, from which time, and in which form."""

from collections.abc import Sequence

from holdfast.catalog.objects import CatalogObject, Hold, Stream
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import (
    BindError,
    NotSupported,
    Position,
    UnknownColumn,
    WrongObjectKind,
    nearest,
)
from holdfast.runtime.expressions.tree import ColumnRef
from holdfast.sql import statements as sql
from holdfast.sql.bind_query import bind_select
from holdfast.sql.bind_read import computes
from holdfast.sql.bound import BoundSelect, BoundSubscribe
from holdfast.sql.bound_read import BoundRead
from holdfast.sql.inlining import ViewRefused, inlined
from holdfast.sql.moments import bind_as_of, bind_moment
from holdfast.sql.relation import WINDOW_BOUNDS

FLAGS = ("SNAPSHOT", "PROGRESS")


def bind_subscribe(statement: sql.Subscribe, catalog: Catalog) -> BoundSubscribe:
    select = _over_objects(_select(statement.target, catalog), catalog)
    bound = bind_select(select, catalog)
    flags = _flags(statement.options)
    return BoundSubscribe(
        select=bound,
        snapshot=flags.get("SNAPSHOT", True),
        progress=flags.get("PROGRESS", False),
        as_of=bind_as_of(statement.as_of),
        up_to=bind_moment(statement.up_to) if statement.up_to is not None else None,
        key=_key(statement.key, bound),
        hold=_hold(statement, bound, catalog),
    )


def _select(target: sql.Identifier | sql.Select, catalog: Catalog) -> sql.Select:
    """The query that is followed; an object stands for all of its columns."""
    if isinstance(target, sql.Identifier):
        relation = sql.Relation(target.text, target.text, target.position)
        target = sql.Select(items=(sql.SelectStar(None, target.position),), relation=relation, position=target.position)
    for relation in () if computes(target) else (target.relation,):
        if relation.full_name not in catalog.views:
            _check_collection(catalog.relation(relation.full_name, position=relation.position), relation.position)
    given = (
        (
            f"EMIT {target.emit}",
            target.emit is not None,
            "Leave it out: a subscription goes on until UP TO.",
        ),
        ("AS OF", target.as_of is not None, "Write AS OF after the brackets, where it is the time to begin at."),
        ("LIMIT", target.limit is not None and not target.order_by, "Leave it out, or say with ORDER BY which rows."),
    )
    for clause, is_given, hint in given:
        if is_given:
            message = f"{clause} cannot be used in the query of a SUBSCRIBE"
            raise NotSupported(message, hint=hint, position=target.position)
    return target


def _over_objects(select: sql.Select, catalog: Catalog) -> sql.Select:
    """A query of a view as one of what the view reads, where that can be followed by its changes; else as it is."""
    try:
        merged = inlined(select, catalog)
    except ViewRefused:
        return select
    if merged is select or computes(merged):
        return select
    relation = merged.relation
    _check_collection(catalog.relation(relation.full_name, position=relation.position), relation.position)
    return merged


def _check_collection(found: CatalogObject, position: Position | None) -> None:
    if isinstance(found, Stream):
        raise WrongObjectKind(
            f'SUBSCRIBE needs a table, and "{found.name}" is a stream',
            detail="A stream is not kept as a collection: it has no rows that come and go, and no times to begin at.",
            hint="Follow it with SELECT … EMIT CHANGES.",
            position=position,
        )


def _hold(statement: sql.Subscribe, bound: BoundSelect | BoundRead, catalog: Catalog) -> Hold | None:
    name = statement.hold
    if name is None:
        return None
    hold = catalog.hold(name.text, position=name.position)
    if statement.as_of is not None:
        raise NotSupported(
            "AS OF and HOLD cannot be used together",
            hint="Leave out AS OF: the subscription begins at the hold's time.",
            position=statement.as_of.position,
        )
    free = next((table.name for table in bound.tables if table.name not in hold.on), None)
    if free is not None:
        raise BindError(
            f'hold "{hold.name}" does not hold "{free}"',
            detail=f"It holds {', '.join(hold.on)}.",
            position=name.position,
        )
    return hold


def _flags(options: Sequence[sql.Property]) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for option in options:
        if option.name not in FLAGS:
            hint = nearest(option.name, FLAGS, plural="options")
            raise BindError(f'SUBSCRIBE has no option "{option.name}"', hint=hint, position=option.position)
        if option.name in found:
            raise BindError(f'option "{option.name}" is given twice', position=option.position)
        if not isinstance(option.value, bool):
            raise BindError(f"{option.name} must be true or false", position=option.position)
        found[option.name] = option.value
    return found


def _key(columns: Sequence[sql.Identifier], bound: BoundSelect | BoundRead) -> tuple[int, ...]:
    """The places of the key columns in the query. Over one table, together they must tell its rows apart."""
    reads = bound.relation.name if isinstance(bound, BoundSelect) else "the query"
    names = [column.name for column in bound.columns]
    places: list[int] = []
    for column in columns:
        if column.text not in names:
            raise UnknownColumn(column.text, relation=reads, known=names, position=column.position)
        if names.index(column.text) in places:
            raise BindError(f'key column "{column.text}" is given twice', position=column.position)
        places.append(names.index(column.text))
    if isinstance(bound, BoundRead):
        return tuple(places)
    selected = {e.name for e in (bound.columns[place].expression for place in places) if isinstance(e, ColumnRef)}
    window = tuple(WINDOW_BOUNDS)[:1] if bound.relation.window is not None else ()
    missing = [name for name in (*(c.name for c in bound.relation.schema.key), *window) if name not in selected]
    if columns and missing:
        raise BindError(
            f'KEY does not tell the rows of "{bound.relation.name}" apart',
            detail=f"The table's key column {missing[0]} is not among its columns.",
            hint=f"Name every key column of the table, as {', '.join(missing)}.",
            position=columns[0].position,
        )
    return tuple(places)
