"""What a statement reads: collections as of a time, as SQL over their tables and memtables.

`Contents` are taken at a moment. Tables that are written later still give the right rows as of earlier times: for a key
in the memtable, whatever the tables say of it from then on is ignored; for any other key the tables are complete.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.runtime.store import schemas
from holdfast.runtime.store.duckdb.columns import ORDERED, group_range, group_sql, listed, plain_group_sql
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.memtable.small import encode
from holdfast.runtime.store.duckdb.objects import Collection, Unflushed
from holdfast.runtime.store.port import GroupRead, KeyRead, Layout, Relation, Time

MAX_RANGES = 50
"""Limit of ranges to look up one by one; with more, the table is scanned."""


@dataclass(frozen=True, slots=True)
class Contents:
    """Of a collection, with the time of the last tick in it."""

    collection: Collection
    unflushed: Unflushed | None
    written: Time
    part_of: str = ""
    """The relation that alone needs what memory has; empty if it is all of it."""

    @classmethod
    def of(cls, core: Core, collection: Collection) -> "Contents":
        with core.memory_lock:
            return cls(collection, collection.unflushed(), collection.written)

    def within(self, relation: str, read: "RelationRead") -> "Contents":
        """With only the rows of memory that a read may want: to join all would cost more than the rest of it."""
        if self.unflushed is None or read.groups is None:
            return self
        now = _near(self.unflushed.now, read.groups, self.collection.layout.ordered, read.bounds)
        return replace(self, unflushed=replace(self.unflushed, now=now), part_of=relation)

    @property
    def has_unflushed(self) -> bool:
        return self.unflushed is not None and self.unflushed.now.num_rows > 0

    def register(self, cursor: duckdb.DuckDBPyConnection, *, past: bool = True) -> None:
        """Let the statements of a cursor see what memory has."""
        if self.unflushed is not None:
            cursor.register(self._now_name, self.unflushed.now)
            if past:
                cursor.register(self._past, self.unflushed.past)

    def stored(self, conditions: Sequence[str]) -> str:
        """The stored rows that satisfy one of the conditions on ``k`` or ``g``, which exclude each other. Any other
        beside one would be in the way of the index: DuckDB looks something up when that is all that is asked of a
        table."""
        group = ["g"] if self._group else []
        select = f"SELECT {listed(self._columns, group)} FROM {self.collection.current} WHERE"
        return " UNION ALL ".join(f"{select} {condition}" for condition in conditions)

    def current(self, stored_as: str | None = None) -> str:
        """``k, seq, k0.., c0.., ts, since`` of the rows that there are now; and ``g``, the group, if they have one.

        `stored_as` stands for the stored rows, when some of them suffice.
        """
        table = stored_as or self.collection.current
        stored = listed(self._columns, ["g"] if self._group else [])
        if self.unflushed is None or not self.has_unflushed:
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
    def _now_name(self) -> str:
        return f"{self.part_of}_now" if self.part_of else f"now_{self.collection.number}"

    @property
    def _now(self) -> str:
        return _quote(self._now_name)

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
    condition's parameters. A `part` is without the columns of the group. In some `groups`
    of an ordered layout, `bounds` are those of the ordered column, and `ranges` of the index have the stored rows."""

    collection: Collection
    at: Time
    part: bool = False
    condition: str | None = None
    wanted: tuple[object, ...] = ()
    ranges: tuple[tuple[str, str], ...] = ()
    groups: pa.Table | None = None
    bounds: tuple[int | None, int | None] = (None, None)
    by_key: bool = False
    """Whether `wanted` are the encoded keys themselves."""

    @classmethod
    def of(cls, core: Core, relation: Relation, collection: Collection) -> "RelationRead":
        layout = collection.layout
        match relation:
            case KeyRead(at=at, keys=keys):
                named = _encoded(core, layout, keys)
                return cls(collection, at, condition=_is_in("k", named), wanted=named, by_key=True)
            case GroupRead(at=at, groups=None, with_group=with_group):
                return cls(collection, at, part=not with_group)
            case GroupRead(at=at, groups=groups, with_group=with_group):
                wanted = _encoded(core, schemas.group_layout(layout), groups)
                read = cls(collection, at, part=not with_group, condition=_is_in("g", wanted), wanted=wanted)
                return read if layout.ordered is None else read._within(groups, relation.first, relation.last)
            case (_, at):
                return cls(collection, at)

    def views(self, core: Core, name: str, cursor: duckdb.DuckDBPyConnection) -> list[RelationView]:
        """As of now; what memory has is registered with the cursor."""
        if self.by_key:
            found = self._named(core, name, cursor)
            if found is not None:
                return [found]
        contents = Contents.of(core, self.collection).within(name, self)
        latest = max(contents.written, self.collection.writing) <= self.at
        contents.register(cursor, past=not latest)
        if latest and self.ranges and not contents.has_unflushed:
            return [self._ranged(name)]
        found = self._found(name, contents)
        views = [] if found is None else [found]
        stored = None if found is None else found.name
        rows = contents.current(stored) if latest else contents.as_of(self.at, stored)
        where = f" WHERE {self.condition}" if self.condition is not None else ""
        sql = f"SELECT {listed(self._shown())} FROM ({rows}){where}"
        return [*views, RelationView(_quote(name), sql, self.wanted, latest=self if latest else None)]

    def _within(self, groups: pa.Table, first: int | None, last: int | None) -> "RelationRead":
        """The same groups, as far as their ordered column is between two bounds."""
        layout = self.collection.layout
        conditions = [_is_in(plain_group_sql(layout), self.wanted)]
        bounds = ((">=", first), ("<=", last))
        conditions += [f"k{layout.ordered} {operator} {bound}" for operator, bound in bounds if bound is not None]
        ranges = tuple(group_range(group, first, last) for group in self.wanted)
        return replace(
            self,
            condition=" AND ".join(conditions),
            ranges=ranges if len(ranges) <= MAX_RANGES else (),
            groups=groups,
            bounds=(first, last),
        )

    def _ranged(self, name: str) -> RelationView:
        """The rows of ranges, if no tick is newer than the time and memory has none of them."""
        select = f"SELECT {listed(self._shown())} FROM {self.collection.current} WHERE {ORDERED} BETWEEN ? AND ?"
        sql = " UNION ALL ".join([select] * len(self.ranges))
        return RelationView(_quote(name), sql, tuple(chain.from_iterable(self.ranges)), materialized=True, latest=self)

    def _found(self, name: str, contents: Contents) -> RelationView | None:
        """The stored rows that suffice, if an index finds them."""
        if self.condition is None:
            return None
        stored = _quote(f"{name}_found")
        if self.collection.layout.ordered is None or self.by_key or not self.wanted:
            return RelationView(stored, contents.stored([self.condition]), self.wanted, materialized=True)
        if not self.ranges:
            return None
        sql = contents.stored([f"{ORDERED} BETWEEN ? AND ?"] * len(self.ranges))
        return RelationView(stored, sql, tuple(chain.from_iterable(self.ranges)), materialized=True)

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


