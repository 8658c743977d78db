"""TERMINATE, PAUSE and RESUME of queries."""

from dataclasses import dataclass

from holdfast.catalog.commands import (
    CommandAction,
    CommandId,
    CommandType,
)
from holdfast.catalog.fold import EVERY_QUERY
from holdfast.catalog.objects import QueryEntry
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import DependentObjects
from holdfast.sql.bind.ddl_kind import BoundDdl, DdlKind, Privilege
from holdfast.sql.syntax import statements as sql


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundQueryControl(BoundDdl):
    """Queries whose state changes; each gets its own command."""

    queries: tuple[QueryEntry, ...]

    @property
    def target(self) -> str:
        """The one query, or ALL."""
        return self.queries[0].id if len(self.queries) == 1 else EVERY_QUERY


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTerminate(BoundQueryControl):
    """Queries to terminate; their results remain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundPause(BoundQueryControl):
    """Queries to pause; they retain their state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundResume(BoundQueryControl):
    """Queries to resume."""


def bind_terminate(statement: sql.Terminate, catalog: Catalog) -> BoundTerminate:
    """The query of an index cannot be terminated; it ends when the index is dropped."""
    queries = _queries(statement, catalog)
    if statement.query is not None and (index := catalog.index_of(queries[0].id)) is not None:
        raise DependentObjects(
            f'query {queries[0].id} maintains index "{index.name}"',
            hint=f"Drop the index instead: DROP INDEX {index.name};",
            position=statement.query.position,
        )
    return BoundTerminate(queries=tuple(query for query in queries if catalog.index_of(query.id) is None))


def bind_pause(statement: sql.Pause, catalog: Catalog) -> BoundPause:
    return BoundPause(queries=_queries(statement, catalog))


def bind_resume(statement: sql.Resume, catalog: Catalog) -> BoundResume:
    return BoundResume(queries=_queries(statement, catalog))


def _queries(statement: sql.Terminate | sql.Pause | sql.Resume, catalog: Catalog) -> tuple[QueryEntry, ...]:
    if statement.query is None:
        return tuple(catalog.queries.values())
    return (catalog.query(statement.query.text, position=statement.query.position),)


DDL = (
    DdlKind(
        statement=sql.Terminate,
        bound=BoundTerminate,
        bind=lambda statement, catalog, _: bind_terminate(statement, catalog),
        id=lambda bound: CommandId(CommandType.TERMINATE, bound.target, CommandAction.EXECUTE),
        message=lambda _: "Query terminated.",
        privileges=(Privilege.OWNER,),
    ),
    DdlKind(
        statement=sql.Pause,
        bound=BoundPause,
        bind=lambda statement, catalog, _: bind_pause(statement, catalog),
        id=lambda bound: CommandId(CommandType.PAUSE, bound.target, CommandAction.EXECUTE),
        message=lambda _: "Query paused.",
        privileges=(Privilege.OWNER,),
    ),
    DdlKind(
        statement=sql.Resume,
        bound=BoundResume,
        bind=lambda statement, catalog, _: bind_resume(statement, catalog),
        id=lambda bound: CommandId(CommandType.RESUME, bound.target, CommandAction.EXECUTE),
        message=lambda _: "Query resumed.",
        privileges=(Privilege.OWNER,),
    ),
)
