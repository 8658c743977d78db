import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from holdfast.coordinator.intake import as_ends, as_moved, bounded, by_topic, ranges_by_topic
from holdfast.kafka.records import RECORDS
from holdfast.names import TopicName
from holdfast.runtime.spark.engine import RECORDS as RAW
from holdfast.runtime.spark.engine import OffsetRange, TopicRange
from holdfast.runtime.store.port import Moved

A, B = TopicName("a"), TopicName("b")
partitions = st.tuples(st.sampled_from([A, B]), st.integers(0, 3))
stretches = st.dictionaries(partitions, st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)), max_size=6)


@given(stretches, st.integers(1, 20_000))
def test_a_bounded_tick_is_within_its_limits_and_moves_every_partition(found, most):
    starts = {p: start for p, (start, _) in found.items()}
    ends = {p: start + behind for p, (start, behind) in found.items()}
    until = bounded(starts, ends, most)
    assert until.keys() == starts.keys()
    assert all(starts[p] <= end <= ends[p] for p, end in until.items())
    assert all(end > starts[p] for p, end in until.items() if ends[p] > starts[p])
    taken = sum(end - starts[p] for p, end in until.items())
    # Each share is rounded up, so that none is empty.
    assert taken < most + max(1, len(found))
    if sum(behind for _, behind in found.values()) <= most:
        assert until == ends


def test_shares_are_by_how_far_a_partition_is_behind():
    assert bounded({(A, 0): 0, (A, 1): 100}, {(A, 0): 900, (A, 1): 200}, 100) == {(A, 0): 90, (A, 1): 110}


def test_a_partition_whose_end_is_not_known_or_before_its_start_does_not_move():
    assert bounded({(A, 0): 5, (A, 1): 7}, {(A, 0): 3}, 10) == {(A, 0): 5}


def test_ranges_are_grouped_by_topic_and_empty_ones_left_out():
    ranges = {(A, 0): (0, 5), (A, 1): (3, 3), (B, 0): (2, 3), (A, 2): (1, 2)}
    assert ranges_by_topic(ranges) == {
        A: TopicRange(A, (OffsetRange(0, 0, 5), OffsetRange(2, 1, 2))),
        B: TopicRange(B, (OffsetRange(0, 2, 3),)),
    }


def test_records_are_split_by_topic_under_the_names_of_the_engine():
    rows = [
        {"topic": t, "partition": 1, "offset": o, "timestamp": 9, "key": b"k", "value": None, "headers": []}
        for t, o in ((A, 0), (B, 0), (A, 1))
    ]
    found = by_topic(pa.Table.from_pylist(rows, schema=RECORDS))
    assert {topic: table.column("off").to_pylist() for topic, table in found.items()} == {A: [0, 1], B: [0]}
    assert all(table.schema.names == RAW.names for table in found.values())
    assert by_topic(RECORDS.empty_table()) == {}


def test_ends_and_moves_are_the_same_in_two_forms():
    ends = {(A, 0): 5, (B, 1): 0}
    assert as_ends(as_moved(ends)) == ends
    assert as_moved(ends) == (Moved(A, 0, 5), Moved(B, 1, 0))
