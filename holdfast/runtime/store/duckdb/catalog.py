"""Making and dropping objects, each in one transaction. Callers hold `writing`."""

import duckdb

from holdfast.names import CollectionId, QueryId, StateId
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.extending import extend_collection, extend_outbox
from holdfast.runtime.store.duckdb.ledger import Entry
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


def create_collection(core: Core, id_: CollectionId, layout: Layout, window_ms: int) -> None:
    if (known := core.objects.collections.get(id_)) is not None:
        if known.layout != layout:
            extend_collection(core, known, layout)
        return
    made = Collection(id_, core.objects.next_number, layout, window_ms)
    entries = [made.entry(), _folded(core, made)]
    with core.transaction() as run:
        _insert(run, "collection", id_, made.number, layout, window_ms, collection_tables(made))
        core.ledger.write(run, entries)
    with core.times:
        core.ledger.apply(entries)
        made.recent.complete = made.recent.asked = True
        core.objects.collections[id_] = made
        core.objects.next_number += 1


def set_window(core: Core, id_: CollectionId, window_ms: int) -> None:
    changed = core.objects.collection(id_)
    if changed.window_ms == window_ms:
        return
    with core.transaction() as run:
        run.execute("UPDATE objects SET window_ms = ? WHERE number = ?", [window_ms, changed.number])
    with core.times:
        changed.window_ms = window_ms


def create_state(core: Core, id_: StateId, layout: Layout) -> None:
    if id_ in core.objects.states:
        return
    made = State(id_, core.objects.next_number, layout)
    entries = [_folded(core, made)]
    with core.transaction() as run:
        _insert(run, "state", id_, made.number, layout, 0, state_tables(made))
        core.ledger.write(run, entries)
    with core.times:
        core.ledger.apply(entries)
        made.recent.complete = made.recent.asked = True
        core.objects.states[id_] = made
        core.objects.next_number += 1


def create_outbox(core: Core, query: QueryId, layout: Layout) -> None:
    if (known := core.objects.outboxes.get(query)) is not None:
        if known.layout != layout:
            extend_outbox(core, known, layout)
        return
    made = Outbox(query, core.objects.next_number, layout)
    entries = [_folded(core, made)]
    with core.transaction() as run:
        _insert(run, "outbox", query, made.number, layout, 0, outbox_tables(made))
        core.ledger.write(run, entries)
    with core.times:
        core.ledger.apply(entries)
        core.objects.outboxes[query] = made
        core.objects.next_number += 1


def drop_collection(core: Core, id_: CollectionId) -> None:
    gone = core.objects.collections.get(id_)
    if gone is None:
        return
    entries = [Entry("dropped", id_), Entry("folded", part=gone.number)]
    with core.transaction() as run:
        _delete(run, gone.number, gone.current, gone.history)
        core.ledger.write(run, entries)
    with core.times:
        core.ledger.apply(entries)
        del core.objects.collections[id_]
        core.changed.discard(id_)
        core.holds.forget(id_)


def drop_state(core: Core, id_: StateId) -> None:
    gone = core.objects.states.get(id_)
    if gone is None:
        return
    entries = [Entry("folded", part=gone.number)]
    with core.transaction() as run:
        _delete(run, gone.number, gone.table)
        core.ledger.write(run, entries)
    with core.times:
        core.ledger.apply(entries)
        del core.objects.states[id_]


def drop_outbox(core: Core, query: QueryId) -> None:
    gone = core.objects.outboxes.get(query)
    if gone is None:
        return
    entries = [Entry("folded", part=gone.number)]
    with core.transaction() as run:
        _delete(run, gone.number, gone.table)
        core.ledger.write(run, entries)
    with core.times:
        core.ledger.apply(entries)
        del core.objects.outboxes[query]


def _folded(core: Core, made: Object) -> Entry:
    """A number may have been another object's: changes up to now are not the new one's."""
    return Entry("folded", part=made.number, numbers=(core.ledger.next,))


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
        "INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, ?)", [kind, name, number, *types, window_ms, layout.group]
    )


def _delete(run: duckdb.DuckDBPyConnection, number: int, *tables: str) -> None:
    for table in tables:
        run.execute(f"DROP TABLE {table}")
    run.execute("DELETE FROM objects WHERE number = ?", [number])
