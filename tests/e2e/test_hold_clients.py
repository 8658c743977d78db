"""A client with a hold is killed together with the server, again and again: its copy ends equal to the table.

The chain in `test_crashes` does this at every crash point; here the kills come at random, for hours.
"""

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.crash import CrashPoint

from .copies import Copy
from .server import Server, wait_for
from .test_subscribers import Writing
from .topics import create_topics

TABLE = """
CREATE TABLE facts (k STRING PRIMARY KEY, n BIGINT, s STRING) WITH (KAFKA_TOPIC = '{0}_facts', VALUE_FORMAT = 'JSON');
"""
POINTS: tuple[CrashPoint, ...] = (
    "before_hold_advance",
    "after_hold_advance",
    "before_store_commit",
    "after_store_commit",
    "before_compaction_slice",
    "after_compaction_slice",
    "before_time_reservation",
    "after_time_reservation",
)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_copy_survives_a_hundred_kills_of_both(make_server: Callable[..., Server], tmp_path: Path) -> None:
    server = make_server("copied_long")
    copy = Copy(server, tmp_path / "copy.db", ("k", "n", "s"))
    try:
        copy_and_kill(server, copy, rounds=100)
    finally:
        copy.kill()


def copy_and_kill(server: Server, copy: Copy, *, rounds: int) -> None:
    assert server.kafka is not None
    create_topics(server.kafka, f"{server.service_id}_facts", f"{server.service_id}_events")
    server.start()
    writing, chances = Writing(server.kafka, server.service_id), random.Random(11)
    writing.some(500, gone=0)
    server.sql(TABLE.format(server.service_id))
    copy.create_hold()
    writing.start()
    armed = False
    for round_ in range(rounds):
        copy.start()
        if armed:
            wait_for("the server dies", lambda: not server.alive, 180)
        else:
            time.sleep(chances.uniform(0.2, 4.0))
        # Which of the two goes first is a matter of chance.
        for die in chances.sample([server.kill, copy.kill], 2):
            die()
        arm = f"{chances.choice(POINTS)}:{chances.randint(1, 5)}" if round_ % 2 == 0 and round_ + 1 < rounds else None
        server.launch(crash=arm)
        armed = server.wait_ready() and arm is not None
        if not server.alive:
            server.start()
    writing.stopping.set()
    writing.join(120)
    copy.finish()
    assert len(copy.times) > rounds // 4, "the client made progress between the kills"
