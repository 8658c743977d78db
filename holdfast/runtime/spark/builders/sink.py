"""The end of a query: the columns of its rows as the store and the sink topic take them."""

from holdfast.runtime.spark.fragment import BAD, OFF, PART, PRESENT, TS, Fragment, column
from holdfast.runtime.spark.relation import StreamRelation, TableRelation


def build_stream_sink(source: StreamRelation) -> Fragment:
    """`k0.., c0.., ts, part, off, bad`."""
    columns = [column(f"k{i}", c.type) for i, c in enumerate(source.key)]
    columns += [column(f"c{i}", c.type) for i, c in enumerate(source.value)]
    return Fragment(source.sql, (*columns, TS, PART, OFF, BAD))


def build_table_sink(source: TableRelation) -> Fragment:
    """`k0.., c0.., ts, present`: the row of each touched key after the tick."""
    columns = [column(f"k{i}", c.type) for i, c in enumerate(source.key)]
    columns += [column(f"c{i}", c.type) for i, c in enumerate(source.value)]
    values = [f"a{i} AS c{i}" for i in range(len(source.value))]
    chosen = [*source.keys, *values, "coalesce(a_ts, b_ts) AS ts", "a_present AS present"]
    return Fragment(f"SELECT {', '.join(chosen)} FROM ({source.sql})", (*columns, TS, PRESENT))
