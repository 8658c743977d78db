"""Rows that sink topics have still to get."""

from collections.abc import Sequence
from contextlib import closing

import pyarrow as pa

from holdfast.names import QueryId
from holdfast.runtime.store import schemas
from holdfast.runtime.store.duckdb.columns import listed
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.fetching import as_arrow
from holdfast.runtime.store.duckdb.ledger import Entry
from holdfast.runtime.store.duckdb.problems import telling
from holdfast.runtime.store.port import Moved, Owed, Time


def owed(core: Core) -> list[Owed]:
    with core.times:
        everything = [
            Owed(time, outbox.query, rows)
            for outbox in core.objects.outboxes.values()
            for time, rows in outbox.owed.items()
        ]
    return sorted(everything, key=lambda owed: (owed.time, owed.sink))


def owed_rows(core: Core, query: QueryId, time: Time) -> pa.Table:
    with core.times:
        outbox = core.objects.outbox(query)
        unwritten = outbox.unwritten.get(time)
    if unwritten is not None:
        return unwritten.rows
    schema = schemas.outbox_schema(outbox.layout)
    sql = f"SELECT {listed(schema.names)} FROM {outbox.table} WHERE time = {time} ORDER BY n"
    with telling(), closing(core.database.cursor()) as cursor:
        return schemas.fit(as_arrow(cursor, sql), schema)


def settle(core: Core, upto: Time, published: Sequence[Moved]) -> None:
    """Callers hold `writing`."""
    outboxes = list(core.objects.outboxes.values())
    written = [outbox for outbox in outboxes if any(time <= upto for time in outbox.written)]
    unwritten = [outbox for outbox in outboxes if any(time <= upto for time in outbox.unwritten)]
    entries = [Entry("published", "", m.topic, m.partition, (upto, m.end_offset)) for m in published]
    if not written and not unwritten and not entries:
        return
    entries.append(Entry("settled", numbers=(upto,)))
    with core.transaction() as run:
        for outbox in written:
            run.execute(f"DELETE FROM {outbox.table} WHERE time <= {upto}")
        core.ledger.write(run, entries)
    with core.times:
        core.ledger.apply(entries)
        for outbox in written:
            outbox.written = {time: rows for time, rows in outbox.written.items() if time > upto}
        for outbox in unwritten:
            outbox.unwritten = {time: part for time, part in outbox.unwritten.items() if time > upto}
