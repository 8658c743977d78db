"""SQL over a collection's rows: its tables, and what memory has beyond them.

Contents are taken at a moment. Tables that are written later are still read rightly as of the times before: for a key
that is in memory, what the tables say of it from then on is left out; for any other key they say all.
"""

from dataclasses import dataclass

import duckdb

from holdfast.runtime.store import schemas
from holdfast.runtime.store.duckdb.columns import group_sql, listed
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.objects import Collection, Pending
from holdfast.runtime.store.port import Time


@dataclass(frozen=True, slots=True)
class Contents:
    """Of a collection, with the time of the last tick in it."""

    collection: Collection
    pending: Pending | None
    written: Time

    @classmethod
    def of(cls, core: Core, collection: Collection) -> "Contents":
        with core.times:
            return cls(collection, collection.pending(), collection.written)

    def register(self, cursor: duckdb.DuckDBPyConnection, *, past: bool = True) -> None:
        """Let the statements of a cursor see what memory has."""
        if self.pending is not None:
            cursor.register(self._now, self.pending.now)
            if past:
                cursor.register(self._past, self.pending.past)

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
        if self.pending is None:
            return f"SELECT {stored} FROM {table}"
        return (
            f"SELECT {stored} FROM {table} ANTI JOIN {self._now} USING (k) UNION ALL "
            f"SELECT {listed(self._columns, self._group)} FROM {self._now} WHERE present"
        )

    def history(self) -> str:
        """The same and ``until, present`` of those that were superseded."""
        what, table = listed(self._columns, ["until", "present"]), self.collection.history
        if self.pending is None:
            return f"SELECT {what} FROM {table}"
        return (
            f"SELECT {what} FROM {table} WHERE until < {self.pending.first} OR k NOT IN (SELECT k FROM {self._now}) "
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
