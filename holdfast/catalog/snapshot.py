"""An immutable snapshot of the catalog. Every change returns a new catalog."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from holdfast.catalog.objects import (
    CatalogObject,
    Hold,
    Holdable,
    Index,
    MaterializedView,
    QueryEntry,
    Stream,
    Table,
    View,
)
from holdfast.catalog.system import system_table
from holdfast.errors import DependentObjects, DuplicateObject, Position, UnknownObject, WrongObjectKind
from holdfast.names import ObjectName, QueryId, TopicName
from holdfast.runtime.functions.user import UserFunction
from holdfast.types import SqlType


@dataclass(frozen=True, slots=True)
class Catalog:
    """Objects, queries, named types, user-defined functions and holds, in the order of their creation."""

    objects: Mapping[ObjectName, CatalogObject] = field(default_factory=lambda: MappingProxyType({}))
    queries: Mapping[QueryId, QueryEntry] = field(default_factory=lambda: MappingProxyType({}))
    types: Mapping[str, SqlType] = field(default_factory=lambda: MappingProxyType({}))
    functions: Mapping[str, UserFunction] = field(default_factory=lambda: MappingProxyType({}))
    """The current version of each user-defined function."""
    holds: Mapping[ObjectName, Hold] = field(default_factory=lambda: MappingProxyType({}))
    views: Mapping[ObjectName, View] = field(default_factory=lambda: MappingProxyType({}))
    indexes: Mapping[ObjectName, Index] = field(default_factory=lambda: MappingProxyType({}))

    # ---- lookup

    def find(self, name: str) -> CatalogObject | None:
        return self.objects.get(ObjectName(name))

    def object(self, name: str, *, kind: str = "object", position: Position | None = None) -> CatalogObject:
        """The object of that name; the error for an unknown name suggests the nearest."""
        found = self.find(name)
        if found is None:
            raise UnknownObject(name, kind=kind, known=sorted(self.objects), position=position)
        return found

    def relation(self, name: str, *, position: Position | None = None) -> CatalogObject:
        """The stream or table of that name, or else the system table."""
        if name in self.views:
            raise WrongObjectKind(
                f'"{name}" is a view, not a stream or table',
                hint="Views can be read in the FROM clause of a query and by SUBSCRIBE.",
                position=position,
            )
        found = self.find(name) or system_table(name)
        return found or self.object(name, kind="stream or table", position=position)

    def stream(self, name: str, *, position: Position | None = None) -> Stream:
        found = self.object(name, kind="stream", position=position)
        if not isinstance(found, Stream):
            raise wrong_kind(found, wanted=Stream.KIND, position=position)
        return found

    def table(self, name: str, *, position: Position | None = None) -> Table:
        found = self.object(name, kind="table", position=position)
        if not isinstance(found, Table):
            raise wrong_kind(found, wanted=Table.KIND, position=position)
        return found

    def query(self, id: str, *, position: Position | None = None) -> QueryEntry:
        """The query of that id, ignoring case."""
        found = self.queries.get(QueryId(id)) or self.queries.get(QueryId(id.upper()))
        if found is None:
            raise UnknownObject(id, kind="query", known=sorted(self.queries), position=position)
        return found

    def hold(self, name: str, *, position: Position | None = None) -> Hold:
        found = self.holds.get(ObjectName(name))
        if found is None:
            raise UnknownObject(name, kind="hold", known=sorted(self.holds), position=position)
        return found

    def index(self, name: str, *, position: Position | None = None) -> Index:
        found = self.indexes.get(ObjectName(name))
        if found is None:
            raise UnknownObject(name, kind="index", known=sorted(self.indexes), position=position)
        return found

    def held(self, name: str) -> Holdable | None:
        """The table or index of that name; these have a history."""
        found = self.find(name)
        return found if isinstance(found, Table) else self.indexes.get(ObjectName(name))

    def indexes_on(self, name: str) -> tuple[Index, ...]:
        return tuple(index for index in self.indexes.values() if index.on == name)

    def index_of(self, query: QueryId) -> Index | None:
        """The index that a query maintains."""
        return next((index for index in self.indexes.values() if index.query == query), None)

    def holds_on(self, name: str) -> tuple[Hold, ...]:
        return tuple(hold for hold in self.holds.values() if name in hold.on)

    @property
    def streams(self) -> tuple[Stream, ...]:
        return tuple(found for found in self.objects.values() if isinstance(found, Stream))

    @property
    def tables(self) -> tuple[Table, ...]:
        """All tables, including materialized views."""
        return tuple(found for found in self.objects.values() if isinstance(found, Table))

    @property
    def topics(self) -> frozenset[TopicName]:
        """The topics of all objects."""
        return frozenset(found.topic for found in self.objects.values() if found.topic is not None)

    @property
    def materialized_views(self) -> tuple[MaterializedView, ...]:
        return tuple(found for found in self.objects.values() if isinstance(found, MaterializedView))

    @property
    def holdable(self) -> tuple[Holdable, ...]:
        """All objects with a history: tables, including materialized views, and indexes."""
        return (*self.tables, *self.indexes.values())

    # ---- dependencies

    def origin(self, found: CatalogObject) -> CatalogObject | None:
        """The first source of an object's query; None for an object over a topic."""
        query = self.queries.get(found.query) if found.query is not None else None
        return self.find(query.sources[0]) if query is not None and query.sources else None

    def readers(self, name: str) -> tuple[QueryEntry, ...]:
        """The queries that read an object."""
        return tuple(query for query in self.queries.values() if name in query.sources)

    def writers(self, name: str) -> tuple[QueryEntry, ...]:
        """The queries that write an object."""
        return tuple(query for query in self.queries.values() if query.sink == name)

    def is_taken(self, name: str) -> bool:
        """Whether an object, a view, an index or a hold has this name."""
        return any(name in named for named in (self.objects, self.views, self.indexes, self.holds))

    def check_free(self, name: str, *, position: Position | None = None) -> None:
        """Refuse a name that an object, a view, an index or a hold already has."""
        if name in self.holds:
            raise DuplicateObject(f'hold "{name}" already exists', hint="Choose another name.", position=position)
        taken = self.find(name) or self.views.get(ObjectName(name)) or self.indexes.get(ObjectName(name))
        if taken is not None:
            raise DuplicateObject(
                f'{taken.KIND} "{name}" already exists',
                hint=f"Drop it first, or write CREATE {taken.KIND.upper()} IF NOT EXISTS.",
                position=position,
            )

    def check_drop(self, name: str, *, cascade: bool = False, position: Position | None = None) -> None:
        """Refuse to drop an object that other queries read or write; its maintaining query is dropped with it.

        With `cascade`, the holds and indexes on the object are dropped too.
        """
        found, indexes = self.object(name, position=position), self.indexes_on(name)
        self.check_holds(found, cascade=cascade, position=position)
        self.check_indexes(found, cascade=cascade, position=position)
        own = {index.query for index in indexes}
        readers = sorted(query.id for query in self.readers(name) if query.id not in own)
        writers = sorted(query.id for query in self.writers(name) if query.id != found.query)
        if not readers and not writers:
            return
        details = [f"It is read by {', '.join(readers)}."] if readers else []
        details += [f"It is written by {', '.join(writers)}."] if writers else []
        raise DependentObjects(
            f'cannot drop {found.KIND} "{name}" because queries depend on it',
            detail=" ".join(details),
            hint=f"Terminate them first: TERMINATE {(readers + writers)[0]};",
            position=position,
        )

    def check_indexes(self, found: CatalogObject | View, *, cascade: bool, position: Position | None = None) -> None:
        """Refuse to drop an indexed object, unless its indexes are dropped too."""
        self._check_on(found, self.indexes_on(found.name), ("indexes", "indexed"), cascade, position)

    def check_holds(self, found: CatalogObject | Index, *, cascade: bool, position: Position | None = None) -> None:
        """Refuse to drop an object with holds, unless the holds are dropped too."""
        self._check_on(found, self.holds_on(found.name), ("holds", "held"), cascade, position)

    def _check_on(
        self,
        found: CatalogObject | View | Index,
        dependents: Sequence[Index] | Sequence[Hold],
        words: tuple[str, str],
        cascade: bool,
        position: Position | None,
    ) -> None:
        if cascade or not dependents:
            return
        (plural, participle), names = words, sorted(each.name for each in dependents)
        raise DependentObjects(
            f'cannot drop {found.KIND} "{found.name}" because {plural} depend on it',
            detail=f"It is {participle} by {', '.join(names)}.",
            hint=f"Write CASCADE to drop the {plural} too, or drop them first: "
            f"DROP {dependents[0].KIND.upper()} {names[0]};",
            position=position,
        )

    # ---- changes

    def with_object(self, added: CatalogObject) -> "Catalog":
        return replace(self, objects=MappingProxyType({**self.objects, added.name: added}))

    def without_object(self, name: str) -> "Catalog":
        """This catalog without the object and its maintaining query; an unknown name changes nothing."""
        found = self.find(name)
        if found is None:
            return self
        rest = {key: value for key, value in self.objects.items() if key != name}
        reduced = replace(self, objects=MappingProxyType(rest))
        return reduced.without_query(found.query) if found.query is not None else reduced

    def with_query(self, added: QueryEntry) -> "Catalog":
        return replace(self, queries=MappingProxyType({**self.queries, added.id: added}))

    def without_query(self, id: QueryId) -> "Catalog":
        """This catalog without the query; its sink remains, without a writer."""
        if id not in self.queries:
            return self
        rest = {key: value for key, value in self.queries.items() if key != id}
        return replace(self, queries=MappingProxyType(rest))

    def with_hold(self, added: Hold) -> "Catalog":
        return replace(self, holds=MappingProxyType({**self.holds, added.name: added}))

    def without_holds(self, *dropped: Hold) -> "Catalog":
        return replace(self, holds=MappingProxyType({n: hold for n, hold in self.holds.items() if hold not in dropped}))

    def with_view(self, added: View) -> "Catalog":
        return replace(self, views=MappingProxyType({**self.views, added.name: added}))

    def without_view(self, name: str) -> "Catalog":
        return replace(self, views=MappingProxyType({n: v for n, v in self.views.items() if n != name}))

    def with_index(self, added: Index) -> "Catalog":
        return replace(self, indexes=MappingProxyType({**self.indexes, added.name: added}))

    def without_indexes(self, *dropped: Index) -> "Catalog":
        """This catalog without indexes, their queries and the holds on them."""
        rest = {name: index for name, index in self.indexes.items() if index not in dropped}
        reduced = replace(self, indexes=MappingProxyType(rest))
        for index in dropped:
            reduced = reduced.without_query(index.query).without_holds(*reduced.holds_on(index.name))
        return reduced

    def with_type(self, name: str, type_: SqlType) -> "Catalog":
        return replace(self, types=MappingProxyType({**self.types, name: type_}))

    def with_function(self, added: UserFunction) -> "Catalog":
        return replace(self, functions=MappingProxyType({**self.functions, added.name: added}))

    def without_function(self, name: str) -> "Catalog":
        return replace(self, functions=MappingProxyType({n: f for n, f in self.functions.items() if n != name}))

    def without_type(self, name: str) -> "Catalog":
        return replace(self, types=MappingProxyType({n: t for n, t in self.types.items() if n != name}))


EMPTY = Catalog()


def wrong_kind(found: CatalogObject, *, wanted: str, position: Position | None = None) -> WrongObjectKind:
    """The error for an object of the wrong kind, such as a table instead of a stream."""
    return WrongObjectKind(
        f'"{found.name}" is a {found.KIND}, not a {wanted}',
        hint=f"Write {found.KIND.upper()} {found.name}.",
        position=position,
    )
