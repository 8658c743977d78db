"""Features that must survive the chain of crashes: each declares its objects once and checks them after every restart.

Checks run on a server that stays alive until the next crash is triggered.
"""

import json
import time
from typing import Any

import httpx
import pytest

from .rig import CATCH_UP_SECONDS
from .server import Refused, Server, wait_for
from .topics import create_topics, write

Rows = list[list[Any]]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def all_running(server: Server) -> bool:
    return all(query["state"] == "RUNNING" for query in server.queries().values())


class Indexes:
    """An index and its table return the same rows at the same time. The tables are the rig's."""

    SETUP = """
    CREATE INDEX facts_by_v ON facts (v) WITH (RETAIN HISTORY FOR '1h');
    CREATE INDEX totals_by_s ON totals (s);
    """
    INDEXED = (("facts", "v", "n"), ("totals", "s", "hi"))
    """Tables, the column of their index, and a column to sum."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def declare(self) -> None:
        """Returns immediately, so that the next crash happens while the indexes are being filled."""
        self._server.sql(self.SETUP)
        self._declared_at = now_ms()

    def check(self) -> None:
        wait_for("the indexes are current", self._current, CATCH_UP_SECONDS)
        for table, column, adds in self.INDEXED:
            self._check_index(table, column, adds)

    def finish(self) -> None:
        self.check()
        assert self._server.pull(f"SELECT COUNT(*) AS c FROM facts AS OF AT LEAST {self._declared_at};")[0][0] > 0

    def _current(self) -> bool:
        queries = self._server.queries()
        return all(queries[f"{table}_BY_{column}".upper()]["state"] == "RUNNING" for table, column, _ in self.INDEXED)

    def _check_index(self, table: str, column: str, adds: str) -> None:
        """Compare, for each value, the result through the index with a scan at the same time."""
        values = [
            row[0] for row in self._server.pull(f"SELECT {column}, COUNT(*) AS c FROM {table} GROUP BY {column};")
        ]
        found = 0
        for value in [value for value in values if value is not None][:12]:
            sums = f"SELECT COUNT(*) AS c, SUM({adds}) AS s FROM {table} WHERE"
            # A sum is not the index's expression: it is computed over all rows.
            both = self._server.pull(f"{sums} {column} = {value} UNION ALL {sums} {column} + 0 = {value};")
            assert both[0] == both[1], (table, value)
            found += both[0][0]
        assert found > 0, table
        explained = self._server.sql(f"EXPLAIN SELECT {adds} FROM {table} WHERE {column} = 1;")
        assert f'index "{table.upper()}_BY_{column.upper()}"' in explained[0]["queryDescription"]["executionPlan"]


class MaterializedViews:
    """A time that was readable once returns the same rows after every restart."""

    SETUP = """
    CREATE STREAM mv_events (id STRING KEY, k STRING, n INT)
      WITH (KAFKA_TOPIC = '{0}_mv_events', VALUE_FORMAT = 'JSON');
    CREATE TABLE mv_names (k STRING PRIMARY KEY, name STRING)
      WITH (KAFKA_TOPIC = '{0}_mv_names', VALUE_FORMAT = 'JSON');
    CREATE MATERIALIZED VIEW sums WITH (RETAIN HISTORY FOR '1h') AS
      SELECT k, COUNT(*) AS c, SUM(n) AS s FROM mv_events GROUP BY k;
    CREATE VIEW large AS SELECT k, s FROM sums WHERE s > 10;
    CREATE MATERIALIZED VIEW named WITH (RETAIN HISTORY FOR '1h') AS
      SELECT l.k AS k, name, s FROM large l JOIN mv_names n ON l.k = n.k;
    """
    NAMES = {f"k{i}": f"name {i}" for i in range(7)}  # noqa: RUF012
    ROUNDS = 4
    """Number of restarts after which events are written; later ones only read."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._readings: list[tuple[int, str, Rows]] = []
        self._sums: dict[str, tuple[int, int]] = {}
        self._events = self._rounds = 0
        self._events_topic, self._names_topic = f"{server.service_id}_mv_events", f"{server.service_id}_mv_names"

    def declare(self) -> None:
        assert self._server.kafka is not None
        create_topics(self._server.kafka, self._events_topic, self._names_topic, partitions=2)
        self._write_names()
        self._server.sql(self.SETUP.format(self._server.service_id))
        wait_for(
            "the views are built",
            lambda: self._server.queries()["NAMED"]["state"] == "RUNNING",
            seconds=CATCH_UP_SECONDS,
        )
        # A time that was read stays readable even if nothing has happened since.
        self._read()

    def check(self) -> None:
        for at, name, found in self._readings:
            assert self._as_of(at, name) == found, f"{name} as of {at} has changed"
        if self._rounds < self.ROUNDS:
            self._rounds += 1
            self._write_round()

    def finish(self) -> None:
        self.check()
        summed = [[k, c, s] for k, (c, s) in sorted(self._sums.items())]
        wait_for("all events are counted", lambda: self._rows("sums") == summed, seconds=CATCH_UP_SECONDS)
        joined = [[k, self.NAMES[k], s] for k, (_, s) in sorted(self._sums.items()) if s > 10]
        wait_for("the join has caught up", lambda: self._rows("named") == joined, seconds=CATCH_UP_SECONDS)
        assert len({json.dumps(found) for _, name, found in self._readings if name == "sums"}) > 2

    def _write_round(self) -> None:
        assert self._server.kafka is not None
        for _ in range(4):
            write(self._server.kafka, self._events_topic, [self._event() for _ in range(25)])
            self._read()
        wait_for("the round is counted", lambda: self._counted() == self._events, seconds=CATCH_UP_SECONDS)
        self._read()
        self._write_names()

    def _write_names(self) -> None:
        assert self._server.kafka is not None
        names = [(k, json.dumps({"name": name}).encode()) for k, name in self.NAMES.items()]
        write(self._server.kafka, self._names_topic, names)

    def _event(self) -> tuple[str, bytes]:
        k, n = f"k{self._events * 5 % 7}", self._events % 11
        count, total = self._sums.get(k, (0, 0))
        self._sums[k] = (count + 1, total + n)
        self._events += 1
        return f"e{self._events}", json.dumps({"k": k, "n": n}).encode()

    def _read(self) -> None:
        at = now_ms()
        self._readings += [(at, name, self._as_of(at, name)) for name in ("sums", "named")]

    def _as_of(self, at: int, name: str) -> Rows:
        return self._server.pull(f"SELECT * FROM {name} ORDER BY k AS OF {at};")

    def _rows(self, name: str) -> Rows:
        return self._server.pull(f"SELECT * FROM {name} ORDER BY k;")

    def _counted(self) -> int:
        return sum(row[1] for row in self._rows("sums"))