def _near(rows: pa.Table, groups: pa.Table, ordered: int | None, bounds: tuple[int | None, int | None]) -> pa.Table:
    """Rows of some groups within bounds; others may be among them."""
    wanted = pa.repeat(pa.scalar(True), rows.num_rows)
    for name in groups.column_names:
        column = rows.column(name)
        if pa.types.is_string(column.type) or pa.types.is_integer(column.type):
            wanted = pc.and_(wanted, pc.is_in(column, groups.column(name).combine_chunks().cast(column.type)))
    for compare, bound in zip((pc.greater_equal, pc.less_equal), bounds, strict=True):
        if bound is not None:
            wanted = pc.and_(wanted, compare(rows.column(f"k{ordered}"), bound))
    return rows.filter(wanted)


def _encoded(core: Core, layout: Layout, asked: pa.Table) -> tuple[object, ...]:
    """Keys or groups as the store compares them; one with a null is equal to none."""
    asked = schemas.fit(asked, schemas.key_schema(layout)).drop_null()
    return tuple(dict.fromkeys(encode(core, layout, asked).to_pylist())) if asked.num_rows else ()


def _is_in(column: str, wanted: tuple[object, ...]) -> str:
    return f"{column} IN ({listed('?' for _ in wanted)})" if wanted else "false"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
