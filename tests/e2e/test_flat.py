"""Memory and store do not grow with the number of ticks, even with a paused query, a failed one and a stuck client.

A stuck client pins the history of its table until it is ended, five minutes here; then the next one gets stuck.
"""

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import httpx
import psutil
import pytest

from .rig import CATCH_UP_SECONDS, Rig
from .server import Server, wait_for
from .topics import delete_topic

SETUP = """
CREATE STREAM failing WITH (KAFKA_TOPIC = '{0}_failing') AS SELECT k, n FROM events EMIT CHANGES;
CREATE TABLE paused AS SELECT k, COUNT(*) AS c, MAX(n) AS hi FROM events GROUP BY k EMIT CHANGES;
CREATE TABLE followed AS SELECT k, SUM(n) AS s FROM events GROUP BY k EMIT CHANGES;
"""
SAMPLE_SECONDS = 10.0
MAX_LAG_MINUTES = 5


@dataclass(frozen=True, slots=True)
class Sample:
    """In MB."""

    memory: float
    store: float


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_an_hour_of_ticks_leaves_memory_and_store_flat(make_server: Callable[..., Server]) -> None:
    """The second half of the run needs no more than the first, after a warm-up."""
    minutes = float(os.environ.get("HOLDFAST_FLAT_MINUTES") or 60)
    with Rig(make_server("flat"), seed=4, batches_per_second=10.0) as rig:
        server = rig.server
        rig.backfilled = True  # The queries that follow log the undecodable records before them once more.
        rig.begin(subscribe_max_lag=f"{MAX_LAG_MINUTES}m")
        server.sql(SETUP.format(rig.prefix))
        wait_for("the queries run", lambda: states(server) == {"RUNNING"}, CATCH_UP_SECONDS)
        server.sql(f"PAUSE {server.queries()['PAUSED']['id']};")
        delete_topic(rig.kafka, f"{rig.prefix}_failing")
        wait_for("a query has failed", lambda: "ERROR" in states(server), CATCH_UP_SECONDS)
        samples, until = [], time.monotonic() + 60 * minutes
        while (left := until - time.monotonic()) > 0:
            with stuck_subscriber(server):
                samples += observe(server, min(left, 60 * (MAX_LAG_MINUTES + 1)))
        for name in ("memory", "store"):
            first, second = halves([getattr(sample, name) for sample in samples])
            print(f"{name}: {first:.0f} MB in the first half, {second:.0f} MB in the second")
            assert second < 1.15 * first + 30, f"{name} grew from {first:.0f} to {second:.0f} MB"
        rig.finish()


def states(server: Server) -> set[str]:
    return {query["state"] for query in server.queries().values()}


def stuck_subscriber(server: Server):  # type: ignore[no-untyped-def]
    """A client that subscribes and never reads."""
    return httpx.stream(
        "POST", f"{server.url}/query-stream", json={"sql": "SUBSCRIBE TO followed;"}, timeout=httpx.Timeout(60.0)
    )


def observe(server: Server, seconds: float) -> list[Sample]:
    samples, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(SAMPLE_SECONDS)
        assert server.process is not None
        assert server.alive, server.log()
        family = [psutil.Process(server.process.pid), *server.look_at_family()]
        memory = sum(process.memory_info().rss for process in family if process.is_running())
        store = sum(file.stat().st_size for file in (server.data_dir / "store").rglob("*") if file.is_file())
        samples.append(Sample(memory / 2**20, store / 2**20))
    return samples


def halves(values: list[float]) -> tuple[float, float]:
    """The medians of the second and of the last quarter: the first is the warm-up."""
    quarter = len(values) // 4
    return statistics.median(values[quarter : 2 * quarter]), statistics.median(values[-quarter:])
