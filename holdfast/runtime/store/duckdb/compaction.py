"""Forgetting what no readable time needs.

A version that was superseded at `until` is seen by reads below `until`, and its change by readers after it
from below `until`: once since has reached `until`, neither can come. History is in the order of `until`.
"""

import time
from collections.abc import Sequence

import duckdb

from holdfast.names import CollectionId
from holdfast.runtime.store import frontier as laws
from holdfast.runtime.store.duckdb import folding
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.objects import Collection
from holdfast.runtime.store.duckdb.one import one
from holdfast.runtime.store.port import Frontier, Time

LEDGER_ENTRIES = 50_000
"""The ledger is rewritten when it has this many, and more than twice what is needed of it."""

LEDGER_BYTES = 16 * 1024 * 1024
"""It is also rewritten when the changes in it are longer, and more than twice what was left of them the last time."""

FOLDED_TICKS = 256
"""Changes are folded into tables when so many rows of the ledger came after them."""

FEW_TICKS = FOLDED_TICKS // 4
"""Of a ledger that is too long, changes older than this are folded before it is rewritten: else they would stay."""

MOST_TICKS = 4 * FOLDED_TICKS
"""Opening a store takes in about a thousand small changes a second."""

FOLD_SECONDS = 0.01


def compact(core: Core, limit: int) -> int:
    """Advance every since as far as window and holds allow, then forget at most `limit` rows."""
    advance(core)
    forgotten = _forget(core, limit)
    is_long = core.ledger.bytes > max(LEDGER_BYTES, 2 * core.ledger.left)
    _fold(core, ticks=FEW_TICKS if is_long else FOLDED_TICKS)
    is_folded = folding.unfolded(core) > core.ledger.next - FEW_TICKS
    if core.ledger.size > max(LEDGER_ENTRIES, 2 * core.ledger.needed) or (is_long and is_folded):
        _rewrite_ledger(core)
    return forgotten


def advance(core: Core) -> None:
    with core.times:
        for collection in core.objects.collections.values():
            if laws.is_building(collection.frontier):
                continue
            wanted = max(collection.wanted, laws.implied_since(collection.frontier.upper, collection.window_ms))
            since = laws.held_since(collection.frontier, Time(wanted), core.held(collection.id))
            if since != collection.frontier.since:
                collection.frontier = Frontier(since, collection.frontier.upper)
                core.changed.add(collection.id)
        needed = [core.ledger.committed, *(_bound(c) for c in core.objects.collections.values() if c.keeps_history)]
        core.ledger.trim(min(needed))


def _bound(collection: Collection) -> Time:
    if laws.is_building(collection.frontier):
        return collection.history_from or Time(0)
    return collection.frontier.since


def _forget(core: Core, limit: int) -> int:
    """From tables first: they have the oldest."""
    collections = list(core.objects.collections.values())
    stored = [c for c in collections if c.oldest is not None and c.oldest <= _bound(c)]
    forgotten = _forget_stored(core, stored, limit) if stored else 0
    with core.times:
        for collection in collections:
            if forgotten < limit:
                forgotten += collection.forget(_bound(collection), limit - forgotten)
    return forgotten


def _forget_stored(core: Core, collections: Sequence[Collection], limit: int) -> int:
    """In one transaction; the since that allows it becomes durable with it."""
    forgotten = 0
    oldest: dict[CollectionId, Time | None] = {}
    with core.changed_entries() as entries, core.transaction() as run:
        for collection in collections:
            if forgotten < limit:
                forgotten += _delete(run, collection, limit - forgotten)
                [oldest[collection.id]] = one(run, f"SELECT min(until) FROM {collection.history}")
        core.ledger.write(run, entries)
    with core.times:
        core.ledger.apply(entries)
        for id_, time in oldest.items():
            core.objects.collection(id_).oldest = time
    return forgotten


def _delete(run: duckdb.DuckDBPyConnection, collection: Collection, limit: int) -> int:
    bound, history = _bound(collection), collection.history
    [gone] = one(run, f"SELECT count(*) FROM {history} WHERE until <= {bound}")
    if gone <= limit:
        run.execute(f"DELETE FROM {history} WHERE until <= {bound}")
    else:
        first = f"SELECT rowid FROM {history} WHERE until <= {bound} ORDER BY until LIMIT {limit}"
        run.execute(f"DELETE FROM {history} WHERE rowid IN ({first})")
    return min(int(gone), limit)


# -- the ledger --------------------------------------------------------------------------------------


def _fold(core: Core, ticks: int) -> None:
    """Fold the objects that have changes older than some ticks, the oldest first.

    Ticks wait meanwhile, so a little is done at each compaction; when that has not sufficed, all of it.
    """
    objects = core.objects.by_number().values()
    waiting = [(number, target) for target in objects if (number := folding.first(target)) is not None]
    began, overdue = time.monotonic(), core.ledger.next - MOST_TICKS
    for number, target in sorted(waiting, key=lambda found: found[0]):
        if number > core.ledger.next - ticks:
            return
        if number > overdue and time.monotonic() - began > FOLD_SECONDS:
            return
        folding.fold(core, [target])


def _rewrite_ledger(core: Core) -> None:
    with core.transaction() as run:
        core.ledger.rewrite(run, unfolded=folding.unfolded(core))
    core.ledger.rewritten()
