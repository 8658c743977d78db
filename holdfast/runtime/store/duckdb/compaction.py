"""Forgetting what no readable time needs.

A version that was superseded at `until` is seen by reads below `until`, and its change by readers after it
from below `until`: once since has reached `until`, neither can come. History is in the order of `until`.
"""

from holdfast.runtime.store import frontier as laws
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.objects import Collection
from holdfast.runtime.store.duckdb.one import one
from holdfast.runtime.store.port import Frontier, Time

LEDGER_ENTRIES = 50_000
"""The ledger is rewritten when it has this many, and more than twice what is needed of it."""


def compact(core: Core, limit: int) -> int:
    """Advance every since as far as window and holds allow, then forget at most `limit` rows."""
    advance(core)
    forgotten = 0
    for collection in list(core.objects.collections.values()):
        if forgotten < limit and collection.oldest is not None and collection.oldest <= _bound(collection):
            forgotten += _forget(core, collection, limit - forgotten)
    if core.ledger.size > max(LEDGER_ENTRIES, 2 * core.ledger.needed):
        _rewrite_ledger(core)
    return forgotten


def advance(core: Core) -> None:
    with core.times:
        for collection in core.objects.collections.values():
            if laws.is_building(collection.frontier):
                continue
            wanted = max(collection.wanted, laws.implied_since(collection.frontier.upper, collection.window_ms))
            since = laws.held_since(collection.frontier, Time(wanted), core.holds.on(collection.id))
            if since != collection.frontier.since:
                collection.frontier = Frontier(since, collection.frontier.upper)
                core.changed.add(collection.id)
        needed = [core.ledger.committed, *(_bound(c) for c in core.objects.collections.values() if c.keeps_history)]
        core.ledger.trim(min(needed))


def _bound(collection: Collection) -> Time:
    if laws.is_building(collection.frontier):
        return collection.history_from or Time(0)
    return collection.frontier.since


def _forget(core: Core, collection: Collection, limit: int) -> int:
    """The since that allows it becomes durable with it."""
    bound, history = _bound(collection), collection.history
    with core.changed_entries() as entries, core.transaction() as run:
        [gone] = one(run, f"SELECT count(*) FROM {history} WHERE until <= {bound}")
        if gone <= limit:
            run.execute(f"DELETE FROM {history} WHERE until <= {bound}")
        else:
            first = f"SELECT rowid FROM {history} WHERE until <= {bound} ORDER BY until LIMIT {limit}"
            run.execute(f"DELETE FROM {history} WHERE rowid IN ({first})")
        [oldest] = one(run, f"SELECT min(until) FROM {history}")
        core.ledger.write(run, entries)
    with core.times:
        core.ledger.apply(entries)
        collection.oldest = None if oldest is None else Time(oldest)
    return min(int(gone), limit)


def _rewrite_ledger(core: Core) -> None:
    with core.transaction() as run:
        core.ledger.rewrite(run)
    core.ledger.rewritten()
