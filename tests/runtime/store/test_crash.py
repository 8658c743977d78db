"""After kill -9 a tick is there whole, or not at all."""

import os
import signal
import subprocess
import sys

import pytest

from holdfast.names import TopicName
from holdfast.runtime.store.duckdb import open_store
from holdfast.runtime.store.port import EndOffset, Time
from tests.runtime.store.rows import QUERY, TABLE, snapshot

TICKS = """
import os, signal, sys
from pathlib import Path
from holdfast.names import TopicName
from holdfast.runtime.store.duckdb import open_store
from holdfast.runtime.store.duckdb import commit
from holdfast.runtime.store.port import EndOffset, Time
from tests.runtime.store.rows import LAYOUT, QUERY, TABLE, upserts

store = open_store(Path(sys.argv[1]))
store.create_collection(TABLE, LAYOUT, window_ms=1000)
store.create_outbox(QUERY, LAYOUT)
store.set_upper([TABLE], Time(1))

def stage(number):
    tick = store.stage()
    tick.upsert(QUERY, TABLE, upserts(LAYOUT, *(((str(i),), (number, "x"), number) for i in range(number % 7 + 3))))
    tick.enqueue_changes(QUERY, TABLE)
    tick.move(QUERY, [EndOffset(TopicName("t"), 0, number)])
    tick.remap([EndOffset(TopicName("t"), 0, number)])
    return tick

where = sys.argv[2]
if where == "anywhere":
    for number in range(2, 100_000):
        stage(number).commit(Time(number))
        print(number, flush=True)
stage(2).commit(Time(2))
die = lambda: os.kill(os.getpid(), signal.SIGKILL)
if where == "before":
    commit._after = lambda *args, **options: die()
elif where == "after":
    commit._apply = lambda *args, **options: die()
stage(3).commit(Time(3))
"""


def crash(folder, where):
    return subprocess.Popen([sys.executable, "-c", TICKS, str(folder), where], stdout=subprocess.PIPE, cwd=os.getcwd())


def last_tick(folder) -> int:
    """The number of the tick that the store has, which all its parts must agree on."""
    store = open_store(folder)
    number = store.last_time()
    upper = store.frontier(TABLE).upper
    assert upper == number + 1
    assert list(store.position(QUERY).offsets.values()) == [number]
    assert store.remap_ends() == [EndOffset(TopicName("t"), 0, number)]
    touched = [row for row in snapshot(store, TABLE, number) if row[1] == number]
    assert len(touched) == number % 7 + 3
    assert [(o.time, o.rows) for o in store.pending()][-1] == (number, number % 7 + 3)
    assert store.pending_rows(QUERY, Time(number)).num_rows == number % 7 + 3
    assert {row[1] for row in snapshot(store, TABLE, number - 1)} <= set(range(number)) or number == 2
    store.close()
    return number


@pytest.mark.parametrize(("where", "expected"), [("before", 2), ("after", 3)])
def test_killed_around_the_commit(tmp_path, where, expected):
    process = crash(tmp_path, where)
    assert process.wait(60) == -signal.SIGKILL
    assert last_tick(tmp_path) == expected


def test_killed_at_any_instant(tmp_path):
    for round_, lines in enumerate((5, 23, 48)):
        folder = tmp_path / str(round_)
        process = crash(folder, "anywhere")
        reached = [int(process.stdout.readline()) for _ in range(lines)][-1]
        process.kill()
        process.communicate()
        assert last_tick(folder) >= reached
