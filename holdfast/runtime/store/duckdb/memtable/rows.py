"""The memtable: the rows of an object that its tables do not have yet, and some that its tables have as well.

A small tick changes rows only here, and is durable through the write-ahead log; a flush writes many ticks to the
tables at once. A row is **stored** when the tables have a row of its key, and **dirty** when theirs differs or is to
be deleted.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import filterfalse
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.runtime.expressions.physical import arrow_type
from holdfast.runtime.store.port import Layout, Time
from holdfast.runtime.store.schemas import group_layout, is_plain_key, rows_schema

CHUNKS = 8
"""Rows are appended as chunks, and looked up in as many at most."""


def encoded_key_type(layout: Layout) -> pa.DataType:
    return arrow_type(layout.key[0]) if is_plain_key(layout) else pa.string()


@lru_cache(maxsize=1024)
def state_rows_schema(layout: Layout) -> pa.Schema:
    flags = [pa.field(name, pa.bool_()) for name in ("present", "stored", "dirty")]
    key = pa.field("k", encoded_key_type(layout))
    return pa.schema([key, *rows_schema(layout, value="s"), *group_fields(layout), *flags])


def group_fields(layout: Layout) -> list[pa.Field]:
    """The encoded group, where there are groups."""
    return [pa.field("g", encoded_key_type(group_layout(layout)))] if layout.group else []


@lru_cache(maxsize=1024)
def collection_rows_schema(layout: Layout) -> pa.Schema:
    numbers = [pa.field(name, pa.uint64()) for name in ("seq", "since")]
    flags = [pa.field(name, pa.bool_()) for name in ("present", "stored", "dirty")]
    return pa.schema([pa.field("k", encoded_key_type(layout)), *rows_schema(layout), *numbers, *flags])


@lru_cache(maxsize=1024)
def history_schema(layout: Layout) -> pa.Schema:
    key, seq = pa.field("k", encoded_key_type(layout)), pa.field("seq", pa.uint64())
    times = [pa.field(name, pa.uint64()) for name in ("since", "until")]
    return pa.schema([key, seq, *rows_schema(layout), *times, pa.field("present", pa.bool_())])


class Memtable:
    """The rows by their encoded key. Only the thread of the ticks changes them, with `memory_lock` held."""

    def __init__(self, schema: pa.Schema, *, complete: bool = False) -> None:
        self.schema = schema
        self.complete = complete
        """Whether a key that is not here is not in the tables either."""
        self.tables_tried = complete
        """Whether it is known if the tables are small enough to be read whole."""
        self.first: int | None = None
        """The number in the log of the oldest change that is not flushed."""
        self._rows = schema.empty_table()
        self._positions: dict[Any, int] = {}
        self._must = 0
        """How many rows remained when it last had too many."""
        self._groups: GroupIndex | None = GroupIndex() if "g" in schema.names else None

    def unknown(self, keys: Sequence[Any]) -> list[Any]:
        """The keys that have to be looked up in the tables."""
        return [] if self.complete else list(filterfalse(self._positions.__contains__, keys))

    def unknown_elements(self, keys: Sequence[Any], groups: Sequence[Any]) -> list[Any]:
        """The same, for elements with their groups."""
        if self.complete or self._groups is None:
            return self.unknown(keys)
        whole, known = self._groups.whole, self._positions
        return [k for k, g in zip(keys, groups, strict=True) if k not in known and g not in whole]

    def unknown_groups(self, groups: Sequence[Any]) -> list[Any]:
        """Those whose elements may not all be here."""
        assert self._groups is not None
        return [] if self.complete else list(filterfalse(self._groups.whole.__contains__, groups))

    def elements(self, groups: Sequence[Any]) -> pa.Table:
        """The rows of groups that are here and present."""
        assert self._groups is not None
        keys = [key for group in groups for key in self._groups.keys.get(group, ())]
        rows = self.of(keys)
        return rows.filter(rows.column("present"))

    def upto(self, ts: int) -> pa.Table:
        """The rows that are here and present, with no greater `ts`."""
        self._tidy()
        rows = self._rows
        return rows.filter(pc.and_(rows.column("present"), pc.less_equal(rows.column("ts"), ts)))

    def unknown_rows(self, rows: pa.Table) -> pa.Table:
        """The rows, read from the tables, whose keys are not here."""
        unknown = [key not in self._positions for key in rows.column("k").to_pylist()]
        return rows if all(unknown) else rows.filter(pa.array(unknown, pa.bool_()))

    def load_groups(self, groups: Sequence[Any], rows: pa.Table) -> None:
        """Add the rows of whole groups."""
        assert self._groups is not None
        self.load(self.unknown_rows(rows))
        self._groups.whole.update(groups)

    def of(self, keys: Sequence[Any]) -> pa.Table:
        """The row of each key; nulls where there is none."""
        positions = list(map(self._positions.get, keys))
        # Arrow copies the chunks that it takes from; the rows loaded last are the last ones.
        known = [position for position in positions if position is not None]
        first, last = min(known, default=0), max(known, default=-1)
        within = [None if position is None else position - first for position in positions]
        return self._rows.slice(first, last + 1 - first).take(pa.array(within, pa.int64()))

    def load(self, rows: pa.Table, *, everything: bool = False) -> None:
        """Add all or some rows of the tables. Rows whose keys are here already stay as they are."""
        if self._positions and everything:
            known = pc.is_in(rows.column("k"), pa.array(list(self._positions), rows.field("k").type))
            rows = rows.filter(pc.invert(known))
        n = rows.num_rows
        flags = [pa.repeat(pa.scalar(flag), n) for flag in (True, True, False)]
        self._append(pa.Table.from_arrays([*rows.columns, *flags], schema=self.schema))
        self.complete = self.complete or everything
        self.tables_tried = True

    def change(self, rows: pa.Table, number: int) -> None:
        """Take the rows that a tick left, which the log has under a number."""
        self._append(rows)
        if self.first is None:
            self.first = number

    def dirty_of(self, keys: Sequence[Any]) -> pa.Table:
        """Of some keys, the rows that the tables do not have."""
        if self.first is None:
            return self.schema.empty_table()
        rows = self.of([key for key in keys if key in self._positions])
        return rows.filter(rows.column("dirty"))

    def dirty(self) -> pa.Table:
        """The rows that the tables do not have."""
        if self.first is None:
            return self.schema.empty_table()
        self._tidy()
        return self._rows.filter(self._rows.column("dirty"))

    def flushed(self) -> None:
        """All rows are now as in the tables."""
        self._tidy()
        flags = [self._rows.column("present"), pa.repeat(pa.scalar(False), self._rows.num_rows)]
        self._rows = pa.Table.from_arrays([*self._rows.columns[:-2], *flags], schema=self.schema)
        if self._groups is not None:
            # Elements come and go; what is gone need not be known of a group that is all here.
            self._replace(self._rows.filter(self._rows.column("present")))
        self._must = 0
        self.first = None

    def limit(self, rows: int) -> None:
        """With more rows than that, beside those it must have, retain only what the tables do not have."""
        whole = 0 if self._groups is None else len(self._groups.whole)
        if len(self._positions) + whole > rows + self._must:
            self._replace(self.dirty())
            if self._groups is not None:
                self._groups.whole.clear()
            self._must = len(self._positions)
            self.complete = False

    def clear(self) -> None:
        """Forget all; nothing may be dirty."""
        assert self.first is None
        self._replace(self.schema.empty_table())
        if self._groups is not None:
            self._groups.whole.clear()
        self.complete = self.tables_tried = False

    def _append(self, rows: pa.Table) -> None:
        start = self._rows.num_rows
        self._rows = pa.concat_tables([self._rows, rows])
        self._positions.update(zip(rows.column("k").to_pylist(), range(start, start + rows.num_rows), strict=True))
        if self._groups is not None:
            self._groups.add(rows)
        if self._rows.num_rows > 2 * len(self._positions) + 1_000:
            self._tidy()
        elif self._rows.column(0).num_chunks > CHUNKS:
            self._rows = self._rows.combine_chunks()

    def _tidy(self) -> None:
        """Leave out the rows that others of their keys have replaced."""
        if self._rows.num_rows > len(self._positions):
            self._replace(self._rows.take(pa.array(list(self._positions.values()), pa.int64())))

    def _replace(self, rows: pa.Table) -> None:
        self._rows = rows.combine_chunks()
        self._positions = dict(zip(rows.column("k").to_pylist(), range(rows.num_rows), strict=True))
        if self._groups is not None:
            self._groups.keys.clear()
            self._groups.add(rows)


class GroupIndex:
    """Which elements are here, by group, and which groups are here as a whole."""

    def __init__(self) -> None:
        self.keys: dict[Any, set[Any]] = {}
        self.whole: set[Any] = set()

    def add(self, rows: pa.Table) -> None:
        for group, key in zip(rows.column("g").to_pylist(), rows.column("k").to_pylist(), strict=True):
            self.keys.setdefault(group, set()).add(key)


class SupersededRows:
    """The versions that small ticks superseded and that are not flushed, oldest first."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._ticks: list[tuple[Time, pa.Table]] = []

    def __iter__(self) -> Iterator[pa.Table]:
        return (rows for _, rows in self._ticks)

    @property
    def oldest(self) -> Time | None:
        return self._ticks[0][0] if self._ticks else None

    def add(self, time: Time, rows: pa.Table) -> None:
        if rows.num_rows:
            self._ticks.append((time, rows))

    def table(self) -> pa.Table:
        return pa.concat_tables([self.schema.empty_table(), *self])

    def forget(self, bound: Time, limit: int) -> int:
        """Drop at most `limit` versions that were superseded up to a time; returns how many."""
        forgotten, gone = 0, 0
        for time, rows in self._ticks:
            if time > bound or forgotten >= limit:
                break
            taken = min(rows.num_rows, limit - forgotten)
            forgotten += taken
            if taken < rows.num_rows:
                self._ticks[gone] = (time, rows.slice(taken))
            else:
                gone += 1
        del self._ticks[:gone]
        return forgotten

    def clear(self) -> None:
        self._ticks.clear()
