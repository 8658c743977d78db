"""Waits for the backfill of a query, and shows its progress."""

import time
from collections.abc import Mapping
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from holdfast.cli.terminal import Terminal
from holdfast.client import Client

BUILDING = "BUILDING"
POLL_SECONDS = 0.2
QUIET_SECONDS = 0.4
"""A shorter backfill shows no progress bar."""


def wait_until_built(client: Client, query: str, terminal: Terminal) -> None:
    """Wait until the query has caught up; Ctrl-C stops waiting, not the query."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    bar = Progress(*columns, console=terminal.out, transient=True, disable=not terminal.is_interactive)
    quiet_until = time.monotonic() + QUIET_SECONDS
    task = bar.add_task(f"backfilling {query}", total=1.0)
    try:
        while (found := query_of(client, query)) is not None and found["state"] == BUILDING:
            if time.monotonic() > quiet_until:
                bar.start()
                bar.update(task, completed=found.get("done") or 0.0)
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        bar.stop()
        terminal.err.print(f"{query} is still catching up; SHOW QUERIES shows its progress.")
        return
    finally:
        bar.stop()
    if found is not None and found.get("reason"):
        terminal.err.print(f"{query} is in {found['state']}: {found['reason']}")


def query_of(client: Client, id: str) -> Mapping[str, Any] | None:
    (listed,) = client.execute("SHOW QUERIES;")
    found: Mapping[str, Any] | None = next((query for query in listed["queries"] if query["id"] == id), None)
    return found
