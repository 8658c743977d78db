"""Tables that a query reads with the place of their records.

A table does not keep where its rows' records are. A query that wants to know reads the table's topic itself, and keeps
the last record of each key in a state of its own.
"""

from holdfast.errors import Feature, NotYetSupported
from holdfast.names import StateId
from holdfast.runtime.expressions.parse import parse_schema
from holdfast.runtime.plan.steps import CollectionSource, walk
from holdfast.runtime.program import Held, Put, Remembered, TopicInput
from holdfast.runtime.serdes.decoding import Decoder
from holdfast.runtime.spark.builder import Builder, Kept, layout_of, window_of
from holdfast.runtime.spark.builders.join import changed_rows
from holdfast.runtime.spark.builders.source import build_table_of_topic
from holdfast.runtime.spark.fragment import PRESENT, TS, Fragment, column
from holdfast.runtime.spark.record_columns import RECORD_COLUMNS, TableSourceStep, reads_records, table_sources
from holdfast.runtime.spark.relation import TableRelation, held_table
from holdfast.runtime.spark.views import decoded_view, remembered_view
from holdfast.runtime.store.schemas import rows_schema


def keep_records(builder: Builder) -> None:
    """Have the query keep its tables, all of them, where it reads the place of a record of one.

    One that is read from its topic and one from the store would not be at the same place.
    """
    top = builder.plan.physical_plan
    if not reads_records(top):
        return
    for step in walk(top):
        if isinstance(step, CollectionSource):
            raise _unplaced(step, step.source_name)
    rows = [(step, *_latest(builder, step)) for step in table_sources(top)]
    builder.round += 1
    for step, table, held in rows:
        builder.kept[step.properties.query_context] = _kept(builder, step, table, held)
    builder.round += 1


def _latest(builder: Builder, step: TableSourceStep) -> tuple[TableRelation, Held]:
    """The last record of each key of a table's topic, with its place."""
    if not builder.sources.is_over_topic(step.topic_name, builder.plan.sources):
        raise _unplaced(step, f"topic {step.topic_name}")
    schema, window = parse_schema(step.source_schema), window_of(step)
    decoder = Decoder(schema, step.formats, keyed=True, window=window)
    decoder.check()
    view = builder.reads(TopicInput(step.topic_name, decoder, decoded_view(step.topic_name, decoder)))
    places = tuple(column for column in RECORD_COLUMNS if schema.find(column.name) is None)
    held = builder.hold_beside(build_table_of_topic(schema, view, step.timestamp_column, window, places))
    builder.inputs = {}
    return TableRelation("", schema.key, (*schema.row, *places), window), held


def _unplaced(step: TableSourceStep | CollectionSource, what: str) -> NotYetSupported:
    return NotYetSupported(
        Feature.STEP,
        f"{step.TAG} of a query with ROWPARTITION or ROWOFFSET",
        f"{what} cannot be read beside the place of a table's records",
        detail="A query makes it, and its rows are read from that query, not from a topic.",
    )


def _kept(builder: Builder, step: TableSourceStep, table: TableRelation, held: Held) -> Kept:
    layout = layout_of(table.key, table.value, table.window)
    state = StateId(f"{builder.plan.query_id}/{step.properties.query_context}/Records")
    builder.states.append((state, layout))
    here, schema = builder.reads(held), rows_schema(layout)
    before = builder.reads(Remembered(state, held.stage, remembered_view(state, held.stage), schema))
    changes = builder.hold_beside(held_table(changed_rows(table, here, before)))
    columns = [column(f"k{i}", type_) for i, type_ in enumerate(table.key_types)]
    columns += [column(f"c{i}", c.type) for i, c in enumerate(table.value)]
    names = ", ".join([*(c.name for c in columns), "ts", "present"])
    builder.add_stage(Fragment(f"SELECT {names} FROM {here}", (*columns, TS, PRESENT)), Put(state))
    builder.inputs = {}
    return Kept(table, state, changes, schema)
