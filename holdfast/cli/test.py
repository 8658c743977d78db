"""`holdfast test`: run query tests without a server and without Kafka."""

from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from holdfast.cli.printing import complaints, output, told_errors
from holdfast.config import load
from holdfast.errors import ConfigError

SHOWN_LACKS = 20


def run(paths: Sequence[Path], *, plans: bool, only: str | None, json: Path | None, config: Path | None) -> None:
    with told_errors():
        settings = load(file=config)
        # Reading comes first: a wrong path is told before Spark starts.
        from holdfast.testing.reading import read_cases
        from holdfast.testing.suite import chosen

        cases = chosen(read_cases(paths, plans=plans), only)
        if not cases:
            raise ConfigError(
                f'no test matches "{only}"', hint="A pattern is matched with the file's and the test's name."
            )
        from holdfast.testing.case import Result
        from holdfast.testing.report import Entry, closing, counts, lacks, write_json
        from holdfast.testing.suite import run_all, spark_engine

        console = output()
        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=complaints(),
            transient=True,
        )
        task = bar.add_task("starting Spark", total=len(cases))

        def done(entry: Entry) -> None:
            bar.update(task, advance=1, description=entry.file)
            if entry.verdict.result is Result.FAILED:
                _print_failure(console, entry.file, entry.name, entry.verdict.reason)

        with bar, spark_engine(settings) as engine:
            entries = run_all(cases, engine, done)
        for missing, count in lacks(entries)[:SHOWN_LACKS]:
            console.print(Text(f"{count} unsupported: {missing}", style="dim"))
        if json is not None:
            write_json(entries, json)
        console.print(Text(closing(entries), style="bold"))
        if counts(entries)[Result.FAILED]:
            raise typer.Exit(1)


def _print_failure(console: Console, file: str, name: str, reason: str | None) -> None:
    console.print(Text.assemble(("FAILED", "bold red"), f" {file} - {name}: {reason}"), soft_wrap=True)
