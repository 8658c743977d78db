"""Printing shared by all commands: errors and small tables."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from rich.box import Box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from holdfast.cli.layout import listing
from holdfast.cli.terminal import Terminal
from holdfast.client.display import format_value
from holdfast.errors import HoldfastError, Position

LINES = Box("    \n  | \n -+ \n  | \n -+ \n -+ \n  | \n    \n", ascii=True)
INTERRUPTED = 130
PIPE_CLOSED = 141


def output() -> Console:
    """The console for results: no colours and no wrapping unless it is a terminal."""
    return Terminal().out


def error_output() -> Console:
    """The console for errors, notices and progress bars."""
    return Terminal().err


# ---- errors


@contextmanager
def print_errors() -> Iterator[None]:
    """Print a Holdfast error as text and exit with 1; only bugs show a traceback."""
    try:
        yield
    except HoldfastError as error:
        print_error(Terminal().err, error)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader closed the pipe. Python would flush stdout again at exit and fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(PIPE_CLOSED) from None


def print_error(console: Console, error: HoldfastError, script: str | None = None, context: str | None = None) -> None:
    """Message, the line of the script with a caret under the position, detail, hint and context."""
    where = f" at line {error.position.line}, column {error.position.column}" if error.position else ""
    console.print(Text.assemble(("ERROR", "bold red"), ": ", error.message, "" if script else where))
    if error.position and script is not None:
        console.print(Text(caret(script, error.position, console.width if console.is_terminal else None)))
    for name, text in (("DETAIL", error.detail), ("HINT", error.hint), ("CONTEXT", context)):
        if text:
            console.print(Text.assemble((name, "bold"), ": ", text))


def caret(script: str, position: Position, columns: int | None = None) -> str:
    """The line at a position with a caret under it; a line wider than the terminal is cut around the position."""
    lines = script.split("\n")
    line = lines[position.line - 1] if position.line <= len(lines) else ""
    line, at = line.replace("\t", " ").rstrip(), position.column - 1
    label = f"LINE {position.line}: "
    room = max(columns - len(label) - 1, 20) if columns else None
    if room and cell_len(line) > room:
        start = max(0, min(at - room // 2, len(line) - room))
        before, after = ("…" if start else ""), ("…" if start + room < len(line) else "")
        line, at = before + line[start + len(before) : start + room - len(after)] + after, at - start
    return f"{label}{line}\n{' ' * (len(label) + cell_len(line[:at]))}^"


# ---- tables


def table(names: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[bool] = ()) -> Table:
    """An aligned table."""
    grid = Table(box=LINES, show_edge=False, pad_edge=False, header_style="bold", padding=(0, 1))
    for i, name in enumerate(names):
        grid.add_column(Text(name), justify="right" if i < len(right) and right[i] else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(format_value(value)) for value in row))
    return grid


def put(console: Console, block: RenderableType, *, indent: int = 0) -> None:
    """Print a block, in a pipe without trailing spaces."""
    block = Padding(block, (0, 0, 0, indent), expand=False) if indent else block
    if console.is_terminal:
        console.print(block)
        return
    with console.capture() as captured:
        console.print(block)
    for line in captured.get().splitlines():
        console.print(Text(line.rstrip()), soft_wrap=True)
    console.file.flush()


def put_listing(console: Console, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; on a terminal, it fits the width."""
    texts = [[format_value(value) for value in row] for row in rows]
    budget = console.width if console.is_terminal else None
    for number, line in enumerate(listing(names, texts, budget)):
        style = "bold" if number == 0 or line.startswith("-- row ") else ""
        console.print(Text(line, style=style), soft_wrap=True)
    console.file.flush()


def pairs(entries: Mapping[str, Any]) -> Table:
    grid = Table.grid(padding=(0, 2))
    for name, value in entries.items():
        grid.add_row(Text(name, style="bold"), Text(format_value(value)))
    return grid
