"""A small tick's changes to memtables: as bytes in the write-ahead log, and applied to memory.

They are applied when the tick commits, and again when the store opens.

One `ObjectChange` per object. Rows of changes with the same layout share one record batch, stored with the first of
them and without its schema, which follows from the objects' layouts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from holdfast.names import QueryId
from holdfast.runtime.store.duckdb.memtable import delta
from holdfast.runtime.store.duckdb.memtable.delta import collection_delta_schema, outbox_rows, state_delta_schema
from holdfast.runtime.store.duckdb.objects import Collection, Object, Outbox, State, Unwritten
from holdfast.runtime.store.port import Time
from holdfast.runtime.store.schemas import outbox_schema

_NUMBER = pa.int32()
_PARTS = pa.schema(
    [
        ("object", _NUMBER),
        ("owes", _NUMBER),  # stored name
        ("history", pa.bool_()),
        ("batch", _NUMBER),
        ("start", _NUMBER),
        ("length", _NUMBER),
        ("rows", pa.binary()),
    ]
)
_FIELDS = ["changes_of" if name == _PARTS.names[1] else name for name in _PARTS.names]
_Found = dict[str, Any]
# A pool of threads would cost more than it saves: a tick waited 12 ms for it on a busy machine.
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """What a tick does to the object of a number: a delta of a collection or a state, or rows of an outbox.

    `history` says whether the rows that a collection's change supersedes stay readable. Rows of an outbox that are
    changes of the collection with the number `changes_of` are stored only there.
    """

    object: int
    rows: pa.Table
    changes_of: int | None = None
    history: bool = False


def encode(parts: Sequence[ObjectChange]) -> bytes:
    batch: list[int | None] = [None] * len(parts)
    rows: list[memoryview | None] = [None] * len(parts)
    start = [0] * len(parts)
    for alike in _alike(parts):
        offset = 0
        for i in alike:
            batch[i], start[i] = alike[0], offset
            offset += parts[i].rows.num_rows
        rows[alike[0]] = _bytes([parts[i].rows for i in alike])
    columns = [
        pa.array([part.object for part in parts], _NUMBER),
        pa.array([part.changes_of for part in parts], _NUMBER),
        pa.array([part.history for part in parts], pa.bool_()),
        pa.array(batch, _NUMBER),
        pa.array(start, _NUMBER),
        pa.array([part.rows.num_rows for part in parts], _NUMBER),
        pa.array(rows, pa.binary()),
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _PARTS, options=_OPTIONS) as stream:
        stream.write_batch(pa.RecordBatch.from_arrays(columns, schema=_PARTS))
    return bytes(sink.getvalue().to_pybytes())


def decode(encoded: bytes, objects: Mapping[int, Object]) -> list[ObjectChange]:
    """The parts of objects that are still there."""
    found = pa.ipc.open_stream(encoded).read_all().rename_columns(_FIELDS).to_pylist()
    own = {part["object"]: part for part in found if part["changes_of"] is None}
    return [_part(part, objects[part["object"]], found, own) for part in found if part["object"] in objects]


def _part(part: _Found, target: Object, found: Sequence[_Found], own: Mapping[int, _Found]) -> ObjectChange:
    match target:
        case Collection(layout=layout):
            rows = _rows(part, found, collection_delta_schema(layout))
        case State(layout=layout):
            rows = _rows(part, found, state_delta_schema(layout))
        case Outbox(layout=layout) if part["changes_of"] is None:
            rows = _rows(part, found, outbox_schema(layout))
        case Outbox(layout=layout):
            # The collection has the same layout, and may be gone.
            rows = outbox_rows(_rows(own[part["changes_of"]], found, collection_delta_schema(layout)), layout)
    return ObjectChange(part["object"], rows, part["changes_of"], part["history"])


def _alike(parts: Sequence[ObjectChange]) -> Iterable[list[int]]:
    """The indexes of the parts that have rows of their own, by schema."""
    found: dict[pa.Schema, list[int]] = {}
    for i, part in enumerate(parts):
        if part.changes_of is None:
            found.setdefault(part.rows.schema, []).append(i)
    return found.values()


def _bytes(rows: Sequence[pa.Table]) -> memoryview:
    [batch] = pa.concat_tables(rows).combine_chunks().to_batches()
    return memoryview(batch.serialize())


def _rows(part: _Found, found: Sequence[_Found], schema: pa.Schema) -> pa.Table:
    batch = pa.ipc.read_record_batch(pa.py_buffer(found[part["batch"]]["rows"]), schema)
    return pa.Table.from_batches([batch.slice(part["start"], part["length"])])


def apply(
    objects: Mapping[int, Object],
    parts: Iterable[ObjectChange],
    number: int,
    time: Time,
    *,
    published_to: Callable[[QueryId], Time],
) -> None:
    """Rows of an outbox that is published up to `time` are left out. `number` is the tick's in the log.

    Callers hold `memory_lock`.
    """
    for part in parts:
        match objects[part.object]:
            case State() as state:
                state.memtable.change(delta.states_after(part.rows, state.layout), number)
            case Collection() as collection:
                _change(collection, part, number, time)
            case Outbox() as outbox if time > published_to(outbox.query):
                so_far = outbox.unwritten.get(time)
                rows = part.rows if so_far is None else pa.concat_tables([so_far.rows, part.rows])
                outbox.unwritten[time] = Unwritten(number, rows)


def _change(collection: Collection, part: ObjectChange, number: int, time: Time) -> None:
    layout = collection.layout
    # History that no readable time needs can come back only from the log, after it was forgotten.
    needed = part.history and time > collection.frontier.since
    before = delta.superseded(part.rows, layout, time) if needed else None
    collection.change(delta.rows_after(part.rows, layout, time), before, time, number)
