"""Creating, extending and dropping objects, each in one transaction. Callers hold `write_lock`.

Extending an object adds value columns, which are NULL in all existing rows, also those of the past, or groups: stores
of earlier releases have windowed tables without. Its tables are created again with the columns in order, because rows
are inserted by position elsewhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import duckdb

from holdfast.errors import StoreError
from holdfast.names import CollectionId, QueryId, StateId
from holdfast.runtime.store.duckdb.columns import group_sql, listed
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.disk.flush import flush
from holdfast.runtime.store.duckdb.disk.wal import WalEntry
from holdfast.runtime.store.duckdb.objects import (
    Collection,
    Object,
    Outbox,
    State,
    collection_tables,
    outbox_tables,
    state_tables,
)
from holdfast.runtime.store.port import Layout
from holdfast.runtime.store.schemas import extends, names


def create_collection(core: Core, id_: CollectionId, layout: Layout, window_ms: int) -> None:
    if (known := core.objects.collections.get(id_)) is not None:
        if known.layout != layout:
            extend_collection(core, known, layout)
        return
    made = Collection(id_, core.objects.next_number, layout, window_ms)
    entries = [made.entry(), _flushed(core, made)]
    with core.transaction() as run:
        _insert(run, "collection", id_, made.number, layout, window_ms, collection_tables(made))
        core.wal.write(run, entries)
    with core.memory_lock:
        core.wal.apply(entries)
        made.memtable.complete = made.memtable.tables_tried = True
        core.objects.collections[id_] = made
        core.objects.next_number += 1


def set_window(core: Core, id_: CollectionId, window_ms: int) -> None:
    changed = core.objects.collection(id_)
    if changed.window_ms == window_ms:
        return
    with core.transaction() as run:
        run.execute("UPDATE objects SET window_ms = ? WHERE number = ?", [window_ms, changed.number])
    with core.memory_lock:
        changed.window_ms = window_ms


def create_state(core: Core, id_: StateId, layout: Layout) -> None:
    if id_ in core.objects.states:
        return
    made = State(id_, core.objects.next_number, layout)
    entries = [_flushed(core, made)]
    with core.transaction() as run:
        _insert(run, "state", id_, made.number, layout, 0, state_tables(made))
        core.wal.write(run, entries)
    with core.memory_lock:
        core.wal.apply(entries)
        made.memtable.complete = made.memtable.tables_tried = True
        core.objects.states[id_] = made
        core.objects.next_number += 1


def create_outbox(core: Core, query: QueryId, layout: Layout) -> None:
    if (known := core.objects.outboxes.get(query)) is not None:
        if known.layout != layout:
            extend_outbox(core, known, layout)
        return
    made = Outbox(query, core.objects.next_number, layout)
    entries = [_flushed(core, made)]
    with core.transaction() as run:
        _insert(run, "outbox", query, made.number, layout, 0, outbox_tables(made))
        core.wal.write(run, entries)
    with core.memory_lock:
        core.wal.apply(entries)
        core.objects.outboxes[query] = made
        core.objects.next_number += 1


def drop_collection(core: Core, id_: CollectionId) -> None:
    gone = core.objects.collections.get(id_)
    if gone is None:
        return
    entries = [WalEntry("dropped", id_), WalEntry("folded", part=gone.number)]
    with core.transaction() as run:
        _delete(run, gone.number, gone.current, gone.history)
        core.wal.write(run, entries)
    with core.memory_lock:
        core.wal.apply(entries)
        del core.objects.collections[id_]
        core.changed.discard(id_)
        core.advanced.discard(id_)
        core.pins.forget(id_)


def drop_state(core: Core, id_: StateId) -> None:
    gone = core.objects.states.get(id_)
    if gone is None:
        return
    entries = [WalEntry("folded", part=gone.number)]
    with core.transaction() as run:
        _delete(run, gone.number, gone.table)
        core.wal.write(run, entries)
    with core.memory_lock:
        core.wal.apply(entries)
        del core.objects.states[id_]


def drop_outbox(core: Core, query: QueryId) -> None:
    gone = core.objects.outboxes.get(query)
    if gone is None:
        return
    entries = [WalEntry("folded", part=gone.number), WalEntry("settled", query)]
    with core.transaction() as run:
        _delete(run, gone.number, gone.table)
        core.wal.write(run, entries)
    with core.memory_lock:
        core.wal.apply(entries)
        del core.objects.outboxes[query]


def _flushed(core: Core, made: Object) -> WalEntry:
    """A number may have been another object's: changes up to now are not the new one's."""
    return WalEntry("folded", part=made.number, numbers=(core.wal.next,))


def _insert(
    run: duckdb.DuckDBPyConnection,
    kind: str,
    name: str,
    number: int,
    layout: Layout,
    window_ms: int,
    tables: list[str],
) -> None:
    for statement in tables:
        run.execute(statement)
    types = [list(map(str, layout.key)), list(map(str, layout.value))]
    run.execute(
        "INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [kind, name, number, *types, window_ms, layout.group, layout.ordered],
    )


def _delete(run: duckdb.DuckDBPyConnection, number: int, *tables: str) -> None:
    for table in tables:
        run.execute(f"DROP TABLE {table}")
    run.execute("DELETE FROM objects WHERE number = ?", [number])


def extend_collection(core: Core, known: Collection, layout: Layout) -> None:
    _check(known.layout, layout, known.id)
    flush(core, [known])
    made = Collection(known.id, core.objects.next_number, layout, known.window_ms)
    made.restore(known.entry().numbers)
    made.wanted, made.oldest, made.writing = known.wanted, known.oldest, known.writing
    entries = [made.entry(), *_numbers(core, known.number, made.number)]
    rows = ["k", "seq", *names("k", layout.key), *names("c", known.layout.value), "ts", "since"]
    with core.transaction() as run:
        _make(run, collection_tables(made), known.number, made.number, layout)
        group = {"g": group_sql(layout)} if layout.group else {}
        _move(run, known.current, made.current, rows, group)
        _move(run, known.history, made.history, [*rows, "until", "present"])
        core.wal.write(run, entries)
    with core.memory_lock:
        core.wal.apply(entries)
        core.objects.collections[known.id] = made
        core.objects.next_number += 1


def extend_outbox(core: Core, known: Outbox, layout: Layout) -> None:
    _check(known.layout, layout, known.query)
    flush(core, [known])
    made = replace(known, number=core.objects.next_number, layout=layout)
    entries = _numbers(core, known.number, made.number)
    with core.transaction() as run:
        _make(run, outbox_tables(made), known.number, made.number, layout)
        rows = ["time", "n", "present", *names("k", layout.key), *names("c", known.layout.value), "ts"]
        _move(run, known.table, made.table, rows)
        core.wal.write(run, entries)
    with core.memory_lock:
        core.wal.apply(entries)
        core.objects.outboxes[known.query] = made
        core.objects.next_number += 1


def _check(known: Layout, wanted: Layout, name: str) -> None:
    if not extends(wanted, known):
        raise StoreError(
            f"{name} has other columns in the store",
            detail=f"It has {_described(known)}; wanted are {_described(wanted)}.",
            hint="Drop the object and create it again.",
        )


def _described(layout: Layout) -> str:
    return f"keys ({', '.join(map(str, layout.key))}) and values ({', '.join(map(str, layout.value))})"


def _numbers(core: Core, old: int, new: int) -> list[WalEntry]:
    """What the log has of the old number is in the tables; of the new number it has nothing yet."""
    return [WalEntry("folded", part=old), WalEntry("folded", part=new, numbers=(core.wal.next,))]


def _make(run: duckdb.DuckDBPyConnection, tables: Sequence[str], old: int, new: int, layout: Layout) -> None:
    for statement in tables:
        run.execute(statement)
    run.execute(
        "UPDATE objects SET number = ?, value = ?, grouped = ?, ordered = ? WHERE number = ?",
        [new, list(map(str, layout.value)), layout.group, layout.ordered, old],
    )


def _move(
    run: duckdb.DuckDBPyConnection,
    old: str,
    new: str,
    columns: Sequence[str],
    computed: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Move rows to their new table; `computed` has further columns as expressions over the old one's."""
    run.execute(
        f"INSERT INTO {new} ({listed(columns, computed)}) SELECT {listed(columns, computed.values())} FROM {old}"
    )
    run.execute(f"DROP TABLE {old}")
