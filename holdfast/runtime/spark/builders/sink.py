"""The end of a query: the columns of its rows as the store and the sink topic take them."""

from holdfast.runtime.plan.formats import TimestampColumn
from holdfast.runtime.plan.presence import Maybe, given
from holdfast.runtime.plan.steps import StreamSink, TableKeep, TableSink
from holdfast.runtime.serdes.decoding import GOOD
from holdfast.runtime.spark.builders.timestamp import timed, timestamp_sql
from holdfast.runtime.spark.fragment import BAD, HDR, OFF, PART, PRESENT, TS, Fragment, column
from holdfast.runtime.spark.relation import StreamRelation, TableRelation


def build_stream_sink(step: StreamSink, source: StreamRelation) -> Fragment:
    """`k0.., c0.., present, ts, part, off, bad, hdr`."""
    columns = [column(f"k{i}", type_) for i, type_ in enumerate(source.key_types)]
    columns += [column(f"c{i}", c.type) for i, c in enumerate(source.value)]
    ts = timestamp_sql(step.timestamp_column, source.key, source.value, present="present")
    chosen = [*source.keys, *source.values, "present", f"{ts} AS ts", "part", "off", "bad"]
    chosen.append("hdr" if source.headers else f"CAST(NULL AS {HDR.spark}) AS hdr")
    columns += [PRESENT, TS, PART, OFF, BAD, HDR]
    rows = f"SELECT {', '.join(chosen)} FROM ({source.sql})"
    return Fragment(timed(rows, step.timestamp_column, [c.name for c in columns]), tuple(columns), tells=True)


def timestamp_of(step: TableSink | TableKeep) -> Maybe[TimestampColumn]:
    """The column that a table's rows have their timestamp from; what has no topic writes none."""
    return step.timestamp_column if isinstance(step, TableSink) else None


def build_table_sink(step: TableSink | TableKeep, source: TableRelation) -> Fragment:
    """`k0.., c0.., ts, present`: the row of each touched key after the tick. `bad` where a timestamp can be."""
    timestamp = timestamp_of(step)
    columns = [column(f"k{i}", type_) for i, type_ in enumerate(source.key_types)]
    columns += [column(f"c{i}", c.type) for i, c in enumerate(source.value)]
    values = [f"a{i} AS c{i}" for i in range(len(source.value))]
    ts = timestamp_sql(timestamp, source.key, source.value, present="a_present", prefix="a", ts="coalesce(a_ts, b_ts)")
    chosen = [*source.keys, *values, f"{ts} AS ts", "a_present AS present"]
    columns += [TS, PRESENT]
    if given(timestamp) is None:
        return Fragment(f"SELECT {', '.join(chosen)} FROM ({source.sql})", tuple(columns))
    columns.append(BAD)
    rows = f"SELECT {', '.join(chosen)}, {GOOD} AS bad FROM ({source.sql})"
    return Fragment(timed(rows, timestamp, [c.name for c in columns]), tuple(columns), tells=True)


def build_told_again(deletes: str, source: TableRelation) -> Fragment:
    """Deletes (`k0.., ts`) as records of a table's topic."""
    columns = [column(f"k{i}", type_) for i, type_ in enumerate(source.key_types)]
    values = [column(f"c{i}", c.type) for i, c in enumerate(source.value)]
    nothing = [f"CAST(NULL AS {value.spark}) AS {value.name}" for value in values]
    sql = f"SELECT {', '.join([*source.keys, *nothing])}, ts, false AS present FROM ({deletes})"
    return Fragment(sql, (*columns, *values, TS, PRESENT))
