"""Forgetting what no readable time needs.

A version that was superseded at `until` is seen by reads below `until`, and its change by readers after it
from below `until`: once since has reached `until`, neither can come. History is in the order of `until`.
"""

import time
from collections.abc import Sequence

import duckdb

from holdfast.names import CollectionId
from holdfast.runtime.store import frontier as laws
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.disk import flush
from holdfast.runtime.store.duckdb.objects import Collection
from holdfast.runtime.store.duckdb.statements import one
from holdfast.runtime.store.port import Frontier, Time

WAL_ENTRIES = 50_000
"""The write-ahead log is rewritten when it has more entries than this, and more than twice those it needs."""

WAL_BYTES = 16 * 1024 * 1024
"""It is also rewritten when the changes in it are longer, and more than twice what was left of them the last time."""

FLUSHED_TICKS = 256
"""Memtables are flushed when this many rows of the log came after their oldest change."""

FEW_TICKS = FLUSHED_TICKS // 4
"""Before a long log is rewritten, changes older than this are flushed, or they would stay in it."""

MOST_TICKS = 4 * FLUSHED_TICKS
"""Opening a store takes in about a thousand small changes a second."""

FLUSH_SECONDS = 0.01


def compact(core: Core, limit: int) -> int:
    """Advance every since as far as window and holds allow, then forget at most `limit` rows."""
    advance(core)
    forgotten = _forget(core, limit)
    is_long = core.wal.bytes > max(WAL_BYTES, 2 * core.wal.left)
    _flush(core, ticks=FEW_TICKS if is_long else FLUSHED_TICKS)
    is_flushed = flush.first_unflushed_number(core) > core.wal.next - FEW_TICKS
    if core.wal.size > max(WAL_ENTRIES, 2 * core.wal.needed) or (is_long and is_flushed):
        _rewrite_wal(core)
    return forgotten


def advance(core: Core) -> None:
    with core.memory_lock:
        claims = core.least_claims()
        for collection in core.objects.collections.values():
            if laws.is_building(collection.frontier):
                continue
            wanted = max(collection.wanted, laws.implied_since(collection.frontier.upper, collection.window_ms))
            claimed = [claims[collection.id]] if collection.id in claims else []
            since = laws.held_since(collection.frontier, Time(wanted), claimed)
            if since != collection.frontier.since:
                collection.frontier = Frontier(since, collection.frontier.upper)
                core.advanced.add(collection.id)
        needed = [_bound(c) for c in core.objects.collections.values() if c.keeps_history and _is_live(core, c)]
        core.wal.trim(min([core.wal.committed, *needed]))


def _is_live(core: Core, collection: Collection) -> bool:
    """Whether a collection takes part in ticks. One that is frozen is read at times before it froze, for as long as it
    lasts: the offsets of all that time would add up to millions."""
    return laws.is_building(collection.frontier) or collection.frontier.upper > core.wal.committed


def _bound(collection: Collection) -> Time:
    if laws.is_building(collection.frontier):
        return collection.history_from or Time(0)
    return collection.frontier.since


def _forget(core: Core, limit: int) -> int:
    """From tables first: they have the oldest."""
    collections = list(core.objects.collections.values())
    stored = [c for c in collections if c.oldest is not None and c.oldest <= _bound(c)]
    forgotten = _forget_stored(core, stored, limit) if stored else 0
    with core.memory_lock:
        for collection in collections:
            if forgotten < limit:
                forgotten += collection.forget(_bound(collection), limit - forgotten)
    return forgotten


def _forget_stored(core: Core, collections: Sequence[Collection], limit: int) -> int:
    """In one transaction; the since that allows it becomes durable with it."""
    forgotten = 0
    oldest: dict[CollectionId, Time | None] = {}
    with core.changed_entries([each.id for each in collections]) as entries, core.transaction() as run:
        for collection in collections:
            if forgotten < limit:
                forgotten += _delete(run, collection, limit - forgotten)
                [oldest[collection.id]] = one(run, f"SELECT min(until) FROM {collection.history}")
        core.wal.write(run, entries)
    with core.memory_lock:
        core.wal.apply(entries)
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


# -- the write-ahead log -----------------------------------------------------------------------------


def _flush(core: Core, ticks: int) -> None:
    """Flush the objects whose oldest change is older than some ticks, the oldest first.

    Ticks wait meanwhile, so a little is done at each compaction; when that has not sufficed, all of it.
    """
    objects = core.objects.by_number().values()
    waiting = [(number, target) for target in objects if (number := flush.first_unflushed(target)) is not None]
    began, overdue = time.monotonic(), core.wal.next - MOST_TICKS
    for number, target in sorted(waiting, key=lambda found: found[0]):
        if number > core.wal.next - ticks:
            return
        if number > overdue and time.monotonic() - began > FLUSH_SECONDS:
            return
        flush.flush(core, [target])


def _rewrite_wal(core: Core) -> None:
    with core.transaction() as run:
        core.wal.rewrite(run, unflushed=flush.first_unflushed_number(core))
    core.wal.rewritten()
