"""Waits for a query to catch up with what its input already holds, and shows how far it has come."""

import time
from collections.abc import Mapping
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from holdfast.cli.terminal import Terminal
from holdfast.client import Client

BUILDING = "BUILDING"
ASK_SECONDS = 0.2
QUIET_SECONDS = 0.4
"""A query that has caught up by then shows no bar."""


def wait_until_built(client: Client, query: str, terminal: Terminal) -> None:
    """Return once the query does not build any more; Ctrl-C stops waiting, not the query."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    bar = Progress(*columns, console=terminal.out, transient=True, disable=not terminal.is_interactive)
    quiet_until = time.monotonic() + QUIET_SECONDS
    task = bar.add_task(f"{query} catches up", total=1.0)
    try:
        while (found := query_of(client, query)) is not None and found["state"] == BUILDING:
            if time.monotonic() > quiet_until:
                bar.start()
                bar.update(task, completed=found.get("done") or 0.0)
            time.sleep(ASK_SECONDS)
    except KeyboardInterrupt:
        bar.stop()
        terminal.err.print(f"{query} goes on catching up; SHOW QUERIES says how far it is.")
        return
    finally:
        bar.stop()
    if found is not None and found.get("reason"):
        terminal.err.print(f"{query} is in {found['state']}: {found['reason']}")


def query_of(client: Client, id: str) -> Mapping[str, Any] | None:
    (listed,) = client.execute("SHOW QUERIES;")
    found: Mapping[str, Any] | None = next((query for query in listed["queries"] if query["id"] == id), None)
    return found
