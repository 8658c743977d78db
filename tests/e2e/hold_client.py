"""A client that keeps a copy of a table, and moves a hold on as it goes: `hold_client.py URL FILE`.

Rows and the time up to which they are whole are in one SQLite transaction, as any client would have it. It ends with
status 3 when a change does not fit its copy: one was missed, or came twice.
"""

import sqlite3
import sys
from pathlib import Path

from holdfast.client import Client

MISFIT = 3


def main(url: str, file: Path) -> None:
    copy = sqlite3.connect(file)
    copy.execute("CREATE TABLE IF NOT EXISTS facts (k TEXT PRIMARY KEY, n INTEGER, s TEXT)")
    copy.execute("CREATE TABLE IF NOT EXISTS place (whole INTEGER)")
    client = Client(url)
    whole = (copy.execute("SELECT max(whole) FROM place").fetchone() or [None])[0]
    snapshot = "false" if whole is not None else "true"
    subscribe = f"SUBSCRIBE facts WITH (PROGRESS = true, SNAPSHOT = {snapshot}, HOLD = copied);"
    with client.stream(subscribe) as changes:
        for change in changes:
            at = int(change["mz_timestamp"])
            if change["mz_progressed"]:
                if whole is None or at > whole:
                    copy.execute("DELETE FROM place")
                    copy.execute("INSERT INTO place VALUES (?)", [at])
                    copy.commit()
                    whole = at
                    client.execute(f"ALTER HOLD copied ADVANCE TO {at - 1};")
            elif whole is None or at >= whole:
                apply(copy, int(change["mz_diff"]), [change["k"], change["n"], change["s"]])


def apply(copy: sqlite3.Connection, diff: int, row: list[object]) -> None:
    if diff == 1:
        done = copy.execute("INSERT OR IGNORE INTO facts VALUES (?, ?, ?)", row).rowcount
    else:
        done = copy.execute("DELETE FROM facts WHERE k = ? AND n IS ? AND s IS ?", row).rowcount
    if done != 1:
        print(f"{'+' if diff == 1 else '-'} {row} does not fit", flush=True)
        sys.exit(MISFIT)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
