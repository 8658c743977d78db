"""Cutting changes into parts that fit a reader's memory, however long it did not read."""

from contextlib import closing
from itertools import pairwise

import duckdb

from holdfast.runtime.store.duckdb.contents import Contents
from holdfast.runtime.store.duckdb.core import Core
from holdfast.runtime.store.duckdb.objects import Collection
from holdfast.runtime.store.duckdb.problems import telling
from holdfast.runtime.store.port import ChangeRange, Time


def change_ranges(core: Core, collection: Collection, after: Time, to: Time, rows: int) -> list[ChangeRange]:
    """Ticks in a row as long as they fit; one that is larger, by keys."""
    contents = Contents.of(core, collection)
    counts = (
        f"SELECT until, count(*) FROM ({contents.history()}) WHERE until > {after} AND until <= {to} "
        f"GROUP BY until ORDER BY until"
    )
    with telling(), closing(core.database.cursor()) as cursor:
        contents.register(cursor)
        found: list[ChangeRange] = []
        begin, last, room = after, after, rows
        for time, count in cursor.execute(counts).fetchall():
            if count > room and last > begin:
                found.append(ChangeRange(begin, last))
                begin, room = last, rows
            if count > rows:
                found += _by_keys(cursor, contents, Time(time), rows)
                begin = Time(time)
            else:
                room -= count
            last = Time(time)
        if last > begin:
            found.append(ChangeRange(begin, last))
    return found


def change_times(core: Core, collection: Collection, after: Time, to: Time) -> list[Time]:
    contents = Contents.of(core, collection)
    sql = f"SELECT DISTINCT until FROM ({contents.history()}) WHERE until > {after} AND until <= {to} ORDER BY until"
    with telling(), closing(core.database.cursor()) as cursor:
        contents.register(cursor)
        return [Time(time) for (time,) in cursor.execute(sql).fetchall()]


def _by_keys(cursor: duckdb.DuckDBPyConnection, contents: Contents, time: Time, rows: int) -> list[ChangeRange]:
    starts = (
        f"SELECT k FROM (SELECT k, row_number() OVER (ORDER BY k) - 1 AS n FROM ({contents.history()}) "
        f"WHERE until = {time}) WHERE n % {rows} = 0 ORDER BY k"
    )
    keys = [k for (k,) in cursor.execute(starts).fetchall()]
    return [ChangeRange(Time(time - 1), time, pair) for pair in pairwise([*keys, None])]
