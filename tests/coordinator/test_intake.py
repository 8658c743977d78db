from dataclasses import replace

import pyarrow as pa
import pytest

from holdfast.config import load
from holdfast.coordinator.intake import Intake, as_end_offsets, as_ends, by_topic, ranges_by_topic
from holdfast.coordinator.read_limits import ReadLimits
from holdfast.errors import KafkaError
from holdfast.kafka.port import Fetched
from holdfast.kafka.records import RECORDS
from holdfast.names import TopicName
from holdfast.runtime.spark.engine import RECORDS as RAW
from holdfast.runtime.spark.engine import OffsetRange, TopicRange
from holdfast.runtime.store.port import EndOffset

A, B = TopicName("a"), TopicName("b")


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
    assert as_ends(as_end_offsets(ends)) == ends
    assert as_end_offsets(ends) == (EndOffset(A, 0, 5), EndOffset(B, 1, 0))


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
    settings = replace(load({}, environment={}), small_tick_records=small)
    return Intake(reader, ReadLimits(settings, ranges=None))


def test_following_the_same_partitions_again_moves_no_reader():
    """The remap is behind what has been taken and is not committed yet: going back to it would read that twice."""
    reader = Scripted(fetched(5))
    taking = intake(reader)
    taking.follow({(A, 0): 5})
    taking.choose(taking.poll(0))
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
        taking.choose(taking.poll(0))
    assert reader.sought == [{(A, 0): 5}]
    again = taking.choose(taking.poll(0))
    assert again.ends == (EndOffset(A, 0, 6),)
