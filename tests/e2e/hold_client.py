"""A client that copies a table and advances a hold as it goes: `hold_client.py URL FILE COLUMN[,COLUMN...]`.

The rows and the time up to which they are complete are written in one SQLite transaction, as any client would do. The
client exits with status 3 if a change does not fit its copy: a change was lost or repeated.
"""

import sqlite3
import sys
from pathlib import Path

from holdfast.client import Client

MISFIT = 3


def main(url: str, file: Path, columns: list[str]) -> None:
    copy = sqlite3.connect(file)
    copy.execute(f"CREATE TABLE IF NOT EXISTS facts ({columns[0]} PRIMARY KEY, {', '.join(columns[1:])})")
    copy.execute("CREATE TABLE IF NOT EXISTS progress (complete_to INTEGER)")
    client = Client(url)
    (complete_to,) = copy.execute("SELECT max(complete_to) FROM progress").fetchone()
    snapshot = "false" if complete_to is not None else "true"
    subscribe = f"SUBSCRIBE facts WITH (PROGRESS = true, SNAPSHOT = {snapshot}, HOLD = copied);"
    with client.stream(subscribe) as changes:
        for change in changes:
            at = int(change["mz_timestamp"])
            if change["mz_progressed"]:
                if complete_to is None or at > complete_to:
                    copy.execute("DELETE FROM progress")
                    copy.execute("INSERT INTO progress VALUES (?)", [at])
                    copy.commit()
                    complete_to = at
                    client.execute(f"ALTER HOLD copied ADVANCE TO {at - 1};")
            elif complete_to is None or at >= complete_to:
                row = {column: change[column] for column in columns}
                apply(copy, int(change["mz_diff"]), row)


def apply(copy: sqlite3.Connection, diff: int, row: dict[str, object]) -> None:
    if diff == 1:
        marks = ", ".join("?" for _ in row)
        done = copy.execute(f"INSERT OR IGNORE INTO facts VALUES ({marks})", list(row.values())).rowcount
    else:
        equal = " AND ".join(f"{column} IS ?" for column in row)
        done = copy.execute(f"DELETE FROM facts WHERE {equal}", list(row.values())).rowcount
    if done != 1:
        print(f"{'+' if diff == 1 else '-'} {row} does not fit", flush=True)
        sys.exit(MISFIT)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3].split(","))