class Transactions:
    """A transaction is applied completely or not at all, wherever the server crashes."""

    SETUP = """
    CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC = '{0}_t', VALUE_FORMAT = 'JSON');
    INSERT INTO t (id, n) VALUES ('a', 1);
    """
    HOLDS = "CREATE HOLD a ON t AT now(); CREATE HOLD b ON t AT now();"
    SWAP = "DROP HOLD a; ALTER HOLD b RENAME TO a;"
    CREATE = "CREATE MATERIALIZED VIEW v AS SELECT id, n FROM t WHERE n > 0; CREATE HOLD h ON v;"

    def __init__(self, server: Server) -> None:
        self._server = server
        self._view = False
        self._lost: dict[str, str] = {}

    def declare(self) -> None:
        assert self._server.kafka is not None
        create_topics(self._server.kafka, f"{self._server.service_id}_t")
        self._server.sql(self.SETUP.format(self._server.service_id))
        wait_for("the row is there", lambda: self._server.pull("SELECT id, n FROM t;") == [["a", 1]], CATCH_UP_SECONDS)
        # After the row's time: without AT, a hold starts at the read frontier, which may be before it.
        self._server.sql(self.HOLDS)
        self._holds = self._found()
        assert set(self._holds) == {"A", "B"}
        # A transaction that is open when the server crashes, each statement in its own request.
        (opened,) = self._server.sql("BEGIN;")
        self._lost = {opened["property"]: opened["transactionId"]}
        for statement in self.SWAP.split("; "):
            (queued,) = self._server.sql(f"{statement.rstrip(';')};", self._lost)
            assert queued["commandStatus"]["status"] == "QUEUED"
        assert self._found() == self._holds, "nothing is visible before COMMIT"

    def check(self) -> None:
        assert (self._found(), self._view_exists()) == (self._holds, self._view)
        with pytest.raises(Refused, match="25P01"):
            self._server.sql("COMMIT;", self._lost)

    def crash(self, statements: str, *, committed: bool) -> None:
        """Send a transaction during which the server crashes; `committed` says whether it takes effect."""
        with pytest.raises((Refused, httpx.TransportError)):
            self._server.sql(f"BEGIN; {statements} COMMIT;")
        if committed and statements == self.SWAP:
            self._holds = {"A": self._holds["B"]}
        elif committed:
            self._view = True

    def finish(self) -> None:
        """The last transaction created the view and its hold."""
        holds = self._found()
        assert self._view_exists()
        at = holds.pop("H")[1]
        assert (holds, self._view) == (self._holds, True)
        wait_for("the view is built", lambda: all_running(self._server), CATCH_UP_SECONDS)
        assert self._server.pull("SELECT id, n FROM v;") == [["a", 1]]
        assert self._server.pull(f"SELECT id, n FROM v AS OF {at};") == [["a", 1]]
        with pytest.raises(Refused, match="25000"):
            self._server.sql("BEGIN; CREATE TABLE u AS SELECT id, n FROM t; COMMIT;")

    def _found(self) -> dict[str, tuple[str, int]]:
        """The holds of this feature by name: the id of each, and its time."""
        (shown,) = self._server.sql("SHOW HOLDS;")
        return {hold["name"]: (hold["id"], hold["at"]) for hold in shown["holds"] if hold["name"] != "COPIED"}

    def _view_exists(self) -> bool:
        return ["V"] in self._server.pull("SELECT name FROM mz_materialized_views;")
