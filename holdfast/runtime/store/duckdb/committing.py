"""The one commit point: a stage's statements and the ledger's row in one transaction."""

from holdfast.errors import StoreError
from holdfast.runtime.store import frontier as laws
from holdfast.runtime.store.duckdb import journal
from holdfast.runtime.store.duckdb.applying import apply
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.delta import Counts
from holdfast.runtime.store.duckdb.ledger import Entry
from holdfast.runtime.store.duckdb.objects import Collection, Outbox, State
from holdfast.runtime.store.duckdb.stage import DuckDbStage, Written
from holdfast.runtime.store.port import Time


def commit(core: Core, stage: DuckDbStage, time: Time) -> None:
    """Callers hold `writing`."""
    _check_times(core, stage, time)
    for id_ in stage.bulky_collections():
        core.objects.collection(id_).writing = time
    with core.changed_entries(without=stage.collections()) as entries, core.transaction(stage.connection) as run:
        written = stage.write(time)
        entries += written.entries
        entries += [_after(core.objects.collection(c), counts, time) for c, counts in written.collections.items()]
        changes = journal.encode(written.parts) if written.parts else None
        core.ledger.write(run, entries, time=time, changes=changes)
    with core.times:
        number = core.ledger.next
        core.ledger.apply(entries)
        core.ledger.bytes += len(changes or b"")
        _remember(core, written, number, time)


def _check_times(core: Core, stage: DuckDbStage, time: Time) -> None:
    for id_ in stage.collections():
        collection = core.objects.collection(id_)
        if time < collection.frontier.upper or time <= collection.written:
            raise StoreError(
                f"a tick cannot change {id_} at {time}",
                detail=f"It is final below {max(collection.frontier.upper, collection.written + 1)}.",
            )


def _after(collection: Collection, counts: Counts, time: Time) -> Entry:
    """The entry of the collection as it is once the tick is durable; memory follows in `_remember`."""
    upper = 0 if laws.is_building(collection.frontier) else time + 1
    return collection.entry(upper=Time(upper), written=time, next_seq=collection.next_seq + counts.inserts)


def _remember(core: Core, written: Written, number: int, time: Time) -> None:
    objects = core.objects.by_number()
    apply(objects, written.parts, number, time, settled=core.ledger.settled)
    for target in written.tables:
        target.recent.clear()
        if isinstance(target, State):
            target.written()
        if isinstance(target, Collection) and target.oldest is None and target.keeps_history:
            target.oldest = time if written.collections[target.id].changes else None
    for id_, counts in written.collections.items():
        collection = core.objects.collection(id_)
        collection.written = time
        collection.next_seq += counts.inserts
        if not laws.is_building(collection.frontier):
            collection.frontier = laws.raised_upper(collection.frontier, Time(time + 1))
    for query, rows in written.owed.items():
        core.objects.outbox(query).written[time] = rows
    allowed = core.allowance()
    for part in written.parts:
        changed = objects[part.object]
        if not isinstance(changed, Outbox):
            changed.recent.limit(allowed)
