"""The reads of topics by push queries: how many at a time, how long each, and what is said of it."""

import pytest

from holdfast.kafka.port import TopicSilent
from holdfast.names import TopicName
from holdfast.serving.push.topic_reads import TopicReads
from holdfast.wall_clock import ManualClock

SLOW, OTHER = TopicName("slow"), TopicName("other")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def woken() -> list[int]:
    return []


@pytest.fixture
def reads(clock: ManualClock, woken: list[int]) -> TopicReads:
    return TopicReads(clock, lambda: woken.append(1))


def read(reads: TopicReads, error: Exception | None = None) -> bool:
    with reads.turn(SLOW) as may_read:
        if may_read and error is not None:
            raise error
    return may_read


def test_two_read_a_topic_and_a_third_is_woken_when_one_ends(reads: TopicReads, woken: list[int]) -> None:
    with reads.turn(SLOW) as first:
        with reads.turn(SLOW) as second:
            assert (first, second) == (True, True)
            assert not reads.may_start(SLOW)
            assert not read(reads)
            assert reads.may_start(OTHER)
            assert woken == []
        assert woken == [1]
        assert read(reads)
    assert woken == [1], "nobody waits"


def test_a_silent_topic_is_read_by_one_after_pauses_and_for_longer(reads: TopicReads, clock: ManualClock) -> None:
    timeouts = []
    for _ in range(6):
        timeouts.append(reads.timeout(SLOW))
        assert read(reads, TopicSilent(SLOW, detail="No record came."))
        assert not read(reads)
        assert reads.seconds_to_wait(SLOW) == 1
        clock.advance(1)
    assert timeouts == [2, 4, 8, 16, 30, 30]
    assert "No record came." in str(reads.notice)
    with reads.turn(SLOW):
        assert not read(reads)
    assert reads.notice is None
    assert reads.timeout(SLOW) == 2


def test_a_topic_that_nobody_reads_any_more_is_not_reported_for_long(reads: TopicReads, clock: ManualClock) -> None:
    read(reads, TopicSilent(SLOW, detail="No record came."))
    clock.advance(90)
    assert reads.notice is None


def test_other_errors_end_a_turn(reads: TopicReads) -> None:
    with pytest.raises(KeyError):
        read(reads, KeyError())
    with reads.turn(SLOW), reads.turn(SLOW) as second:
        assert second
