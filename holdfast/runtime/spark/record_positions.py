"""Tables that a query reads with the positions of their records.

A table does not store the partition and offset of its rows' records. A query that reads them reads the table's topic
itself, and stores the last record of each key in a state of its own.
"""

from dataclasses import replace

from holdfast.errors import Feature, NotSupported, NotYetSupported
from holdfast.runtime import physical_columns as col
from holdfast.runtime.expressions.parse import parse_schema
from holdfast.runtime.fragment import PRESENT, TS, Fragment, key_columns, value_columns
from holdfast.runtime.plan.steps import CollectionSource, TableSourceStep, WindowStoreSource, walk
from holdfast.runtime.program import Put, SavedKeys, SavedRows, StateLookup, TopicInput
from holdfast.runtime.serdes.decoder import Decoder
from holdfast.runtime.spark.builders.join import changed_rows
from holdfast.runtime.spark.builders.source import build_table_of_topic
from holdfast.runtime.spark.record_columns import RECORD_COLUMNS, reads_records, table_sources
from holdfast.runtime.spark.relation import TableRelation, saved_table
from holdfast.runtime.spark.stage_builder import StageBuilder, StoredTable, layout_of, window_of
from holdfast.runtime.spark.views import decoded_view, state_lookup_view
from holdfast.runtime.store.schemas import rows_schema


def store_records(builder: StageBuilder) -> None:
    """Have the query store all of its tables, if it reads the position of a record of one.

    All, because a table read from its topic and one read from the store would not be at the same time.
    """
    top = builder.plan.physical_plan
    if not reads_records(top):
        return
    for step in walk(top):
        if isinstance(step, CollectionSource):
            raise _without_positions(step, step.source_name)
        if isinstance(step, WindowStoreSource):
            raise _expires(step)
    rows = [(step, *_latest(builder, step)) for step in table_sources(top)]
    builder.round += 1
    for step, table, saved in rows:
        builder.stored[step.properties.query_context] = _store(builder, step, table, saved)
    builder.round += 1


def _latest(builder: StageBuilder, step: TableSourceStep) -> tuple[TableRelation, SavedRows]:
    """The last record of each key of a table's topic, with its position."""
    if not builder.sources.is_over_topic(step.topic_name, builder.plan.sources):
        raise _without_positions(step, f"topic {step.topic_name}")
    schema, window = parse_schema(step.source_schema), window_of(step)
    decoder = Decoder(schema, step.formats, keyed=True, window=window)
    decoder.check()
    view = builder.read(TopicInput(step.topic_name, decoder, decoded_view(step.topic_name, decoder)))
    positions = {
        column: f"max_by({name}, struct(part, off))"
        for column, name in zip(RECORD_COLUMNS, (col.PARTITION, col.OFFSET), strict=True)
        if schema.find(column.name) is None
    }
    saved = builder.save_beside(build_table_of_topic(schema, view, step.timestamp_column, window, positions))
    builder.inputs = {}
    return TableRelation("", schema.key, (*schema.row, *positions), window), saved


def _without_positions(step: TableSourceStep | CollectionSource, what: str) -> NotYetSupported:
    return NotYetSupported(
        Feature.STEP,
        f"{step.TAG} of a query with ROWPARTITION or ROWOFFSET",
        f"a query that uses ROWPARTITION or ROWOFFSET of a table cannot read {what}",
        detail="Its rows come from the query that maintains it, not from a topic.",
    )


def _expires(step: WindowStoreSource) -> NotSupported:
    return NotSupported(
        f"a query that uses ROWPARTITION or ROWOFFSET of a table cannot read the windows of topic {step.topic_name}",
        detail="The query would read the topic's records, including those of expired windows.",
        hint="Leave ROWPARTITION and ROWOFFSET out.",
    )


def _store(builder: StageBuilder, step: TableSourceStep, table: TableRelation, latest: SavedRows) -> StoredTable:
    layout = replace(layout_of(table.key, table.value, table.window), group=0, ordered=None)
    state = builder.state(step, "Records", layout)
    rows, schema = builder.read(latest), rows_schema(layout)
    before = builder.read(StateLookup(state, SavedKeys(latest.stage), state_lookup_view(state, latest.stage), schema))
    changes = builder.save_beside(saved_table(changed_rows(table, rows, before)))
    columns = key_columns(table.key_types)
    columns += value_columns(c.type for c in table.value)
    names = ", ".join([*(c.name for c in columns), "ts", "present"])
    builder.add_stage(Fragment(f"SELECT {names} FROM {rows}", (*columns, TS, PRESENT)), Put(state))
    builder.inputs = {}
    return StoredTable(table, state, changes, schema)
