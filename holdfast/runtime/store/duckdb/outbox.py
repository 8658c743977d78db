"""Outboxes: rows that are not published to sink topics yet."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing

import pyarrow as pa

from holdfast.names import QueryId
from holdfast.runtime.store import schemas
from holdfast.runtime.store.duckdb.columns import listed
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.disk.wal import WalEntry
from holdfast.runtime.store.duckdb.errors import translate_errors
from holdfast.runtime.store.duckdb.objects import Outbox, Sampled
from holdfast.runtime.store.duckdb.statements import as_arrow
from holdfast.runtime.store.port import EndOffset, PendingRows, Time

SAMPLED_ROWS = 50
"""Few, because a row may have a megabyte."""


def pending(core: Core, of: Iterable[QueryId] | None) -> list[PendingRows]:
    with core.memory_lock:
        outboxes = core.objects.outboxes
        chosen = outboxes.values() if of is None else [outboxes[query] for query in of if query in outboxes]
        everything = [
            PendingRows(time, outbox.query, rows)
            for outbox in chosen
            if outbox.written or outbox.unwritten
            for time, rows in outbox.pending.items()
        ]
    return sorted(everything, key=lambda rows: (rows.time, rows.query))


def pending_bytes(core: Core, query: QueryId) -> int:
    """The size of the rows in memory, and for those in the table their number times the width of some of them."""
    with core.memory_lock:
        outbox = core.objects.outboxes.get(query)
        if outbox is None:
            return 0
        written = sum(outbox.written.values())
        in_memory = sum(int(part.rows.nbytes) for part in outbox.unwritten.values())
    if written and (outbox.sampled is None or not outbox.sampled.rows / 2 <= written <= outbox.sampled.rows * 2):
        outbox.sampled = Sampled(written, _mean_width(core, outbox))
    return in_memory + (int(written * outbox.sampled.width) if written and outbox.sampled else 0)


def _mean_width(core: Core, outbox: Outbox) -> float:
    schema = schemas.outbox_schema(outbox.layout)
    sql = f"SELECT {listed(schema.names)} FROM {outbox.table} LIMIT {SAMPLED_ROWS}"
    with translate_errors(), closing(core.database.cursor()) as cursor:
        rows = schemas.fit(as_arrow(cursor, sql), schema)
    return float(rows.nbytes / max(1, rows.num_rows))


def pending_rows(core: Core, query: QueryId, time: Time) -> pa.Table:
    with core.memory_lock:
        outbox = core.objects.outbox(query)
        unwritten = outbox.unwritten.get(time)
    if unwritten is not None:
        return unwritten.rows
    schema = schemas.outbox_schema(outbox.layout)
    sql = f"SELECT {listed(schema.names)} FROM {outbox.table} WHERE time = {time} ORDER BY n"
    with translate_errors(), closing(core.database.cursor()) as cursor:
        return schemas.fit(as_arrow(cursor, sql), schema)


def mark_published(core: Core, upto: Mapping[QueryId, Time], ends: Sequence[EndOffset]) -> None:
    """Callers hold `write_lock`."""
    outboxes = {query: outbox for query in upto if (outbox := core.objects.outboxes.get(query)) is not None}
    if not outboxes and not ends:
        return
    # The entries of topic ends come with a time for stores of earlier versions, which read it.
    entries = [WalEntry("published", "", end.topic, end.partition, (core.wal.committed, end.offset)) for end in ends]
    entries += [WalEntry("settled", query, numbers=(upto[query],)) for query in outboxes]
    with core.transaction() as run:
        for query, outbox in outboxes.items():
            if any(time <= upto[query] for time in outbox.written):
                run.execute(f"DELETE FROM {outbox.table} WHERE time <= {upto[query]}")
        core.wal.write(run, entries)
    with core.memory_lock:
        core.wal.apply(entries)
        for query, outbox in outboxes.items():
            outbox.written = {time: rows for time, rows in outbox.written.items() if time > upto[query]}
            outbox.unwritten = {time: part for time, part in outbox.unwritten.items() if time > upto[query]}
