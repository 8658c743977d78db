"""The lease: its law over a topic in memory with a clock that the test moves, and its thread over a broker."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from holdfast.config import Settings, load
from holdfast.errors import KafkaError, ServiceTaken
from holdfast.kafka.lease import LeaseEntry, LeaseIntervals, TopicLease, fold
from holdfast.kafka.librdkafka.cluster import KafkaCluster
from holdfast.kafka.memory.broker import MemoryBroker
from holdfast.kafka.memory.consumer import MemoryRanges
from holdfast.kafka.memory.topics import MemoryTopics
from holdfast.names import TopicName
from holdfast.wall_clock import ManualClock

INTERVALS = LeaseIntervals()
AFTER = INTERVALS.duration + 1
"""Seconds after which a lease has run out."""


class World:
    """Servers that want one lease, on a clock that moves while one of them waits; `alive` are those that then beat."""

    def __init__(self) -> None:
        self.clock = Moving(self)
        self.broker = MemoryBroker(self.clock)
        self.alive: list[TopicLease] = []
        self.lost: list[str] = []
        self._settings = load({}, environment={})

    def write(self, topic: TopicName, value: bytes, key: bytes) -> tuple[int, int]:
        with self.broker.request():
            entry = self.broker.append(topic, value, key)
            return entry.offset, entry.timestamp

    def take(self, owner: str) -> TopicLease:
        """A server that takes the lease and renews it from now on."""
        topics, ranges = MemoryTopics(self.broker), MemoryRanges(self.broker)
        lease = TopicLease(
            self._settings, topics, ranges, self, on_lost=lambda: self.lost.append(owner), clock=self.clock
        )
        lease.take(owner)
        self.alive.append(lease)
        return lease

    def let_pass(self, seconds: float) -> None:
        """Let time pass, in which those that are alive beat."""
        for _ in range(round(seconds / INTERVALS.beat)):
            self.clock.sleep(INTERVALS.beat)


class Moving(ManualClock):
    """A clock; while someone sleeps, the others beat."""

    def __init__(self, world: World) -> None:
        super().__init__(now_ms=1_000_000)
        self._world = world

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        for lease in self._world.alive:
            lease.beat()


@pytest.fixture
def world() -> World:
    return World()


def test_beats_keep_the_lease_and_without_them_it_runs_out(world: World) -> None:
    world.take("store-1")
    world.let_pass(AFTER)
    with pytest.raises(ServiceTaken):
        world.take("store-2")
    world.alive.clear()
    world.clock.advance(AFTER)
    world.take("store-2")
    with pytest.raises(ServiceTaken):
        world.take("store-1")


def test_the_lease_of_one_that_was_killed_is_waited_for(world: World) -> None:
    world.take("store-1")
    world.alive.clear()
    started = world.clock.monotonic()
    world.take("store-2")
    assert INTERVALS.duration < world.clock.monotonic() - started < AFTER
    with pytest.raises(ServiceTaken):
        world.take("store-3")


def test_a_holder_that_slept_too_long_learns_that_it_lost_the_lease(world: World) -> None:
    slept = world.take("store-1")
    world.alive.clear()
    world.clock.advance(AFTER)
    world.take("store-2")
    assert not slept.beat()
    assert world.lost == ["store-1"]


@pytest.mark.parametrize("gone_again", [False, True], ids=["another runs", "another ran"])
def test_a_holder_that_was_cut_off_learns_that_another_took_over(world: World, gone_again: bool) -> None:
    holder = world.take("store-1")
    with world.broker.suspended():
        assert holder.beat()
        assert "cannot be written" in str(holder.problem)
        world.alive.clear()
        world.clock.advance(AFTER)
    other = world.take("store-2")
    if gone_again:
        other.release()
    assert world.lost == []
    assert not holder.beat()
    assert world.lost == ["store-1"]


def test_a_holder_that_was_cut_off_keeps_the_lease_that_nobody_took(world: World) -> None:
    holder = world.take("store-1")
    with world.broker.suspended():
        world.let_pass(3 * AFTER)
        assert "cannot be written" in str(holder.problem)
    assert holder.beat()
    assert holder.problem is None
    with pytest.raises(ServiceTaken):
        world.take("store-2")
    assert world.lost == []


def test_an_error_nobody_expected_is_shown_until_the_lease_is_renewed() -> None:
    world, broken = World(), threading.Event()

    class Writer:
        def write(self, topic: TopicName, value: bytes, key: bytes) -> tuple[int, int]:
            if broken.is_set():
                raise RuntimeError("nobody expected this")
            return world.write(topic, value, key)

    topics, ranges = MemoryTopics(world.broker), MemoryRanges(world.broker)
    lease = TopicLease(load({}, environment={}), topics, ranges, Writer(), intervals=LeaseIntervals(beat=0.02))
    lease.acquire("store-1")
    broken.set()
    wait_until(lambda: lease.problem == "RuntimeError: nobody expected this")
    broken.clear()
    wait_until(lambda: lease.problem is None)
    lease.release()


# -- on a broker


BRIEF = LeaseIntervals(duration=3.0, beat=0.2, write=1.0)
NewLease = Callable[..., TopicLease]


@pytest.fixture
def new_lease(settings: Settings) -> Iterator[NewLease]:
    made: list[TopicLease] = []
    cluster = KafkaCluster(settings, BRIEF)

    def make(on_lost: Callable[[], None] = lambda: None) -> TopicLease:
        made.append(cluster.lease(on_lost=on_lost))
        return made[-1]

    yield make
    for lease in made:
        lease.release()
    cluster.close()


def test_the_error_for_a_second_owner_names_the_first(new_lease: NewLease) -> None:
    new_lease().acquire("store-1")
    with pytest.raises(ServiceTaken) as raised:
        new_lease().acquire("store-2")
    assert f"process {os.getpid()} on host" in raised.value.detail
    assert "--service-id" in raised.value.hint


def test_the_same_owner_takes_over_at_once(new_lease: NewLease) -> None:
    new_lease().acquire("store-1")
    new_lease().acquire("store-1")
    with pytest.raises(ServiceTaken):
        new_lease().acquire("store-2")


def test_a_released_lease_is_free_at_once(new_lease: NewLease) -> None:
    first = new_lease()
    first.acquire("store-1")
    first.release()
    first.release()
    new_lease().acquire("store-2")
    with pytest.raises(ServiceTaken):
        new_lease().acquire("store-1")


def wait_until(found: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not found():
        assert time.monotonic() < deadline, "not within 60 s"
        time.sleep(0.05)


def acquire(lease: TopicLease, owner: str) -> None:
    """Also soon after Kafka was away, when it may not yet have a leader of each partition."""

    def acquired() -> bool:
        with suppress(KafkaError):
            lease.acquire(owner)
            return True
        return False

    wait_until(acquired)


def test_a_holder_keeps_its_lease_while_kafka_is_away(new_lease: NewLease, broker) -> None:
    lost = threading.Event()
    holder = new_lease(on_lost=lost.set)
    holder.acquire("store-1")
    with broker.suspended():
        wait_until(lambda: holder.problem)
        time.sleep(BRIEF.duration)
        assert "cannot be written" in holder.problem
    wait_until(lambda: holder.problem is None)
    assert not lost.is_set()
    with pytest.raises(ServiceTaken):
        acquire(new_lease(), "store-2")


# -- the law


def entry(kind: str, owner: str, at: int) -> LeaseEntry:
    return LeaseEntry(kind, owner, "host", 1, 0, offset=at, at=at)


@pytest.mark.parametrize(
    ("entries", "holder"),
    [
        ([], None),
        ([("claim", "a", 0)], "a"),
        ([("claim", "a", 0), ("claim", "b", 1)], "a"),
        ([("claim", "a", 0), ("claim", "b", 9_000), ("beat", "a", 9_500), ("claim", "b", 15_000)], "a"),
        ([("claim", "a", 0), ("claim", "b", 10_001)], "b"),
        ([("claim", "a", 0), ("claim", "b", 10_001), ("beat", "a", 10_002)], "b"),
        ([("claim", "a", 0), ("release", "b", 1), ("claim", "c", 2)], "a"),
        ([("claim", "a", 0), ("release", "a", 1), ("claim", "c", 2)], "c"),
    ],
)
def test_who_holds_the_lease(entries, holder):
    found = fold((entry(*each) for each in entries), LeaseIntervals().duration_ms)
    assert (found.owner if found else None) == holder
