"""`make conformance`: run all of ksqlDB's tests, write docs/conformance.md, and check the list of passing cases.

The list may only grow: a run in which one of its cases does not pass fails. `--update` adds newly passing cases.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from holdfast.config import load
from holdfast.testing.case import Result
from holdfast.testing.report import CaseReport, summary, write_json
from holdfast.testing.suite import run_all, spark_engine

from .data import KINDS, PAGE, PASSING, cases, folder, label, passing
from .page import page


def main() -> int:
    options = _options()
    if not folder().is_dir():
        print(f"the conformance data is not at {folder()}; set HOLDFAST_CONFORMANCE_DIR", file=sys.stderr)
        return 1
    results = _run(KINDS if options.kind is None else (options.kind,))
    PAGE.write_text(page(results, PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""), encoding="utf-8")
    for kind, entries in results.items():
        if options.json is not None:
            write_json(entries, options.json.with_name(f"{options.json.stem}-{kind}{options.json.suffix}"))
        print(f"{kind}: {summary(entries)}; slowest {max(e.seconds for e in entries):.2f} s")
    now = {
        label(kind, e.file, e.name)
        for kind, entries in results.items()
        for e in entries
        if e.verdict.result is Result.PASSED
    }
    before = passing()
    if options.update:
        PASSING.write_text("".join(f"{line}\n" for line in sorted(before | now)), encoding="utf-8")
    lost = sorted(line for line in before - now if line.partition("/")[0] in results)
    for line in lost:
        print(f"no longer passes: {line}", file=sys.stderr)
    if not options.update and now - before:
        print(f"{len(now - before)} more cases pass than are in the list; add them with: make conformance UPDATE=1")
    return 1 if lost else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make conformance", description=__doc__)
    parser.add_argument("--update", action="store_true", help="add newly passing cases to the list")
    parser.add_argument("--json", type=Path, help="also write reports as JSON")
    parser.add_argument("--kind", choices=KINDS, help="run the cases of one kind only")
    return parser.parse_args()


def _run(kinds: Iterable[str]) -> dict[str, list[CaseReport]]:
    found = {kind: cases(kind) for kind in kinds}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    known, results = passing(), {}
    with bar, spark_engine(load()) as engine:
        for kind, wanted in found.items():
            task = bar.add_task(kind, total=len(wanted))

            def done(entry: CaseReport, kind: str = kind, task: TaskID = task) -> None:
                bar.update(task, advance=1)
                name = label(kind, entry.file, entry.name)
                if name in known and entry.verdict.result is not Result.PASSED:
                    # Report immediately: the whole run takes long.
                    bar.console.print(Text(f"no longer passes: {name}: {entry.verdict.reason}", style="red"))

            results[kind] = run_all(wanted, engine, done)
    return results


if __name__ == "__main__":
    sys.exit(main())
