"""The laws of `Clock`, with a clock that tests move as they like."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from holdfast.coordinator.clock import BLOCK_MS, Clock
from holdfast.names import CollectionId, QueryId
from holdfast.runtime.store import schemas
from holdfast.runtime.store.duckdb import open_store
from holdfast.runtime.store.memory import MemoryStore
from holdfast.runtime.store.port import Layout, Store, Time
from holdfast.types import Scalar

TABLE, LAYOUT = CollectionId("T"), Layout((Scalar.STRING,), (Scalar.BIGINT,))


@dataclass
class ManualClock:
    """A wall clock that only the test moves."""

    now: int = 1_000_000

    def __call__(self) -> int:
        return self.now


def tick(clock: Clock) -> Time:
    time = clock.begin_commit()
    clock.end_commit()
    return time


def put(store: Store, clock: Clock, value: int) -> Time:
    """One tick that sets the row `a`."""
    stage = store.stage()
    row = {"k0": "a", "c0": value, "ts": 0, "present": True}
    stage.upsert(QueryId("Q"), TABLE, pa.Table.from_pylist([row], schema=schemas.upsert_schema(LAYOUT)))
    time = clock.begin_commit()
    stage.commit(time)
    store.set_upper([TABLE], Time(time + 1))
    clock.end_commit()
    return time


def read(store: Store, at: Time) -> list[int]:
    return [row["c0"] for page in store.snapshot(TABLE, at) for row in page.to_pylist()]


def test_ticks_follow_the_wall_clock_and_have_different_times_when_it_stops():
    wall = ManualClock()
    clock = Clock(MemoryStore(), wall)
    assert [tick(clock) for _ in range(3)] == [1_000_000, 1_000_001, 1_000_002]
    wall.now = 2_000_000
    assert tick(clock) == 2_000_000
    wall.now = 5
    assert tick(clock) == 2_000_001


def test_a_read_is_below_the_tick_that_is_being_committed():
    wall = ManualClock()
    clock = Clock(MemoryStore(), wall)
    before = clock.read_time()
    at = clock.begin_commit()
    wall.now += 1_000
    assert before <= clock.read_time() < at
    clock.end_commit()
    assert clock.read_time() == wall.now > at


def test_a_tick_is_above_every_read_before_it():
    wall = ManualClock()
    clock = Clock(MemoryStore(), wall)
    seen = clock.read_time()
    assert tick(clock) == seen + 1
    wall.now -= 999_999
    assert clock.read_time() == seen + 1
    assert tick(clock) == seen + 2


def test_handing_out_times_within_a_block_writes_nothing():
    wall, store = ManualClock(), MemoryStore()
    clock = Clock(store, wall)
    clock.read_time()
    reserved = store.last_time()
    assert reserved == wall.now + BLOCK_MS
    for _ in range(BLOCK_MS // 1_000):
        wall.now += 1_000
        clock.read_time()
    assert store.last_time() == reserved
    wall.now += 1
    clock.read_time()
    assert store.last_time() > reserved


def test_a_block_is_reserved_before_the_present_one_runs_out():
    wall, store = ManualClock(), MemoryStore()
    clock = Clock(store, wall)
    clock.reserve_ahead()
    first = store.last_time()
    wall.now += BLOCK_MS // 2 + 1
    clock.reserve_ahead()
    assert store.last_time() > first


def test_a_clock_that_steps_back_after_a_crash_changes_no_answer(tmp_path):
    wall = ManualClock()
    store = open_store(tmp_path)
    store.create_collection(TABLE, LAYOUT, window_ms=1_000_000)
    clock = Clock(store, wall)
    put(store, clock, 1)
    wall.now += 700
    seen = clock.read_time()
    store.set_upper([TABLE], Time(seen + 1))
    answer = read(store, seen)
    store.close()

    wall.now -= 600_000
    store = open_store(tmp_path)
    clock = Clock(store, wall)
    later = put(store, clock, 2)
    assert later > seen
    assert clock.read_time() >= later
    assert read(store, seen) == answer == [1]
    assert read(store, later) == [2]
    store.close()


class BusyStore(MemoryStore):
    """A store on which another thread may be writing."""

    busy = False

    def try_reserve(self, until: Time) -> bool:
        return not self.busy and super().try_reserve(until)


class ClockLaw(RuleBasedStateMachine):
    """Reads, ticks, crashes, a busy store and a wall clock that jumps, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.wall, self.store = ManualClock(), BusyStore()
        self.clock = Clock(self.store, self.wall)
        self.handed, self.committed = Time(0), Time(0)
        self.committing: Time | None = None

    @rule(by=st.integers(-20_000, 20_000))
    def wall_clock_jumps(self, by: int) -> None:
        self.wall.now = max(0, self.wall.now + by)

    @rule()
    def read(self) -> None:
        time = self.clock.read_time()
        assert time >= self.handed
        assert time >= self.committed
        assert self.committing is None or time < self.committing
        assert time <= self.store.last_time()
        self.handed = time

    @rule(busy=st.booleans())
    def store_is(self, busy: bool) -> None:
        self.store.busy = busy

    @rule()
    def reserve_ahead(self) -> None:
        self.clock.reserve_ahead()

    @precondition(lambda self: self.committing is None)
    @rule()
    def begin(self) -> None:
        self.committing = self.clock.begin_commit()
        assert self.committing > max(self.handed, self.committed)

    @precondition(lambda self: self.committing is not None)
    @rule(written=st.booleans())
    def end(self, written: bool) -> None:
        if written:
            self.store.stage().commit(self.committing)
            self.committed = self.committing
        self.clock.end_commit()
        self.committing = None

    @rule(written=st.booleans())
    def crash(self, written: bool) -> None:
        if self.committing is not None and written:
            self.store.stage().commit(self.committing)
            self.committed = self.committing
        self.committing = None
        self.clock = Clock(self.store, self.wall)


