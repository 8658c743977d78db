import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from holdfast.errors import KafkaError, ServiceTaken
from holdfast.kafka import lease as leases
from holdfast.kafka.lease import Entry, Lease, fold


@pytest.fixture
def new_lease(settings, admin, ranges):
    made = []

    def make(**more) -> Lease:
        made.append(Lease(settings, admin, ranges, **more))
        return made[-1]

    yield make
    for lease in made:
        lease.release()


def test_a_second_owner_is_told_who_has_it(new_lease):
    new_lease().acquire("store-1")
    with pytest.raises(ServiceTaken) as raised:
        new_lease().acquire("store-2")
    assert f"process {os.getpid()} on host" in raised.value.detail
    assert "--service-id" in raised.value.hint


def test_the_same_owner_takes_over_at_once(new_lease):
    new_lease().acquire("store-1")
    new_lease().acquire("store-1")
    with pytest.raises(ServiceTaken):
        new_lease().acquire("store-2")


def test_a_released_lease_is_free_at_once(new_lease):
    first = new_lease()
    first.acquire("store-1")
    first.release()
    first.release()
    new_lease().acquire("store-2")
    with pytest.raises(ServiceTaken):
        new_lease().acquire("store-1")


def test_beats_keep_the_lease_and_without_them_it_runs_out(new_lease, monkeypatch):
    monkeypatch.setattr(leases, "DURATION_MS", 1000)
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.2)
    first = new_lease()
    first.acquire("store-1")
    time.sleep(1.5)
    with pytest.raises(ServiceTaken):
        new_lease().acquire("store-2")
    first._stop.set()
    time.sleep(1.5)
    new_lease().acquire("store-2")
    with pytest.raises(ServiceTaken):
        new_lease().acquire("store-1")


def test_the_lease_of_one_that_was_killed_is_waited_for(new_lease, monkeypatch):
    monkeypatch.setattr(leases, "DURATION_MS", 1000)
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.2)
    first, second = new_lease(), new_lease()
    first.acquire("store-1")
    first._stop.set()
    second.acquire("store-2")
    with pytest.raises(ServiceTaken):
        new_lease().acquire("store-3")


def test_a_holder_that_slept_too_long_learns_that_it_lost_the_lease(new_lease, monkeypatch):
    monkeypatch.setattr(leases, "DURATION_MS", 500)
    monkeypatch.setattr(leases, "BEAT_SECONDS", 1.2)
    lost = threading.Event()
    new_lease(on_lost=lost.set).acquire("store-1")
    time.sleep(0.8)
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.1)
    new_lease().acquire("store-2")
    assert lost.wait(5)


@pytest.fixture
def brief(monkeypatch):
    """Leases that run out within three seconds, and are given up as unwritable within one."""
    monkeypatch.setattr(leases, "DURATION_MS", 3000)
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.2)
    monkeypatch.setattr(leases, "WRITE_MS", 1000)


def wait_until(found: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not found():
        assert time.monotonic() < deadline, "not within 60 s"
        time.sleep(0.05)


def acquire(lease: Lease, owner: str) -> None:
    """Also soon after Kafka was away, when it may not yet have a leader of each partition."""

    def acquired() -> bool:
        with suppress(KafkaError):
            lease.acquire(owner)
            return True
        return False

    wait_until(acquired)


@pytest.mark.usefixtures("brief")
def test_a_holder_keeps_its_lease_while_kafka_is_away(new_lease, broker):
    lost = threading.Event()
    holder = new_lease(on_lost=lost.set)
    holder.acquire("store-1")
    with broker.suspended():
        time.sleep(5)
        assert "cannot be written" in holder.problem
    wait_until(lambda: holder.problem is None)
    assert not lost.is_set()
    with pytest.raises(ServiceTaken):
        acquire(new_lease(), "store-2")


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("gone_again", [False, True], ids=["another runs", "another ran"])
def test_a_holder_that_was_cut_off_learns_that_another_took_over(new_lease, broker, monkeypatch, gone_again):
    lost = threading.Event()
    holder = new_lease(on_lost=lost.set)
    holder.acquire("store-1")
    with broker.suspended():
        wait_until(lambda: holder.problem)
        monkeypatch.setattr(leases, "BEAT_SECONDS", 60.0)
        time.sleep(3.5)
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.2)
    other = new_lease()
    acquire(other, "store-2")
    if gone_again:
        other.release()
    assert not lost.is_set()
    assert lost.wait(60)


def entry(kind: str, owner: str, at: int) -> Entry:
    return Entry(kind, owner, "host", 1, 0, offset=at, at=at)


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
    found = fold(entry(*each) for each in entries)
    assert (found.owner if found else None) == holder
