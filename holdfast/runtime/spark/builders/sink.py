"""The end of a query: its rows with the columns that the store and the sink topic expect."""

from holdfast.runtime import physical_columns as col
from holdfast.runtime.fragment import BAD, HDR, OFF, PART, PRESENT, TS, Fragment, key_columns, value_columns
from holdfast.runtime.physical_columns import AFTER
from holdfast.runtime.plan.formats import TimestampColumn
from holdfast.runtime.plan.optional import Maybe, value_of
from holdfast.runtime.plan.steps import StreamSink, TableKeep, TableSink
from holdfast.runtime.serdes.decoder import GOOD
from holdfast.runtime.spark.builders.timestamp import timed, timestamp_sql
from holdfast.runtime.spark.relation import StreamRelation, TableRelation


def build_stream_sink(step: StreamSink, source: StreamRelation) -> Fragment:
    """`k0.., c0.., present, ts, part, off, bad, hdr`."""
    columns = key_columns(source.key_types)
    columns += value_columns(c.type for c in source.value)
    ts = timestamp_sql(step.timestamp_column, source.key, source.value, present="present")
    chosen = [*source.keys, *source.values, "present", f"{ts} AS ts", "part", "off", "bad"]
    chosen.append("hdr" if source.headers else f"CAST(NULL AS {HDR.spark}) AS hdr")
    columns += [PRESENT, TS, PART, OFF, BAD, HDR]
    rows = f"SELECT {', '.join(chosen)} FROM ({source.sql})"
    return Fragment(timed(rows, step.timestamp_column, [c.name for c in columns]), tuple(columns), reports_skips=True)


def timestamp_of(step: TableSink | TableKeep) -> Maybe[TimestampColumn]:
    """The timestamp column of a table's sink; None for a table without a topic."""
    return step.timestamp_column if isinstance(step, TableSink) else None


def build_table_sink(step: TableSink | TableKeep, source: TableRelation) -> Fragment:
    """`k0.., c0.., ts, present`: the row of each touched key after the tick. `bad` if it has a timestamp column."""
    timestamp = timestamp_of(step)
    columns = key_columns(source.key_types)
    columns += value_columns(c.type for c in source.value)
    values = [f"{AFTER.column(i)} AS {col.value(i)}" for i in range(len(source.value))]
    ts = timestamp_sql(timestamp, source.key, source.value, present="a_present", prefix="a", ts="coalesce(a_ts, b_ts)")
    chosen = [*source.keys, *values, f"{ts} AS ts", "a_present AS present"]
    columns += [TS, PRESENT]
    if value_of(timestamp) is None:
        return Fragment(f"SELECT {', '.join(chosen)} FROM ({source.sql})", tuple(columns))
    columns.append(BAD)
    rows = f"SELECT {', '.join(chosen)}, {GOOD} AS bad FROM ({source.sql})"
    return Fragment(timed(rows, timestamp, [c.name for c in columns]), tuple(columns), reports_skips=True)


def build_repeated_deletes(deletes: str, source: TableRelation) -> Fragment:
    """Deletes (`k0.., ts`) as records of a table's topic."""
    columns = key_columns(source.key_types)
    values = value_columns(c.type for c in source.value)
    nulls = [f"CAST(NULL AS {value.spark}) AS {value.name}" for value in values]
    sql = f"SELECT {', '.join([*source.keys, *nulls])}, ts, false AS present FROM ({deletes})"
    return Fragment(sql, (*columns, *values, TS, PRESENT))
