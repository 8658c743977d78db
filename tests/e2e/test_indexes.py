"""An index and its table say the same, at one time and whenever the process is killed."""

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.kafka.broker import EmbeddedBroker

from .rig import Rig
from .server import Server, servers, wait_for

INDEXES = """
CREATE INDEX facts_by_v ON facts (v) WITH (RETAIN HISTORY FOR '1h');
CREATE INDEX totals_by_s ON totals (s);
"""
WHERE = (("facts", "v", "n"), ("totals", "s", "hi"))
"""Tables, what their index is by, and a column to add up."""


@pytest.fixture
def make_server(tmp_path: Path, broker: EmbeddedBroker) -> Iterator[Callable[..., Server]]:
    with servers(tmp_path, broker.bootstrap) as make:
        yield make


@pytest.mark.timeout(900)
def test_an_index_agrees_with_its_table_after_kills(make_server):
    choose = random.Random(7)
    with Rig(make_server("indexes"), seed=7) as rig:
        rig.begin()
        time.sleep(2)
        rig.server.sql(INDEXES)
        kept = time.time_ns() // 1_000_000
        for number in range(2):
            # The first kill comes while the indexes are filled.
            time.sleep(choose.uniform(0.1, 1.0) if number == 0 else choose.uniform(2, 5))
            rig.server.kill()
            assert rig.start(after=f"kill {number}")
            wait_for("the indexes are current", lambda: all_run(rig.server), 180)
            check(rig.server)
        rig.load.stop()
        rig.finish()
        check(rig.server)
        assert rig.server.pull(f"SELECT COUNT(*) AS c FROM facts AS OF AT LEAST {kept};")[0][0] > 0


def all_run(server: Server) -> bool:
    return all(query["state"] == "RUNNING" for query in server.queries().values())


def check(server: Server) -> None:
    """Each value by the index and, at the same time, through all rows."""
    for table, by, adds in WHERE:
        values = [row[0] for row in server.pull(f"SELECT {by}, COUNT(*) AS c FROM {table} GROUP BY {by};")]
        found = 0
        for value in [value for value in values if value is not None][:12]:
            sums = f"SELECT COUNT(*) AS c, SUM({adds}) AS s FROM {table} WHERE"
            # A sum is no expression of the index: it is asked of all rows.
            both = server.pull(f"{sums} {by} = {value} UNION ALL {sums} {by} + 0 = {value};")
            assert both[0] == both[1], (table, value)
            found += both[0][0]
        assert found > 0, table
        explained = server.sql(f"EXPLAIN SELECT {adds} FROM {table} WHERE {by} = 1;")
        assert f'index "{table.upper()}_BY_{by.upper()}"' in explained[0]["queryDescription"]["executionPlan"]
