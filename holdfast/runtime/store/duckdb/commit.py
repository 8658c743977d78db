"""The one commit point: a stage's statements and its row of the write-ahead log in one transaction."""

from collections.abc import Set

from holdfast.errors import StoreError
from holdfast.names import CollectionId
from holdfast.runtime.store import frontier as laws
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.disk.wal import WalEntry
from holdfast.runtime.store.duckdb.memtable.changes import apply, encode
from holdfast.runtime.store.duckdb.memtable.delta import Counts
from holdfast.runtime.store.duckdb.objects import Collection, Outbox, State
from holdfast.runtime.store.duckdb.stage import DuckDbStage, Written
from holdfast.runtime.store.port import Time


def commit(core: Core, stage: DuckDbStage, time: Time, frozen: Set[CollectionId]) -> None:
    """Callers hold `write_lock`."""
    _check_times(core, stage, time)
    for id_ in stage.large_collections():
        core.objects.collection(id_).writing = time
    freezes = stage.freezes()
    advanced = core.advanced if freezes or core.froze else ()
    frontiers = core.changed_entries(advanced, without=stage.collections())
    with frontiers as entries, core.transaction(stage.connection) as run:
        written = stage.write(time)
        entries += written.entries
        entries += [
            _after(core.objects.collection(id_), counts, time, is_frozen=id_ in frozen)
            for id_, counts in written.collections.items()
        ]
        changes = encode(written.parts) if written.parts else None
        core.wal.write(run, entries, time=time, changes=changes)
    with core.memory_lock:
        number = core.wal.next
        core.wal.apply(entries)
        core.wal.bytes += len(changes or b"")
        core.froze = freezes
        _apply(core, written, number, time, frozen)


def _check_times(core: Core, stage: DuckDbStage, time: Time) -> None:
    for id_ in stage.collections():
        collection = core.objects.collection(id_)
        if time < collection.frontier.upper or time <= collection.written:
            raise StoreError(
                f"a tick cannot change {id_} at {time}",
                detail=f"It is final below {max(collection.frontier.upper, collection.written + 1)}.",
            )


def _after(collection: Collection, counts: Counts, time: Time, *, is_frozen: bool) -> WalEntry:
    """The entry of the collection as it is once the tick is durable; memory follows in `_apply`."""
    upper = collection.frontier.upper if is_frozen or laws.is_building(collection.frontier) else Time(time + 1)
    return collection.entry(upper=upper, written=time, next_seq=collection.next_seq + counts.inserts)


def _apply(core: Core, written: Written, number: int, time: Time, frozen: Set[CollectionId]) -> None:
    objects = core.objects.by_number()
    apply(objects, written.parts, number, time, published_to=core.wal.published_to)
    for target in written.tables:
        target.memtable.clear()
        if isinstance(target, State):
            target.written()
        if isinstance(target, Collection) and target.oldest is None and target.keeps_history:
            target.oldest = time if written.collections[target.id].changes else None
    for id_, counts in written.collections.items():
        collection = core.objects.collection(id_)
        collection.written = time
        collection.next_seq += counts.inserts
        if id_ not in frozen and not laws.is_building(collection.frontier):
            collection.frontier = laws.raised_upper(collection.frontier, Time(time + 1))
    for query, rows in written.pending.items():
        core.objects.outbox(query).written[time] = rows
    allowed = core.allowance()
    for part in written.parts:
        changed = objects[part.object]
        if not isinstance(changed, Outbox):
            changed.memtable.limit(allowed)
