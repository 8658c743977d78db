"""A copy of the table `facts` in SQLite, maintained by a client process that dies and starts again."""

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from .hold_client import MISFIT
from .server import Server, wait_for


class Copy:
    """The file with the copy, and the client process that maintains it."""

    def __init__(self, server: Server, file: Path, columns: tuple[str, ...]) -> None:
        self._server, self._file, self._columns = server, file, columns
        self._client: subprocess.Popen[bytes] | None = None
        self.times: set[int] = set()
        """The times up to which the copy was complete when its client ended."""

    def create_hold(self) -> None:
        """Create the hold; returns once the table is built."""
        self._server.sql("CREATE HOLD copied ON facts;")

    def start(self) -> None:
        """Start the client, unless it is running."""
        if self._client is not None and self._client.poll() is None:
            return
        self.kill()
        command = [sys.executable, "-m", "tests.e2e.hold_client", self._server.url, str(self._file)]
        with self._log.open("ab") as log:
            self._client = subprocess.Popen(
                [*command, ",".join(self._columns)],
                cwd=Path(__file__).parents[2],
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def kill(self) -> None:
        if self._client is None:
            return
        self._client.kill()
        assert self._client.wait(30) != MISFIT, self._log.read_text()
        self._client = None
        if (complete_to := self._complete_to()) is not None:
            self.times.add(complete_to)

    def finish(self) -> None:
        """Wait until the copy equals the table, which is no longer written."""
        self.start()
        wait_for("the copy equals the table", lambda: self._runs() and self._equal(), 300)
        holds = {hold["name"]: hold for hold in self._server.sql("SHOW HOLDS;")[0]["holds"]}
        assert holds["COPIED"]["advanced"] == 0, "only the client advanced the hold"
        self.kill()

    @property
    def _log(self) -> Path:
        return self._file.with_suffix(".log")

    def _complete_to(self) -> int | None:
        with closing(sqlite3.connect(self._file, timeout=30)) as opened:
            if not opened.execute("SELECT 1 FROM sqlite_master WHERE name = 'progress'").fetchall():
                return None
            (complete_to,) = opened.execute("SELECT max(complete_to) FROM progress").fetchone()
            return complete_to

    def _runs(self) -> bool:
        assert self._client is not None
        assert self._client.poll() is None, f"the client ended with {self._client.returncode}: {self._log.read_text()}"
        return True

    def _equal(self) -> bool:
        """Whether the copy equals the table, and still does once everything in transit has arrived."""
        columns = ", ".join(self._columns)
        for _ in range(2):
            rows = set(map(tuple, self._server.pull(f"SELECT {columns} FROM facts;")))
            with closing(sqlite3.connect(self._file, timeout=30)) as opened:
                if rows != set(opened.execute(f"SELECT {columns} FROM facts").fetchall()):
                    return False
            time.sleep(2)
        return True
