"""Flushing memtables to tables: many small ticks at the cost of one."""

from collections.abc import Sequence

import duckdb
import pyarrow.compute as pc

from holdfast.runtime.store.duckdb.columns import group_sql, listed
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.disk import large
from holdfast.runtime.store.duckdb.disk.wal import WalEntry
from holdfast.runtime.store.duckdb.objects import Collection, Object, Outbox, State
from holdfast.runtime.store.schemas import names


def first_unflushed(target: Object) -> int | None:
    """The number in the log of the oldest change that is only in memory."""
    return target.first if isinstance(target, Outbox) else target.memtable.first


def flush(core: Core, targets: Sequence[Object]) -> None:
    """Write the memtables of some objects to their tables, in one transaction. Callers hold `write_lock`.

    What memory has forgotten is not written, so the since that allowed it becomes durable with it.
    """
    targets = [target for target in targets if first_unflushed(target) is not None]
    if not targets:
        return
    entries = [WalEntry("folded", part=target.number, numbers=(core.wal.next - 1,)) for target in targets]
    for target in targets:
        if isinstance(target, Collection):
            # A read that saw only older ticks must not take these rows for them.
            target.writing = max(target.writing, target.written)
    collections = [target.id for target in targets if isinstance(target, Collection)]
    with core.changed_entries(collections) as moved, core.transaction() as run:
        for target in targets:
            _write(run, target)
        entries += moved
        core.wal.write(run, entries)
    with core.memory_lock:
        core.wal.apply(entries)
        for target in targets:
            _mark_flushed(target)


def first_unflushed_number(core: Core) -> int:
    """The number from which on the log has changes that are not in tables."""
    waiting = (first_unflushed(target) for target in core.objects.by_number().values())
    return min((number for number in waiting if number is not None), default=core.wal.next)


def flush_all(core: Core) -> None:
    flush(core, list(core.objects.by_number().values()))


def _write(run: duckdb.DuckDBPyConnection, target: Object) -> None:
    match target:
        case State():
            _write_rows(run, target.table, target)
        case Collection():
            _write_rows(run, target.current, target)
            if target.past.oldest is not None:
                run.register("pending", target.past.table())
                run.execute(f"INSERT INTO {target.history} SELECT * FROM pending")
        case Outbox():
            for time, part in sorted(target.unwritten.items()):
                large.write_outbox(run, target, [part.rows], time)
    run.unregister("pending")


def _write_rows(run: duckdb.DuckDBPyConnection, table: str, target: Collection | State) -> None:
    dirty = target.memtable.dirty()
    shown = dirty.schema.names[:-3]
    changed = [name for name in shown[1 + len(target.layout.key) :] if name != "g"]
    if isinstance(target, Collection):
        # The tables' order of columns; the seq of a row that they have never changes.
        shown = ["k", "seq", *names("k", target.layout.key), *names("c", target.layout.value), "ts", "since"]
        changed.remove("seq")
    stored, present = dirty.column("stored"), dirty.column("present")
    run.register("pending", dirty)
    if pc.any(pc.and_not(stored, present)).as_py():
        run.execute(f"DELETE FROM {table} USING pending x WHERE {table}.k = x.k AND x.stored AND NOT x.present")
    if pc.any(pc.and_(stored, present)).as_py():
        sets = listed(f"{name} = x.{name}" for name in changed)
        run.execute(f"UPDATE {table} SET {sets} FROM pending x WHERE {table}.k = x.k AND x.stored AND x.present")
    if pc.any(pc.and_not(present, stored)).as_py():
        group = [group_sql(target.layout)] if isinstance(target, Collection) and target.layout.group else []
        run.execute(f"INSERT INTO {table} SELECT {listed(shown, group)} FROM pending WHERE present AND NOT stored")


def _mark_flushed(target: Object) -> None:
    match target:
        case State():
            target.memtable.flushed()
            target.written()
        case Collection():
            if target.oldest is None:
                target.oldest = target.past.oldest
            target.flushed()
        case Outbox():
            written = {time: part.rows.num_rows for time, part in target.unwritten.items()}
            target.written = dict(sorted((target.written | written).items()))
            target.unwritten.clear()
