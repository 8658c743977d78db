import pyarrow as pa
import pytest

from holdfast.config import load
from holdfast.coordinator.backfill.deltas import as_delta
from holdfast.coordinator.backfill.slices import BackfillSlices, as_stream
from holdfast.coordinator.read_limits import ReadLimits
from holdfast.names import CollectionId, ObjectName, QueryId, StateId, TopicName
from holdfast.runtime.expressions.physical import arrow_type
from holdfast.runtime.fragment import Fragment
from holdfast.runtime.program import Action, Append, MergeInto, Program, Put, Stage, Upsert
from holdfast.runtime.store import schemas
from holdfast.runtime.store.duckdb import open_store
from holdfast.runtime.store.port import Layout, Merge
from holdfast.types import HEADERS, Scalar, Schema

LAYOUT = Layout((Scalar.STRING,), (Scalar.BIGINT, Scalar.STRING))
QUERY = QueryId("Q")


def rows(*found: tuple) -> pa.Table:
    names = schemas.rows_schema(LAYOUT).names
    return pa.Table.from_pylist(
        [dict(zip(names, row, strict=True)) for row in found], schema=schemas.rows_schema(LAYOUT)
    )


def program(action: Action) -> Program:
    return Program(
        query=QUERY,
        object=ObjectName("O"),
        schema=Schema(()),
        stages=(Stage((), Fragment("SELECT 1", ()), action),),
        sink=None,
        collection=None,
        layout=LAYOUT,
        states=(),
    )


STATE = StateId("S")


@pytest.mark.parametrize(
    ("actions", "records"),
    [
        ([MergeInto(STATE, Merge((), ()))], 8),
        ([Append()], 2),
        ([Upsert(CollectionId("T"))], 2),
        ([Put(STATE)], 2),
        ([MergeInto(STATE, Merge((), ())), Append()], 2),
    ],
)
def test_a_slice_is_smaller_where_its_rows_come_back(tmp_path, actions: list[Action], records: int):
    store, topic = open_store(tmp_path), (TopicName("t"), 0)
    settings = load({"data_dir": str(tmp_path), "max_records_per_tick": 8})
    limits = ReadLimits(settings, ranges=None)
    slices = BackfillSlices(store, None, None, limits, None, history_start=lambda _name: None)
    together = {QueryId(f"Q{i}"): program(action) for i, action in enumerate(actions)}
    assert slices._until({topic: 0}, {topic: 100}, together) == {topic: records}
    store.close()


def test_rows_of_a_table_are_the_changes_that_make_them(tmp_path):
    """The delta is the one that a tick which inserts the rows would give."""
    pages = [rows(("a", 1, "x", 5)), rows(("b", None, None, 6))]
    store = open_store(tmp_path)
    table = CollectionId("T")
    store.create_collection(table, LAYOUT, window_ms=1_000)
    stage = store.stage()
    whole = pa.concat_tables(pages)
    stage.upsert(QUERY, table, whole.append_column("present", pa.array([True, True])))
    assert sorted(as_delta(pages, LAYOUT).to_pylist(), key=str) == sorted(stage.delta(table).to_pylist(), key=str)
    assert as_delta(pages, LAYOUT).schema.names == stage.delta(table).schema.names
    stage.abandon()
    store.close()


def test_rows_of_an_outbox_are_a_stream_in_their_order():
    headers, type_ = [[{"f0": "h", "f1": b"1"}], None], arrow_type(HEADERS)
    first = rows(("a", 1, "x", 5), ("b", 2, "y", 4)).append_column("present", pa.array([True, True]))
    first = first.append_column("k1", pa.array(headers, type_))
    second = rows(("a", 3, "z", 3)).append_column("present", pa.array([False]))
    second = second.append_column("k1", pa.array([None], type_))
    stream = as_stream([first, second])
    assert stream.column("hdr").to_pylist() == [*headers, None]
    assert stream.column("c0").to_pylist() == [1, 2, 3]
    assert stream.column("off").to_pylist() == [0, 1, 2]
    assert stream.column("part").to_pylist() == [0, 0, 0]
    assert stream.column("present").to_pylist() == [True, True, False]
