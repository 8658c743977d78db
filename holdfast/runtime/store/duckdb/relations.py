"""What a statement reads: collections as of a time, as SQL over their tables and memtables.

`Contents` are taken at a moment. Tables that are written later still give the right rows as of earlier times: for a key
in the memtable, whatever the tables say of it from then on is ignored; for any other key the tables are complete.
"""

from dataclasses import dataclass

import duckdb
import pyarrow as pa

from holdfast.runtime.store import schemas
from holdfast.runtime.store.duckdb.columns import group_sql, listed
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.memtable.small import encode
from holdfast.runtime.store.duckdb.objects import Collection, Unflushed
from holdfast.runtime.store.port import GroupRead, KeyRead, Layout, Relation, Time


@dataclass(frozen=True, slots=True)
class Contents:
    """Of a collection, with the time of the last tick in it."""

    collection: Collection
    unflushed: Unflushed | None
    written: Time

    @classmethod
    def of(cls, core: Core, collection: Collection) -> "Contents":
        with core.memory_lock:
            return cls(collection, collection.unflushed(), collection.written)

    def register(self, cursor: duckdb.DuckDBPyConnection, *, past: bool = True) -> None:
        """Let the statements of a cursor see what memory has."""
        if self.unflushed is not None:
            cursor.register(self._now, self.unflushed.now)
            if past:
                cursor.register(self._past, self.unflushed.past)

    def stored(self, condition: str) -> str:
        """The stored rows that satisfy a condition on ``k`` or ``g``. Any other beside it would be in the way of the
        index: DuckDB looks something up when that is all that is asked of a table."""
        group = ["g"] if self._group else []
        return f"SELECT {listed(self._columns, group)} FROM {self.collection.current} WHERE {condition}"

    def current(self, stored_as: str | None = None) -> str:
        """``k, seq, k0.., c0.., ts, since`` of the rows that there are now; and ``g``, the group, if they have one.

        `stored_as` stands for the stored rows, when some of them suffice.
        """
        table = stored_as or self.collection.current
        stored = listed(self._columns, ["g"] if self._group else [])
        if self.unflushed is None:
            return f"SELECT {stored} FROM {table}"
        return (
            f"SELECT {stored} FROM {table} ANTI JOIN {self._now} USING (k) UNION ALL "
            f"SELECT {listed(self._columns, self._group)} FROM {self._now} WHERE present"
        )

    def history(self) -> str:
        """The same and ``until, present`` of those that were superseded."""
        what, table = listed(self._columns, ["until", "present"]), self.collection.history
        if self.unflushed is None:
            return f"SELECT {what} FROM {table}"
        return (
            f"SELECT {what} FROM {table} WHERE until < {self.unflushed.first} OR k NOT IN (SELECT k FROM {self._now}) "
            f"UNION ALL SELECT {what} FROM {self._past}"
        )

    def as_of(self, at: Time, stored_as: str | None = None) -> str:
        """``k, seq, k0.., c0.., ts``, and ``g``, of the rows as of a time."""
        what, stored = self._columns[:-1], ["g"] if self._group else []
        return (
            f"SELECT {listed(what, stored)} FROM ({self.current(stored_as)}) WHERE since <= {at} UNION ALL "
            f"SELECT {listed(what, self._group)} FROM ({self.history()}) "
            f"WHERE until > {at} AND since <= {at} AND present"
        )

    @property
    def _columns(self) -> list[str]:
        return ["k", "seq", *schemas.rows_schema(self.collection.layout).names, "since"]

    @property
    def _group(self) -> list[str]:
        """The group of a row that does not carry it: only the table of current rows has it, and an index on it."""
        layout = self.collection.layout
        return [f"{group_sql(layout)} AS g"] if layout.group else []

    @property
    def _now(self) -> str:
        return f"now_{self.collection.number}"

    @property
    def _past(self) -> str:
        return f"past_{self.collection.number}"


