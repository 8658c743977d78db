"""A tick's small changes as bytes, for the ledger: what memory has and the tables do not.

One part per object. The rows of parts that are laid out alike are one record batch, without its schema, which the
objects' layouts tell; it is with the first of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from holdfast.runtime.store.duckdb.delta import collection_delta_schema, owed, state_delta_schema
from holdfast.runtime.store.duckdb.objects import Collection, Object, Outbox, State
from holdfast.runtime.store.schemas import outbox_schema

_NUMBER = pa.int32()
_PARTS = pa.schema(
    [
        ("object", _NUMBER),
        ("owes", _NUMBER),
        ("history", pa.bool_()),
        ("batch", _NUMBER),
        ("start", _NUMBER),
        ("length", _NUMBER),
        ("rows", pa.binary()),
    ]
)
_Found = dict[str, Any]
# A pool of threads would cost more than it saves: a tick waited 12 ms for it on a busy machine.
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)


@dataclass(frozen=True, slots=True)
class Part:
    """What a tick does to the object of a number: a delta of a collection or a state, or rows of an outbox.

    `history` tells whether what a collection's rows supersede stays readable. Rows that an outbox `owes` are those of
    a collection's delta, and are written only there.
    """

    object: int
    rows: pa.Table
    owes: int | None = None
    history: bool = False


def encode(parts: Sequence[Part]) -> bytes:
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
        pa.array([part.owes for part in parts], _NUMBER),
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


def decode(encoded: bytes, objects: Mapping[int, Object]) -> list[Part]:
    """The parts of objects that are still there."""
    found = pa.ipc.open_stream(encoded).read_all().to_pylist()
    own = {part["object"]: part for part in found if part["owes"] is None}
    return [_part(part, objects[part["object"]], found, own) for part in found if part["object"] in objects]


def _part(part: _Found, target: Object, found: Sequence[_Found], own: Mapping[int, _Found]) -> Part:
    match target:
        case Collection(layout=layout):
            rows = _rows(part, found, collection_delta_schema(layout))
        case State(layout=layout):
            rows = _rows(part, found, state_delta_schema(layout))
        case Outbox(layout=layout) if part["owes"] is None:
            rows = _rows(part, found, outbox_schema(layout))
        case Outbox(layout=layout):
            # The collection has the same layout, and may be gone.
            rows = owed(_rows(own[part["owes"]], found, collection_delta_schema(layout)), layout)
    return Part(part["object"], rows, part["owes"], part["history"])


def _alike(parts: Sequence[Part]) -> Iterable[list[int]]:
    """The places of the parts that have rows of their own, by schema."""
    found: dict[pa.Schema, list[int]] = {}
    for i, part in enumerate(parts):
        if part.owes is None:
            found.setdefault(part.rows.schema, []).append(i)
    return found.values()


def _bytes(rows: Sequence[pa.Table]) -> memoryview:
    [batch] = pa.concat_tables(rows).combine_chunks().to_batches()
    return memoryview(batch.serialize())


def _rows(part: _Found, found: Sequence[_Found], schema: pa.Schema) -> pa.Table:
    batch = pa.ipc.read_record_batch(pa.py_buffer(found[part["batch"]]["rows"]), schema)
    return pa.Table.from_batches([batch.slice(part["start"], part["length"])])
