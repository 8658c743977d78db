"""`holdfast test`: run query tests without a server and without Kafka."""

from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from holdfast.cli.console import error_output, output, print_errors
from holdfast.config import load
from holdfast.errors import ConfigError

SHOWN_MISSING = 20


def run(paths: Sequence[Path], *, plans: bool, only: str | None, json: Path | None, config: Path | None) -> None:
    with print_errors():
        settings = load(file=config)
        # Read the files first, so that a wrong path is reported before Spark starts.
        from holdfast.testing.reader import read_cases
        from holdfast.testing.suite import select_cases

        cases = select_cases(read_cases(paths, plans=plans), only)
        if not cases:
            raise ConfigError(
                f'no test matches "{only}"', hint="The pattern is searched in the names of the file and the test."
            )
        from holdfast.testing.case import Result
        from holdfast.testing.report import CaseReport, counts, missing_features, summary, write_json
        from holdfast.testing.suite import run_all, spark_engine

        console = output()
        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=error_output(),
            transient=True,
        )
        task = bar.add_task("starting Spark", total=len(cases))

        def done(entry: CaseReport) -> None:
            bar.update(task, advance=1, description=entry.file)
            if entry.verdict.result is Result.FAILED:
                _print_failure(console, entry.file, entry.name, entry.verdict.reason)

        with bar, spark_engine(settings) as engine:
            entries = run_all(cases, engine, done)
        for missing, count in missing_features(entries)[:SHOWN_MISSING]:
            console.print(Text(f"{count} unsupported: {missing}", style="dim"))
        if json is not None:
            write_json(entries, json)
        console.print(Text(summary(entries), style="bold"))
        if counts(entries)[Result.FAILED]:
            raise typer.Exit(1)


def _print_failure(console: Console, file: str, name: str, reason: str | None) -> None:
    console.print(Text.assemble(("FAILED", "bold red"), f" {file} - {name}: {reason}"), soft_wrap=True)
