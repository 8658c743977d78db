"""Builds the steps that produce a table: one match arm per step.

A table is the changes of its keys in the tick. Inside a join, it is the rows of the `keys` that the join needs,
before and after the tick, whether they change or not.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from holdfast.errors import PlanError
from holdfast.names import ObjectName
from holdfast.runtime.expressions.parse import parse_schema
from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.plan.steps import (
    CollectionSource,
    FkTableTableJoin,
    Step,
    TableFilter,
    TableSelect,
    TableSelectKey,
    TableSource,
    TableSourceStep,
    TableSourceV1,
    TableStep,
    TableTableJoin,
    WindowedTableSource,
    WindowStoreSource,
)
from holdfast.runtime.plan.windows import WindowInfo, shape
from holdfast.runtime.program import (
    ObjectInput,
    Put,
    SavedGroups,
    SavedKeys,
    SavedRows,
    StateLookup,
    TableLookup,
    table_schema,
)
from holdfast.runtime.spark.builders.filter import build_table_filter
from holdfast.runtime.spark.builders.fk_join import FkJoin
from holdfast.runtime.spark.builders.join import build_table_table_join, changed_keys, rows_of_keys, stored_rows
from holdfast.runtime.spark.builders.select import build_table_select
from holdfast.runtime.spark.builders.select_key import build_table_select_key
from holdfast.runtime.spark.builders.source import build_table_source
from holdfast.runtime.spark.relation import TableRelation, saved_table
from holdfast.runtime.spark.stage_builder import StageBuilder, StoredTable, layout_of, unbuildable, window_of
from holdfast.runtime.spark.views import groups_view, lookup_view, object_view, state_view
from holdfast.runtime.store.port import Layout
from holdfast.runtime.store.schemas import rows_schema
from holdfast.types import Schema


def build_table_step(builder: StageBuilder, step: Step, keys: SavedRows | None = None) -> TableRelation:
    """The changes of a step that produces a table, or its rows of `keys`; any other step is refused."""
    if not isinstance(step, TableStep):
        raise unbuildable(step)
    match step:
        case TableSource() | TableSourceV1() | WindowedTableSource() | WindowStoreSource():
            return _source(builder, step, keys)
        case CollectionSource():
            return _collection_source(builder, step, keys)
        case TableFilter():
            return build_table_filter(step, build_table_step(builder, step.source, keys), builder.compiler)
        case TableSelect():
            return build_table_select(step, build_table_step(builder, step.source, keys), builder.compiler)
        case TableSelectKey():
            return build_table_select_key(step, build_table_step(builder, step.source, keys))
        case TableTableJoin():
            return _table_table_join(builder, step, keys)
        case FkTableTableJoin():
            return _fk_join(builder, step, keys)
        case _:
            assert_never(step)


# -- sources -----------------------------------------------------------------------------------------


def _source(builder: StageBuilder, step: TableSourceStep, keys: SavedRows | None) -> TableRelation:
    stored = builder.stored.get(step.properties.query_context)
    if stored is not None and keys is not None:
        return _look_up_stored(builder, stored, keys)
    if stored is not None:
        return replace(stored.table, sql=f"SELECT * FROM {builder.read(stored.changes)}")
    query, topic = builder.plan.query_id, step.topic_name
    name = builder.sources.object_of(topic, _named(step) or builder.plan.sources)
    if name is None:
        raise PlanError(f'query {query} reads topic "{topic}" as a table that does not exist')
    return _object(builder, name, parse_schema(step.source_schema), window_of(step), keys)


def _named(step: TableSourceStep) -> Sequence[ObjectName]:
    """The table that a step reads, if the step says which one of those over its topic."""
    name = value_of(step.source_name) if isinstance(step, WindowStoreSource) else None
    return () if name is None else (name,)


def _collection_source(builder: StageBuilder, step: CollectionSource, keys: SavedRows | None) -> TableRelation:
    if not builder.sources.is_maintained(step.source_name):
        raise PlanError(f'query {builder.plan.query_id} reads "{step.source_name}", which does not exist')
    window, schema = value_of(step.window_info), parse_schema(step.source_schema)
    return _object(builder, step.source_name, schema, None if window is None else shape(window), keys)


def _object(
    builder: StageBuilder, name: ObjectName, schema: Schema, window: WindowInfo | None, keys: SavedRows | None
) -> TableRelation:
    """The rows of an object that a query maintains."""
    layout = layout_of(schema.key, schema.row, window)
    changes = ObjectInput(name, object_view(name), table_schema(layout), drives=keys is None)
    if keys is None:
        return build_table_source(schema, builder.read(changes), window)
    view = lookup_view(builder.plan.query_id, keys.stage, name)
    found = builder.read(TableLookup(name, keys.stage, view, rows_schema(layout)))
    changed = builder.read(changes)
    return rows_of_keys(schema.key, schema.row, window, keys=keys.view, found=found, changed=changed)


def _look_up_stored(builder: StageBuilder, stored: StoredTable, keys: SavedRows) -> TableRelation:
    lookup = StateLookup(stored.state, SavedKeys(keys.stage), state_view(stored.state), stored.schema)
    found, changed = builder.read(lookup), builder.read(stored.changes)
    table = stored.table
    return rows_of_keys(table.key, table.value, table.window, keys=keys.view, found=found, changed=changed)


# -- joins -------------------------------------------------------------------------------------------


def _table_table_join(builder: StageBuilder, step: TableTableJoin, keys: SavedRows | None) -> TableRelation:
    """The first stage finds the keys that changed on any side; the next looks them up on all sides."""
    if keys is not None:
        left, right = (build_table_step(builder, source, keys) for source in (step.left_source, step.right_source))
        return build_table_table_join(step, left, right)
    leaves = _leaves(step)
    tables = [build_table_step(builder, leaf) for leaf in leaves]
    stored = [
        (leaf, _store(builder, leaf, table))
        for leaf, table in zip(leaves, tables, strict=True)
        if isinstance(leaf, FkTableTableJoin)
    ]
    changed = builder.save(changed_keys(tables))
    for leaf, found in stored:
        builder.read(found.changes)
        builder.add_stage(stored_rows(found.table, found.changes.view), Put(found.state))
        builder.stored[leaf.properties.query_context] = found
    return build_table_step(builder, step, changed)


def _leaves(step: Step) -> list[Step]:
    """The sources of a join of tables."""
    match step:
        case TableTableJoin():
            return [*_leaves(step.left_source), *_leaves(step.right_source)]
        case TableFilter() | TableSelect() | TableSelectKey():
            return _leaves(step.source)
        case _:
            return [step]


def _store(builder: StageBuilder, step: FkTableTableJoin, table: TableRelation) -> StoredTable:
    """Store the rows of a table that is not an object in a state, for a join to look up."""
    layout = Layout(table.key_types, tuple(c.type for c in table.value))
    state = builder.state(step, "Rows", layout)
    return StoredTable(table, state, builder.save_beside(saved_table(table)), rows_schema(layout))


def _fk_join(builder: StageBuilder, step: FkTableTableJoin, keys: SavedRows | None) -> TableRelation:
    """The first stages save the changes of both sides; the next looks up the left rows that reference changed right
    rows, and the right rows that changed left rows reference."""
    if keys is not None:
        stored = builder.stored.get(step.properties.query_context)
        if stored is None:
            raise unbuildable(step)
        return _look_up_stored(builder, stored, keys)
    left, right = (build_table_step(builder, source) for source in (step.left_source, step.right_source))
    join = FkJoin(step, left, right, builder.compiler)
    state = builder.state(step, "Named", join.layout)
    changes, changed_right = builder.save_beside(join.changes()), builder.save_beside(join.changed_right())
    referenced = builder.save(join.referenced())
    builder.read(changes)
    builder.add_stage(join.puts(changes.view), Put(state))
    builder.read(changed_right)
    by_reference = StateLookup(state, SavedGroups(changed_right.stage), groups_view(state), rows_schema(join.layout))
    referring = builder.read(by_reference)
    found = build_table_step(builder, step.right_source, referenced)
    builder.repeated_deletes = join.repeated_deletes(changes.view, found)
    return join.result(changes.view, referring, found)