TestClockLaw = ClockLaw.TestCase
TestClockLaw.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_a_read_does_not_wait_for_a_long_commit(tmp_path):
    """Neither during the commit, nor when the reserved block runs out while something else writes."""
    wall, store = ManualClock(), open_store(tmp_path)
    store.create_collection(TABLE, LAYOUT, window_ms=1_000_000)
    clock = Clock(store, wall)
    first = put(store, clock, 1)
    wall.now += 60_000
    second = clock.begin_commit()
    with ThreadPoolExecutor(1) as reader, store._core.write_lock:
        during = reader.submit(clock.read_time).result(10)
    clock.end_commit()
    wall.now += 60_000
    with ThreadPoolExecutor(1) as reader, store._core.write_lock:
        after = reader.submit(clock.read_time).result(10)
    assert first <= during < second <= after < wall.now
    assert after <= store.last_time()
    assert clock.read_time() == wall.now
    store.close()


def test_ending_no_commit_does_nothing():
    clock = Clock(MemoryStore(), ManualClock())
    clock.end_commit()
    assert clock.read_time() == 1_000_000


@pytest.mark.parametrize("back", [1, BLOCK_MS, 10 * BLOCK_MS])
def test_a_restart_continues_above_the_reserved_block(back):
    wall, store = ManualClock(), MemoryStore()
    seen = Clock(store, wall).read_time()
    wall.now -= back
    again = Clock(store, wall)
    assert again.begin_commit() > seen


def test_a_clock_can_be_set_above_a_time(tmp_path):
    store = open_store(tmp_path)
    clock = Clock(store, now=lambda: 1_000)
    clock.rise_above(Time(5_000))
    assert clock.begin_commit() == 5_001
    clock.end_commit()
    clock.rise_above(Time(10))
    assert clock.read_time() == 5_001
    assert store.last_time() >= 5_000
    store.close()
