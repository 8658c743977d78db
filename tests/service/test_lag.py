"""The lags of queries while Kafka does not answer."""

from collections.abc import Iterable
from threading import Event
from time import monotonic
from typing import Any

import pytest

from holdfast.catalog.snapshot import EMPTY
from holdfast.errors import KafkaError
from holdfast.kafka.memory.broker import MemoryBroker
from holdfast.kafka.memory.topics import MemoryTopics
from holdfast.kafka.port import Described
from holdfast.names import QueryId, TopicName
from holdfast.runtime.store.memory.store import MemoryStore
from holdfast.service import lag
from holdfast.service.lag import Lags
from holdfast.wall_clock import ManualClock


class Topics(MemoryTopics):
    """Topics of a Kafka that does not answer until `back` is set, and then fails if it `fails`."""

    def __init__(self) -> None:
        super().__init__(MemoryBroker())
        self.back, self.asked, self.fails = Event(), 0, False
        self.back.set()

    def describe_each(self, names: Iterable[TopicName]) -> Described:
        self.asked += 1
        self.back.wait(30)
        if self.fails:
            raise KafkaError("Kafka cannot be reached")
        return super().describe_each(names)


@pytest.fixture
def topics() -> Topics:
    return Topics()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_800_000_000_000)


@pytest.fixture
def lags(topics: Topics, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Lags:
    monkeypatch.setattr(lag, "WAIT_SECONDS", 0.2)
    made = Lags(MemoryStore(), topics, lambda: EMPTY, clock)
    read: Any = made._read
    monkeypatch.setattr(made, "_read", lambda: {**read(), QueryId("Q"): ()})
    return made


def test_the_last_lags_are_returned_while_kafka_does_not_answer(lags: Lags, topics: Topics, clock: ManualClock) -> None:
    assert lags.lags() == {"Q": ()}
    topics.back.clear()
    clock.advance(5.0)
    started_at = monotonic()
    assert [lags.lags() for _ in range(3)] == [{"Q": ()}] * 3
    assert monotonic() - started_at < 2.0
    assert topics.asked == 2, "one request for all"
    topics.back.set()


def test_kafka_is_not_asked_again_soon_after_a_failure(lags: Lags, topics: Topics, clock: ManualClock) -> None:
    assert lags.lags() == {"Q": ()}
    topics.fails = True
    clock.advance(2.0)
    assert [lags.lags() for _ in range(3)] == [{"Q": ()}] * 3
    assert topics.asked == 2
    topics.fails = False
    clock.advance(lag.FAILED_SECONDS + 1)
    lags.lags()
    assert topics.asked == 3
