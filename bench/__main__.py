"""`make bench`: measures everything and writes docs/benchmarks.md."""

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench import (
    backfill,
    holds,
    http_server,
    indexes,
    language,
    latency,
    memory,
    publishing,
    store,
    subscribe,
    ticks,
    windows,
)

PARTS = {
    "backfill": backfill.measure,
    "latency": latency.measure,
    "ticks": ticks.measure,
    "publishing": publishing.measure,
    "language": language.measure,
    "store": store.measure,
    "http": http_server.measure,
    "holds": holds.measure,
    "indexes": indexes.measure,
    "memory": memory.measure,
    "subscribe": subscribe.measure,
    "windows": windows.measure,
}


def main() -> None:
    chosen = sys.argv[1:] or list(PARTS)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    lines = [
        "# Benchmarks",
        "",
        f"Measured on {datetime.now(UTC):%Y-%m-%d} at commit {commit}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, by `make bench`. Machines differ and are shared: read the ratios, which are of "
        "one run, rather than the times.",
        "",
    ]
    for name in chosen:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        table = PARTS[name]()
        print("\n".join(table), flush=True)
        lines += [*table, ""]
    if not sys.argv[1:]:
        (Path(__file__).parents[1] / "docs" / "benchmarks.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
