import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.config import load
from holdfast.coordinator.read_limits import SAMPLE, UNMEASURED, ReadLimits, aligned, bounded
from holdfast.kafka.records import RECORDS
from holdfast.names import TopicName

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


class Topics:
    """A reader of records that are as long as they are said to be, by partition and offset."""

    def __init__(self, length) -> None:
        self.length, self.read_offsets = length, 0

    def read(self, ranges, *, timeout):
        del timeout
        rows = [
            {"topic": p[0], "partition": p[1], "offset": at, "key": None, "value": b"x" * self.length(p, at)}
            for p, (start, end) in ranges.items()
            for at in range(start, end)
        ]
        self.read_offsets += len(rows)
        return pa.Table.from_pylist([{"timestamp": 0, "headers": [], **row} for row in rows], schema=RECORDS)


def limits(length, *, records: int = 1_000_000, bytes_: int = 1_000_000) -> ReadLimits:
    settings = load({"max_records_per_tick": records, "max_bytes_per_tick": bytes_}, environment={})
    return ReadLimits(settings, Topics(length))


def test_a_slice_of_short_records_is_cut_by_their_number():
    cut = limits(lambda _p, _at: 1, records=8_000).cut({(A, 0): 5}, {(A, 0): 90_000}, returned=False)
    assert cut == {(A, 0): 8_005}


def test_a_slice_of_long_records_has_fewer_of_them():
    made = limits(lambda _p, _at: 100)
    assert made.cut({(A, 0): 5}, {(A, 0): 90_000}, returned=False) == {(A, 0): 10_005}
    assert made.cut({(A, 0): 5}, {(A, 0): 90_000}, returned=True) == {(A, 0): 2_505}
    assert made.cut({(A, 0): 5}, {(A, 0): 9_000}, returned=False) == {(A, 0): 9_000}


@pytest.mark.parametrize("heavy", [range(SAMPLE), range(19_990, 20_000)], ids=["at its start", "at its end"])
def test_records_that_are_long_at_one_end_of_a_range_make_it_shorter(heavy):
    made = limits(lambda _p, at: 1_000 if at in heavy else 1)
    assert made.cut({(A, 0): 0}, {(A, 0): 20_000}, returned=False)[A, 0] < 20_000


def test_partitions_are_weighed_apart():
    made = limits(lambda p, _at: 900 if p == (A, 0) else 100)
    cut = made.cut({(A, 0): 0, (A, 1): 0}, {(A, 0): 50_000, (A, 1): 50_000}, returned=False)
    assert cut == {(A, 0): 1_000, (A, 1): 1_000}


def test_few_records_are_read_however_long_they_are_and_not_weighed():
    made = limits(lambda _p, _at: 1_000_000)
    assert made.cut({(A, 0): 0}, {(A, 0): UNMEASURED}, returned=True) == {(A, 0): UNMEASURED}
    assert made._ranges.read_offsets == 0
    assert made.cut({(A, 0): 0}, {(A, 0): 1_000}, returned=True) == {(A, 0): UNMEASURED}


def test_offsets_without_records_weigh_nothing():
    made = limits(lambda _p, _at: 0)
    made._ranges.read = lambda _ranges, **_options: RECORDS.empty_table()
    assert made.cut({(A, 0): 0}, {(A, 0): 5_000}, returned=False) == {(A, 0): 5_000}


def test_aligned_ends_stop_where_the_partition_that_is_behind_does():
    a, b, c = ((TopicName(name), 0) for name in "abc")
    starts, until = {a: 0, b: 5, c: 1}, {a: 10, b: 20, c: 9}
    asked = []

    def offsets_at(time: int) -> dict:
        asked.append(time)
        # The first has records out of order, the third has none that late.
        return {a: 3, b: 7}

    assert aligned(starts, until, {}, offsets_at) == until
    assert asked == []
    assert aligned(starts, until, {a: 100, b: 900}, offsets_at) == {a: 10, b: 7, c: 9}
    assert aligned(starts, until, {a: 900, b: 100}, offsets_at) == {a: 3, b: 20, c: 9}
    assert asked == [100, 100]
    assert aligned({a: 4, b: 5, c: 1}, until, {b: 1}, offsets_at) == {a: 4, b: 20, c: 9}
