"""Whenever the process dies, nothing is lost and nothing comes twice.

One server after the other serves the same folder under load; each start is the recovery from the last crash and
already armed for the next; some kills at random moments follow. After each recovery the sinks are compared with the
model as far as they go, at the end everything is. Indexes, materialized views, transactions and a client with a hold go
through the same crashes.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Timer

import httpx
import pytest

from holdfast.crash import CRASH_POINTS, CrashPoint

from .copies import Copy
from .features import Indexes, MaterializedViews, Transactions
from .model import LATER
from .rig import LARGE, Rig
from .server import Server
from .windowed_tables import WindowedTables


@dataclass(frozen=True)
class Crash:
    """A crash point and at which of its hits it kills; `create` or `transaction` is what reaches it, else the load."""

    point: CrashPoint
    hit: int
    create: str | None = None
    transaction: str | None = None

    @property
    def armed(self) -> str:
        return f"{self.point}:{self.hit}"

    @property
    def on_request(self) -> bool:
        """Whether the server lives until it is asked to die."""
        return self.create is not None or self.transaction is not None


CHAIN = [
    Crash("before_topic_creation", 12, create="EXTRA_TOTALS"),
    Crash("before_store_commit", 8),
    Crash("before_produce", 6),
    Crash("after_store_commit", 4),
    Crash("after_command_append", 1, transaction=Transactions.SWAP),
    Crash("before_hold_advance", 2),
    Crash("after_produce", 6),
    Crash("after_topic_creation", 5, create="EXTRA_FACTS"),
    Crash("before_transaction_commit", 6),
    Crash("before_command_append", 1, create="EXTRA_STREAM"),
    Crash("before_compaction_slice", 3),
    Crash("after_hold_advance", 2),
    Crash("after_compaction_slice", 3),
    Crash("after_command_append", 1, transaction=Transactions.CREATE),
    Crash("before_time_reservation", 2),
    Crash("after_time_reservation", 2),
    Crash("after_transaction_commit", 6),
]
"""A start creates four internal topics; the first one also creates the seven topics of the queries."""

MORE = [
    (2, Crash("after_command_append", 1, create="EXTRA_COUNTS")),
    (4, Crash("before_command_append", 1, transaction=Transactions.SWAP)),
    (10, Crash("before_command_append", 1, transaction=Transactions.CREATE)),
]
"""What the long form adds, each before the crash of the chain with this index: the other statements that a command
append can interrupt."""

HAPPENED = {"after_command_append", "before_topic_creation", "after_topic_creation"}
"""A statement that got this far has happened; the restart does the rest of it."""

READ_BY_SPARK = {"after_store_commit"}
"""Points that are reached in ticks so large that Spark reads the topics; elsewhere the server does."""


@pytest.mark.timeout(2400)
def test_crashes_at_any_point_and_moment_lose_nothing_and_repeat_nothing(
    make_server: Callable[..., Server], tmp_path: Path
) -> None:
    assert {crash.point for crash in CHAIN} == set(CRASH_POINTS)
    with Rig(make_server("crashes"), seed=1) as rig, Chain(rig, tmp_path / "copy.db", CHAIN) as chain:
        chain.run(kills=3)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", [5, 6])
def test_a_longer_chain_of_crashes_loses_nothing_and_repeats_nothing(
    make_server: Callable[..., Server], tmp_path: Path, seed: int
) -> None:
    """The whole chain with all statements, at other hits of the points that the load reaches."""
    choose, crashes = random.Random(seed), list(CHAIN)
    for index, crash in reversed(MORE):
        crashes.insert(index, crash)
    crashes = [c if c.on_request else replace(c, hit=choose.randint(1, 3 * c.hit)) for c in crashes]
    with Rig(make_server(f"crashes_{seed}"), seed=seed) as rig, Chain(rig, tmp_path / "copy.db", crashes) as chain:
        chain.run()


class Chain:
    """The crashes one after the other, on one rig."""

    def __init__(self, rig: Rig, copy: Path, crashes: Sequence[Crash]) -> None:
        self._rig, self._crashes, self._choose = rig, crashes, random.Random(1)
        self._copy = Copy(rig.server, copy, ("id", "v", "n"))
        self._transactions = Transactions(rig.server)
        self._features = (
            MaterializedViews(rig.server),
            self._transactions,
            Indexes(rig.server),
            WindowedTables(rig.server),
        )
        self._created: list[tuple[str, CrashPoint]] = []
        self._spans: list[str] = []
        """For the report: the seconds from each start until the server answered, was checked, and died."""

    def __enter__(self) -> "Chain":
        return self

    def __exit__(self, *_: object) -> None:
        self._copy.kill()

    def run(self, *, kills: int = 0) -> None:
        rig, (first, *rest) = self._rig, self._crashes
        rig.begin(first.armed)
        self._copy.create_hold()
        for feature in self._features:
            feature.declare()
        self._crash(first)
        last = first
        for crash in rest:
            started_at = time.monotonic()
            settings = LARGE if crash.point in READ_BY_SPARK else {}
            answers = rig.start(crash.armed, after=last.point, **settings)
            assert answers or not crash.on_request, f"the server died before it could be asked: {crash.armed}"
            if answers:
                self._copy.start()
            if crash.on_request:
                for feature in self._features:
                    feature.check()
            elif answers and self._created:
                self._check_interrupted(*self._created[-1])
                rig.ensure([name for name, _ in self._created])
            checked_at = time.monotonic()
            self._crash(crash)
            last = crash
            ready, checked, died = rig.starts[-1], checked_at - started_at, time.monotonic() - started_at
            self._spans.append(f"{crash.armed} {ready:.0f} {checked:.0f} {died:.0f}")
        created = ["EXTRA_COUNTS", *(name for name, _ in self._created)]
        self._finish(kill_often(rig, self._choose, kills, created, after=last.point))

    def _crash(self, crash: Crash) -> None:
        """Let the server die there, and the client of the copy before or after it."""
        if crash.on_request and self._choose.random() < 0.5:
            self._copy.kill()
        if crash.create is not None:
            assert not self._rig.create(crash.create), f"{crash.point}: a server that was to die of a CREATE answered"
            self._created.append((crash.create, crash.point))
        if crash.transaction is not None:
            self._transactions.crash(crash.transaction, committed=crash.point in HAPPENED)
        self._rig.wait_crash(crash.point)
        self._copy.kill()

    def _check_interrupted(self, name: str, point: CrashPoint) -> None:
        """A CREATE is all there or not at all."""
        try:
            there = name in self._rig.server.objects()
        except httpx.TransportError:
            return
        expected = point in HAPPENED or name in self._rig.objects
        assert there == expected, f"{name} is {'' if there else 'not '}there after {point}"

    def _finish(self, last: str) -> None:
        rig = self._rig
        # What was published but not settled when the server died is still there for a query that comes later.
        rig.load.stop()
        assert rig.start(after=last)
        assert rig.ensure(list(LATER))
        rig.finish()
        for feature in self._features:
            feature.finish()
        self._copy.finish()
        assert len(self._copy.times) > len(self._crashes) // 4, "the client made progress between the crashes"
        print(f"{len(rig.load.written())} records; seconds to answer, be checked, die:", *self._spans, sep="\n  ")


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", [3, 5, 7, 9])
def test_many_kills_at_random_moments_lose_nothing_and_repeat_nothing(
    make_server: Callable[..., Server], seed: int
) -> None:
    with Rig(make_server(f"soak{seed}"), seed=seed) as rig:
        rig.begin()
        last = kill_often(rig, random.Random(seed), 50, list(LATER), after="the start")
        assert rig.start(after=last)
        assert rig.ensure(list(LATER))
        rig.finish()


def kill_often(rig: Rig, choose: random.Random, kills: int, later: Sequence[str], *, after: str) -> str:
    """Kill the server at random moments, also while it creates `later`; returns what the last kill interrupted."""
    last = after
    for number in range(1, kills + 1):
        # Half of the kills come while the server recovers, the others while it works.
        delay = choose.uniform(0, 2 * rig.starts[0])
        killer = Timer(delay, rig.server.kill)
        killer.start()
        if rig.server.alive or rig.start(after=last, **(LARGE if choose.random() < 0.3 else {})):
            rig.ensure(later[: choose.randint(0, len(later))])
        killer.join()
        rig.server.kill()
        last = f"kill {number}, {delay:.1f} s after a start"
    return last
