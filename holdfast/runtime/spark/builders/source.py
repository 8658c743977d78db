"""Sources: where a query's rows come from."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from holdfast.runtime import physical_columns as col
from holdfast.runtime.fragment import BAD, PRESENT, SKIPPED, TS, Fragment, key_columns, value_columns
from holdfast.runtime.plan.formats import TimestampColumn
from holdfast.runtime.plan.optional import Maybe
from holdfast.runtime.plan.windows import WindowInfo
from holdfast.runtime.spark.builders.timestamp import timed, timestamp_sql
from holdfast.runtime.spark.relation import StreamRelation, TableRelation, physical_key
from holdfast.types import Column, Schema

NO_COLUMNS: Mapping[Column, str] = MappingProxyType({})


def build_stream_source(
    schema: Schema, view: str, timestamp: Maybe[TimestampColumn], window: WindowInfo | None = None
) -> StreamRelation:
    """The decoded records of a topic; a record without a value is a row with `present` false."""
    relation = StreamRelation("", schema.key, schema.row, headers=True, window=window)
    ts = timestamp_sql(timestamp, schema.key, schema.row, present="NOT tombstone")
    columns = [*relation.keys, *relation.values, "NOT tombstone AS present", f"{ts} AS ts", "part", "off", "bad", "hdr"]
    names = [*relation.keys, *relation.values, *relation.rest]
    return replace(relation, sql=timed(f"SELECT {', '.join(columns)} FROM {view}", timestamp, names))


def build_derived_stream(schema: Schema, view: str, window: WindowInfo | None = None) -> StreamRelation:
    """The rows that another query emitted in this tick."""
    relation = StreamRelation("", schema.key, schema.value, headers=True, window=window)
    columns = [*relation.keys, *relation.values, "present", "ts", "part", "off", "0 AS bad", "hdr"]
    return replace(relation, sql=f"SELECT {', '.join(columns)} FROM {view}")


def build_table_source(schema: Schema, view: str, window: WindowInfo | None = None) -> TableRelation:
    """The changes of a table in this tick."""
    return TableRelation(f"SELECT * FROM {view}", schema.key, schema.row, window)


def build_table_of_topic(
    schema: Schema,
    view: str,
    timestamp: Maybe[TimestampColumn],
    window: WindowInfo | None = None,
    more: Mapping[Column, str] = NO_COLUMNS,
) -> Fragment:
    """The last record per key: `k0.., c0.., ts, present, bad, skipped`. A record without a key is bad.

    `more` are value columns after those of the schema: aggregates over the records of a key.
    """
    types = physical_key(schema.key, window)
    keys = col.keys(len(types))
    values = col.values(len(schema.row))
    last = [f"max_by({name}, struct(part, off)) AS {name}" for name in values]
    last += [f"{sql} AS {col.value(len(values) + i)}" for i, sql in enumerate(more.values())]
    last += ["max_by(ts, struct(part, off)) AS ts"]
    last += ["NOT max_by(tombstone, struct(part, off)) AS present", "bad", "count(*) AS skipped"]
    ts = timestamp_sql(timestamp, schema.key, schema.row, present="NOT tombstone")
    rows = f"SELECT {', '.join([*keys, *values])}, {ts} AS ts, part, off, tombstone, bad FROM {view}"
    rows = timed(rows, timestamp, [*keys, *values, "ts", "part", "off", "tombstone", "bad"])
    sql = f"SELECT {', '.join([*keys, *last])} FROM ({rows}) GROUP BY {', '.join([*keys, 'bad'])}"
    columns = key_columns(types)
    columns += value_columns(c.type for c in (*schema.row, *more))
    return Fragment(sql, (*columns, TS, PRESENT, BAD, SKIPPED), reports_skips=True)