@dataclass(frozen=True, slots=True)
class RelationView:
    """A name and what it stands for in one statement. A `materialized` one is evaluated by itself."""

    name: str
    sql: str
    parameters: tuple[object, ...] = ()
    materialized: bool = False
    latest: "RelationRead | None" = None
    """What it answers from current rows: wrong if a later tick reached the tables meanwhile."""


@dataclass(frozen=True, slots=True)
class RelationRead:
    """A collection as of a time, whole or as far as a `condition` on its key or group is true; `wanted` are that
    condition's parameters. A `part` is without the columns of the group."""

    collection: Collection
    at: Time
    part: bool = False
    condition: str | None = None
    wanted: tuple[object, ...] = ()
    by_key: bool = False
    """Whether `wanted` are the encoded keys themselves."""

    @classmethod
    def of(cls, core: Core, relation: Relation, collection: Collection) -> "RelationRead":
        layout = collection.layout
        match relation:
            case KeyRead(at=at, keys=keys):
                named = _encoded(core, layout, keys)
                return cls(collection, at, condition=_is_in("k", named), wanted=named, by_key=True)
            case GroupRead(at=at, groups=None):
                return cls(collection, at, part=True)
            case GroupRead(at=at, groups=groups):
                wanted = _encoded(core, schemas.group_layout(layout), groups)
                return cls(collection, at, part=True, condition=_is_in("g", wanted), wanted=wanted)
            case (_, at):
                return cls(collection, at)

    def views(self, core: Core, name: str, cursor: duckdb.DuckDBPyConnection) -> list[RelationView]:
        """As of now; what memory has is registered with the cursor."""
        if self.by_key:
            found = self._named(core, name, cursor)
            if found is not None:
                return [found]
        contents = Contents.of(core, self.collection)
        latest = max(contents.written, self.collection.writing) <= self.at
        contents.register(cursor, past=not latest)
        stored = _quote(f"{name}_found") if self.condition is not None else None
        views = (
            []
            if stored is None
            else [RelationView(stored, contents.stored(self.condition or ""), self.wanted, materialized=True)]
        )
        rows = contents.current(stored) if latest else contents.as_of(self.at, stored)
        where = f" WHERE {self.condition}" if self.condition is not None else ""
        sql = f"SELECT {listed(self._shown())} FROM ({rows}){where}"
        return [*views, RelationView(_quote(name), sql, self.wanted, latest=self if latest else None)]

    def _named(self, core: Core, name: str, cursor: duckdb.DuckDBPyConnection) -> RelationView | None:
        """The rows of keys, if no tick is newer than the time: from memory what it has of them beyond the tables,
        the others by the index. To join all that memory has would cost more than the rest of such a read."""
        with core.memory_lock:
            if max(self.collection.written, self.collection.writing) > self.at:
                return None
            changed = self.collection.memtable.dirty_of(self.wanted)
        known = set(changed.column("k").to_pylist())
        stored = tuple(key for key in self.wanted if key not in known)
        shown, parts = listed(self._shown()), []
        if stored or not known:
            parts.append(f"SELECT {shown} FROM {self.collection.current} WHERE {_is_in('k', stored)}")
        if known:
            cursor.register(f"{name}_changed", changed)
            parts.append(f"SELECT {shown} FROM {_quote(f'{name}_changed')} WHERE present")
        return RelationView(_quote(name), " UNION ALL ".join(parts), stored, latest=self)

    def _shown(self) -> list[str]:
        layout = self.collection.layout
        names = list(schemas.rows_schema(layout).names)
        if not self.part:
            return names
        own = schemas.rows_schema(schemas.part_layout(layout)).names
        return [f"{a} AS {b}" for a, b in zip(names[layout.group :], own, strict=True)]


def _encoded(core: Core, layout: Layout, asked: pa.Table) -> tuple[object, ...]:
    """Keys or groups as the store compares them; one with a null is equal to none."""
    asked = schemas.fit(asked, schemas.key_schema(layout)).drop_null()
    return tuple(dict.fromkeys(encode(core, layout, asked).to_pylist())) if asked.num_rows else ()


def _is_in(column: str, wanted: tuple[object, ...]) -> str:
    return f"{column} IN ({listed('?' for _ in wanted)})" if wanted else "false"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
