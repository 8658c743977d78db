"""SUBSCRIBE: the query whose changes are sent, the start time, and the options."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from holdfast.catalog.objects import CatalogObject, Hold, Stream, View
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import (
    BindError,
    NotSupported,
    Position,
    UnknownColumn,
    WrongObjectKind,
    nearest,
)
from holdfast.names import ObjectName
from holdfast.runtime.expressions.tree import ColumnRef
from holdfast.sql.literals.moment import BoundAsOf, Moment, bind_as_of, bind_moment
from holdfast.sql.query.inline_views import ViewRefused, inlined
from holdfast.sql.query.relation import WINDOW_BOUNDS
from holdfast.sql.query.view_definition import relations_of
from holdfast.sql.read.pull import BoundRead, computes
from holdfast.sql.read.select import BoundSelect, bind_select
from holdfast.sql.syntax import statements as sql

FLAGS = ("SNAPSHOT", "PROGRESS")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundSubscribe:
    """A subscription to a query's changes. `key` are the positions of ENVELOPE UPSERT's columns in the query."""

    select: BoundSelect | BoundRead
    snapshot: bool = True
    progress: bool = False
    as_of: BoundAsOf | None = None
    up_to: Moment | None = None
    key: tuple[int, ...] = ()
    hold: Hold | None = None
    """The hold at whose time the subscription begins."""
    views: tuple[View, ...] = ()
    """The plain views that the query reads, also through other views."""

    @property
    def limit(self) -> None:
        """Always None: a subscription ends at UP TO, not after a number of rows."""


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
        views=tuple(_views(_relations(statement.target), catalog)),
    )


def _relations(target: sql.Identifier | sql.Select) -> Iterable[str]:
    return [target.text] if isinstance(target, sql.Identifier) else relations_of(target)


def _views(names: Iterable[str], catalog: Catalog) -> Iterator[View]:
    for name in names:
        view = catalog.views.get(ObjectName(name))
        if view is not None:
            yield view
            yield from _views(view.sources, catalog)


def _select(target: sql.Identifier | sql.Select, catalog: Catalog) -> sql.Select:
    """The subscribed query; an object's name means all of its columns."""
    if isinstance(target, sql.Identifier):
        relation = sql.RelationReference(target.text, target.text, target.position)
        target = sql.Select(items=(sql.SelectStar(None, target.position),), relation=relation, position=target.position)
    for relation in () if computes(target) else (target.relation,):
        if relation.full_name not in catalog.views:
            _check_collection(catalog.relation(relation.full_name, position=relation.position), relation.position)
    clauses = (
        (
            f"EMIT {target.emit}",
            target.emit is not None,
            "Leave it out: a subscription ends at UP TO.",
        ),
        ("AS OF", target.as_of is not None, "Write AS OF after the parentheses: it is the time to begin at."),
        ("LIMIT", target.limit is not None and not target.order_by, "Leave it out, or choose the rows with ORDER BY."),
    )
    for clause, present, hint in clauses:
        if present:
            message = f"{clause} cannot be used in the query of a SUBSCRIBE"
            raise NotSupported(message, hint=hint, position=target.position)
    return target


def _over_objects(select: sql.Select, catalog: Catalog) -> sql.Select:
    """The query with its views inlined, if it then only filters and projects one object; else the same query."""
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
            f'SUBSCRIBE needs a table, but "{found.name}" is a stream',
            detail="A stream is not stored: it has no current rows, no deletions and no times to begin at.",
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
    missing = next((table.name for table in bound.tables if table.name not in hold.on), None)
    if missing is not None:
        raise BindError(
            f'hold "{hold.name}" is not on "{missing}"',
            detail=f"It is on {', '.join(hold.on)}.",
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
            raise BindError(f'option "{option.name}" is specified twice', position=option.position)
        if not isinstance(option.value, bool):
            raise BindError(f"{option.name} must be true or false", position=option.position)
        found[option.name] = option.value
    return found


def _key(columns: Sequence[sql.Identifier], bound: BoundSelect | BoundRead) -> tuple[int, ...]:
    """The positions of the key columns in the query. For a single table, they must identify its rows."""
    relation = bound.relation.name if isinstance(bound, BoundSelect) else "the query"
    names = [column.name for column in bound.columns]
    positions: list[int] = []
    for column in columns:
        if column.text not in names:
            raise UnknownColumn(column.text, relation=relation, known=names, position=column.position)
        if names.index(column.text) in positions:
            raise BindError(f'key column "{column.text}" is specified twice', position=column.position)
        positions.append(names.index(column.text))
    if isinstance(bound, BoundRead):
        return tuple(positions)
    selected = {
        e.name for e in (bound.columns[position].expression for position in positions) if isinstance(e, ColumnRef)
    }
    window = tuple(WINDOW_BOUNDS)[:1] if bound.relation.window is not None else ()
    missing = [name for name in (*(c.name for c in bound.relation.schema.key), *window) if name not in selected]
    if columns and missing:
        raise BindError(
            f'KEY does not identify the rows of "{bound.relation.name}"',
            detail=f"The table's key column {missing[0]} is missing from KEY.",
            hint=f"Add all key columns of the table to KEY: {', '.join(missing)}.",
            position=columns[0].position,
        )
    return tuple(positions)
