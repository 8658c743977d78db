from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.config import load
from holdfast.coordinator.intake import Intake, as_ends, as_moved, bounded, by_topic, in_step, ranges_by_topic
from holdfast.errors import KafkaError
from holdfast.kafka.consumer import Fetched
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


class Scripted:
    """A reader whose polls are given: what it fetched, or an error; it remembers where it was put."""

    def __init__(self, *polls: Fetched | Exception, backlog: Exception | None = None) -> None:
        self.polls, self.backlog_error = list(polls), backlog
        self.assigned: list[dict] = []
        self.sought: list[dict] = []

    def assign(self, positions):
        self.assigned.append(dict(positions))

    def seek(self, positions):
        self.sought.append(dict(positions))

    def poll(self, most, timeout):
        del most, timeout
        found = self.polls.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def backlog(self):
        if self.backlog_error is not None:
            raise self.backlog_error
        return {}


def fetched(*offsets: int) -> Fetched:
    rows = [
        {"topic": A, "partition": 0, "offset": o, "timestamp": 0, "key": None, "value": b"", "headers": []}
        for o in offsets
    ]
    return Fetched(pa.Table.from_pylist(rows, schema=RECORDS), {(A, 0): offsets[-1] + 1})


def intake(reader: Scripted, *, small: int = 2) -> Intake:
    return Intake(replace(load({}, environment={}), small_tick_records=small), reader)


def test_following_the_same_partitions_again_moves_no_reader():
    """The remap is behind what has been taken and is not committed yet: going back to it would read that twice."""
    reader = Scripted(fetched(5))
    taking = intake(reader)
    taking.follow({(A, 0): 5})
    taking.take(0)
    taking.follow({(A, 0): 5})
    assert reader.assigned == [{(A, 0): 5}]
    taking.follow({(A, 0): 5, (B, 0): 3})
    assert reader.assigned[1:] == [{(A, 0): 6, (B, 0): 3}]
    taking.follow({(B, 0): 3})
    assert reader.assigned[2:] == [{(B, 0): 3}]


@pytest.mark.parametrize(
    "reader",
    [Scripted(KafkaError("away"), fetched(5)), Scripted(fetched(5, 6), fetched(5), backlog=KafkaError("away"))],
    ids=["the poll fails", "it fails after the records have come"],
)
def test_what_came_with_a_failure_comes_again(reader):
    taking = intake(reader)
    taking.follow({(A, 0): 5})
    with pytest.raises(KafkaError, match="away"):
        taking.take(0)
    assert reader.sought == [{(A, 0): 5}]
    again = taking.take(0)
    assert again.moved == (Moved(A, 0, 6),)


def test_ends_in_step_stop_where_the_partition_that_is_behind_does():
    a, b, c = ((TopicName(name), 0) for name in "abc")
    starts, until = {a: 0, b: 5, c: 1}, {a: 10, b: 20, c: 9}
    asked = []

    def offsets_at(time: int) -> dict:
        asked.append(time)
        # The first has records out of order, the third has none that late.
        return {a: 3, b: 7}

    assert in_step(starts, until, {}, offsets_at) == until
    assert asked == []
    assert in_step(starts, until, {a: 100, b: 900}, offsets_at) == {a: 10, b: 7, c: 9}
    assert in_step(starts, until, {a: 900, b: 100}, offsets_at) == {a: 3, b: 20, c: 9}
    assert asked == [100, 100]
    assert in_step({a: 4, b: 5, c: 1}, until, {b: 1}, offsets_at) == {a: 4, b: 20, c: 9}
