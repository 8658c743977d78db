"""Giving an object more value columns. Its rows, also those of the past, have NULL there.

The tables are made anew with the columns in their places: rows are inserted by position elsewhere. All of it is one
transaction, so that a crash leaves the object as it was or as it is to be. Callers hold `writing`.
"""

from collections.abc import Sequence
from dataclasses import replace

import duckdb

from holdfast.errors import StoreError
from holdfast.runtime.store.duckdb.columns import listed
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.folding import fold
from holdfast.runtime.store.duckdb.ledger import Entry
from holdfast.runtime.store.duckdb.objects import Collection, Outbox, collection_tables, outbox_tables
from holdfast.runtime.store.port import Layout
from holdfast.runtime.store.schemas import extends, names


def extend_collection(core: Core, known: Collection, layout: Layout) -> None:
    _check(known.layout, layout, known.id)
    fold(core, [known])
    made = Collection(known.id, core.objects.next_number, layout, known.window_ms)
    made.recall(known.entry().numbers)
    made.wanted, made.oldest, made.writing = known.wanted, known.oldest, known.writing
    entries = [made.entry(), *_numbers(core, known.number, made.number)]
    rows = ["k", "seq", *names("k", layout.key), *names("c", known.layout.value), "ts", "since"]
    with core.transaction() as run:
        _make(run, collection_tables(made), known.number, made.number, layout)
        _move(run, known.current, made.current, [*rows, "g"] if layout.group else rows)
        _move(run, known.history, made.history, [*rows, "until", "present"])
        core.ledger.write(run, entries)
    with core.times:
        core.ledger.apply(entries)
        core.objects.collections[known.id] = made
        core.objects.next_number += 1


def extend_outbox(core: Core, known: Outbox, layout: Layout) -> None:
    _check(known.layout, layout, known.query)
    fold(core, [known])
    made = replace(known, number=core.objects.next_number, layout=layout)
    entries = _numbers(core, known.number, made.number)
    with core.transaction() as run:
        _make(run, outbox_tables(made), known.number, made.number, layout)
        rows = ["time", "n", "present", *names("k", layout.key), *names("c", known.layout.value), "ts"]
        _move(run, known.table, made.table, rows)
        core.ledger.write(run, entries)
    with core.times:
        core.ledger.apply(entries)
        core.objects.outboxes[known.query] = made
        core.objects.next_number += 1


def _check(known: Layout, wanted: Layout, name: str) -> None:
    if not extends(wanted, known):
        raise StoreError(
            f"{name} has other columns in the store",
            detail=f"It has {_told(known)}; wanted are {_told(wanted)}.",
            hint="Drop the object and create it again.",
        )


def _told(layout: Layout) -> str:
    return f"keys ({', '.join(map(str, layout.key))}) and values ({', '.join(map(str, layout.value))})"


def _numbers(core: Core, old: int, new: int) -> list[Entry]:
    """What the ledger has of the old number is in the tables; of the new one it has nothing yet."""
    return [Entry("folded", part=old), Entry("folded", part=new, numbers=(core.ledger.next,))]


def _make(run: duckdb.DuckDBPyConnection, tables: Sequence[str], old: int, new: int, layout: Layout) -> None:
    for statement in tables:
        run.execute(statement)
    run.execute("UPDATE objects SET number = ?, value = ? WHERE number = ?", [new, list(map(str, layout.value)), old])


def _move(run: duckdb.DuckDBPyConnection, old: str, new: str, columns: Sequence[str]) -> None:
    run.execute(f"INSERT INTO {new} ({listed(columns)}) SELECT {listed(columns)} FROM {old}")
    run.execute(f"DROP TABLE {old}")
