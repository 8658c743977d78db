"""What a statement reads: collections as of a time, whole or in part, as the views that stand for them."""

from dataclasses import dataclass

import duckdb
import pyarrow as pa

from holdfast.runtime.store import schemas
from holdfast.runtime.store.duckdb.columns import listed
from holdfast.runtime.store.duckdb.contents import Contents
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.objects import Collection
from holdfast.runtime.store.duckdb.small import encode
from holdfast.runtime.store.port import Layout, Named, Part, Relation, Time


@dataclass(frozen=True, slots=True)
class View:
    """A name and what it stands for in one statement. What is `kept` is evaluated by itself."""

    name: str
    sql: str
    parameters: tuple[object, ...] = ()
    kept: bool = False
    latest: "Read | None" = None
    """What it answers from current rows: wrong if a later tick reached the tables meanwhile."""


@dataclass(frozen=True, slots=True)
class Read:
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
    def of(cls, core: Core, relation: Relation, collection: Collection) -> "Read":
        layout = collection.layout
        match relation:
            case Named(at=at, keys=keys):
                named = _encoded(core, layout, keys)
                return cls(collection, at, condition=_is_in("k", named), wanted=named, by_key=True)
            case Part(at=at, groups=None):
                return cls(collection, at, part=True)
            case Part(at=at, groups=groups):
                wanted = _encoded(core, schemas.group_layout(layout), groups)
                return cls(collection, at, part=True, condition=_is_in("g", wanted), wanted=wanted)
            case (_, at):
                return cls(collection, at)

    def views(self, core: Core, name: str, cursor: duckdb.DuckDBPyConnection) -> list[View]:
        """As of now; what memory has is registered with the cursor."""
        if self.by_key:
            found = self._named(core, name, cursor)
            if found is not None:
                return [found]
        contents = Contents.of(core, self.collection)
        latest = max(contents.written, self.collection.writing) <= self.at
        contents.register(cursor, past=not latest)
        stored = _quote(f"{name}_found") if self.condition is not None else None
        views = [] if stored is None else [View(stored, contents.stored(self.condition or ""), self.wanted, kept=True)]
        rows = contents.current(stored) if latest else contents.as_of(self.at, stored)
        where = f" WHERE {self.condition}" if self.condition is not None else ""
        sql = f"SELECT {listed(self._shown())} FROM ({rows}){where}"
        return [*views, View(_quote(name), sql, self.wanted, latest=self if latest else None)]

    def _named(self, core: Core, name: str, cursor: duckdb.DuckDBPyConnection) -> View | None:
        """The rows of keys, if no tick is newer than the time: from memory what it has of them beyond the tables,
        the others by the index. To join all that memory has would cost more than the rest of such a read."""
        with core.times:
            if max(self.collection.written, self.collection.writing) > self.at:
                return None
            changed = self.collection.recent.dirty_of(self.wanted)
        known = set(changed.column("k").to_pylist())
        stored = tuple(key for key in self.wanted if key not in known)
        shown, parts = listed(self._shown()), []
        if stored or not known:
            parts.append(f"SELECT {shown} FROM {self.collection.current} WHERE {_is_in('k', stored)}")
        if known:
            cursor.register(f"{name}_changed", changed)
            parts.append(f"SELECT {shown} FROM {_quote(f'{name}_changed')} WHERE present")
        return View(_quote(name), " UNION ALL ".join(parts), stored, latest=self)

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
