"""A durable tick's small changes, taken into memory: when it commits, and again when the store opens."""

from collections.abc import Iterable, Mapping

import pyarrow as pa

from holdfast.runtime.store.duckdb import delta
from holdfast.runtime.store.duckdb.journal import Part
from holdfast.runtime.store.duckdb.objects import Collection, Object, Outbox, State, Unwritten
from holdfast.runtime.store.port import Time


def apply(objects: Mapping[int, Object], parts: Iterable[Part], number: int, time: Time, *, settled: Time) -> None:
    """Callers hold `times`; `number` is the ledger's of the tick, and what is owed up to `settled` is published."""
    for part in parts:
        match objects[part.object]:
            case State() as state:
                state.recent.change(delta.states_after(part.rows, state.layout), number)
            case Collection() as collection:
                _change(collection, part, number, time)
            case Outbox() as outbox if time > settled:
                so_far = outbox.unwritten.get(time)
                rows = part.rows if so_far is None else pa.concat_tables([so_far.rows, part.rows])
                outbox.unwritten[time] = Unwritten(number, rows)


def _change(collection: Collection, part: Part, number: int, time: Time) -> None:
    layout = collection.layout
    # History that no readable time needs can come back only from the ledger, after it was forgotten.
    needed = part.history and time > collection.frontier.since
    before = delta.superseded(part.rows, layout, time) if needed else None
    collection.change(delta.rows_after(part.rows, layout, time), before, time, number)
