"""Whenever the process dies, nothing is lost and nothing comes twice.

One server after the other serves the same folder under load; each start is the recovery from the last crash and
already armed for the next. After each recovery the sinks are compared with the model as far as they go, at the end
everything is.
"""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Timer

import httpx
import pytest

from holdfast.crash import CRASH_POINTS
from holdfast.kafka.broker import EmbeddedBroker

from .model import LATER
from .rig import LARGE, Rig
from .server import Server, servers
from .test_hold_clients import OF_HOLDS

CHAIN: list[tuple[str, int, str | None]] = [
    ("before_store_commit", 40, None),
    ("after_command_append", 1, "EXTRA_COUNTS"),
    ("before_produce", 15, None),
    ("before_topic_creation", 5, "EXTRA_TOTALS"),
    ("after_store_commit", 4, None),
    ("before_command_append", 1, "EXTRA_STREAM"),
    ("after_produce", 15, None),
    ("after_topic_creation", 5, "EXTRA_FACTS"),
    ("before_transaction_commit", 10, None),
    ("before_compaction_slice", 4, None),
    ("after_compaction_slice", 4, None),
    ("before_time_reservation", 3, None),
    ("after_time_reservation", 3, None),
    ("after_transaction_commit", 12, None),
]
"""Each crash point, at which of its hits, and the CREATE that reaches it. A start makes four internal topics."""

KEPT = {"after_command_append", "before_topic_creation", "after_topic_creation"}
"""A CREATE that got this far has happened; the restart does the rest of it."""

READ_BY_SPARK = {"after_store_commit"}
"""Points that are reached in ticks so large that Spark reads the topics; elsewhere the server does."""


@pytest.fixture
def make_server(tmp_path: Path, broker: EmbeddedBroker) -> Iterator[Callable[..., Server]]:
    with servers(tmp_path, broker.bootstrap) as make:
        yield make


@pytest.mark.timeout(1500)
def test_a_crash_at_any_point_loses_nothing_and_repeats_nothing(make_server):
    assert {point for point, _, _ in CHAIN} == set(CRASH_POINTS) - set(OF_HOLDS)
    with Rig(make_server("crashes"), seed=1) as rig:
        crash_everywhere(rig)


def crash_everywhere(rig: Rig) -> None:
    point, hit, _ = CHAIN[0]
    rig.begin(f"{point}:{hit}")
    rig.wait_crash(point)
    last, created = point, []
    for point, hit, creating in CHAIN[1:]:
        answers = rig.start(f"{point}:{hit}", after=last, **(LARGE if point in READ_BY_SPARK else {}))
        if creating is not None:
            assert answers, f"the server died before it could be asked: {point}:{hit}"
            assert not rig.create(creating), f"{point}: a server that was to die of a CREATE answered it"
            created.append((creating, point))
        elif answers and created:
            check_interrupted(rig, *created[-1])
            rig.ensure([name for name, _ in created])
        rig.wait_crash(point)
        last = point
    # What was published but not settled when the server died is still there for a query that comes later.
    rig.load.stop()
    assert rig.start(after=last)
    assert rig.ensure([*(name for name, _ in created), "EXTRA_CHAIN"])
    rig.finish()
    print(f"{len(rig.load.written())} records, starts took {[round(s) for s in rig.starts]} s")


def check_interrupted(rig: Rig, name: str, point: str) -> None:
    """A CREATE is all there or not at all."""
    try:
        there = name in rig.server.objects()
    except httpx.TransportError:
        return
    assert there == (point in KEPT or name in rig.objects), f"{name} is {'' if there else 'not '}there after {point}"


@pytest.mark.timeout(1200)
def test_kills_at_random_moments_lose_nothing_and_repeat_nothing(make_server):
    kill_at_random(make_server("kills"), kills=3, seed=2)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", [3])
def test_many_kills_at_random_moments_lose_nothing_and_repeat_nothing(make_server, seed):
    kill_at_random(make_server("soak"), kills=50, seed=seed)


def kill_at_random(server: Server, *, kills: int, seed: int) -> None:
    with Rig(server, seed=seed) as rig:
        kill_often(rig, random.Random(seed), kills)


def kill_often(rig: Rig, choose: random.Random, kills: int) -> None:
    server = rig.server
    rig.begin()
    later, last = list(LATER), "the start"
    for number in range(1, kills + 1):
        # Half of the kills come while the server recovers, the others while it works.
        delay = choose.uniform(0, 2 * rig.starts[0])
        killer = Timer(delay, server.kill)
        killer.start()
        if server.alive or rig.start(after=last, **(LARGE if choose.random() < 0.3 else {})):
            rig.ensure(later[: choose.randint(0, len(later))])
        killer.join()
        server.kill()
        last = f"kill {number}, {delay:.1f} s after a start"
    assert rig.start(after=last)
    assert rig.ensure(later)
    rig.finish()
