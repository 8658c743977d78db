"""What the command prints: errors, tables, rows."""

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

from holdfast.client import Row, Stream
from holdfast.client.shown import is_right, shown
from holdfast.errors import HoldfastError, Position

LINES = Box("    \n  | \n -+ \n  | \n -+ \n -+ \n  | \n    \n", ascii=True)
TOMBSTONE = "<TOMBSTONE>"
LOOK_AHEAD = 1000
PIPED_WIDTH = 100_000
INTERRUPTED = 130


def output() -> Console:
    """The console of results: without colour and without line breaks of its own when it is not a terminal."""
    return Console(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False, emoji=False)


def complaints() -> Console:
    return Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)


# ---- errors


@contextmanager
def told_errors() -> Iterator[None]:
    """Print an error of ours as text and exit with 1; a traceback is for our own mistakes."""
    try:
        yield
    except HoldfastError as error:
        print_error(error)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def print_error(error: HoldfastError, script: str | None = None) -> None:
    """Message, the line of the script with a caret under the place, detail and hint."""
    console = complaints()
    where = f" at line {error.position.line}, column {error.position.column}" if error.position else ""
    console.print(Text.assemble(("ERROR", "bold red"), ": ", error.message, "" if script else where))
    if error.position and script is not None:
        console.print(Text(caret(script, error.position)))
    for name, told in (("DETAIL", error.detail), ("HINT", error.hint)):
        if told:
            console.print(Text.assemble((name, "bold"), ": ", told))


def caret(script: str, position: Position) -> str:
    lines = script.split("\n")
    line = lines[position.line - 1] if position.line <= len(lines) else ""
    label = f"LINE {position.line}: "
    before = line[: position.column - 1].replace("\t", " ")
    return f"{label}{line.replace(chr(9), ' ').rstrip()}\n{' ' * (len(label) + cell_len(before))}^"


# ---- values and tables


def one_line(text: str) -> str:
    return " ".join(text.split())


def table(names: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[bool] = ()) -> Table:
    """An aligned table."""
    made = Table(box=LINES, show_edge=False, pad_edge=False, header_style="bold", padding=(0, 1))
    for i, name in enumerate(names):
        made.add_column(Text(name), justify="right" if i < len(right) and right[i] else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(shown(value)) for value in row))
    return made


def cells(row: Row) -> list[str]:
    if not row.tombstone:
        return [shown(value) for value in row.values]
    return [TOMBSTONE if value is None else shown(value) for value in row.values]


class RowPrinter:
    """Prints rows as they come; a column widens when a value needs it, which those before cannot know."""

    def __init__(self, console: Console, answer: Stream) -> None:
        self._console = console
        self._right = [is_right(type_) for type_ in answer.header.types]
        self._names = list(answer.header.names)
        self._widths = [max(cell_len(name), 8) for name in self._names]
        self._started = False

    def fit(self, rows: Sequence[Row]) -> None:
        """Choose the widths that these rows need, before anything is printed."""
        columns = zip(self._names, *(cells(row) for row in rows), strict=True)
        self._widths = [max(map(cell_len, column)) for column in columns]

    def start(self) -> None:
        self._print(self._names, "bold")
        self._console.print("-+-".join("-" * width for width in self._widths), soft_wrap=True)

    def print(self, row: Row) -> None:
        values = [value.replace("\n", "\\n") for value in cells(row)]
        self._widths = [max(width, cell_len(value)) for width, value in zip(self._widths, values, strict=True)]
        self._print(values, "red" if row.tombstone else "")

    def _print(self, values: Sequence[str], style: str) -> None:
        padded = []
        for value, width, right in zip(values, self._widths, self._right, strict=True):
            space = " " * (width - cell_len(value))
            padded.append(space + value if right else value + space)
        self._console.print(Text(" | ".join(padded).rstrip(), style=style), soft_wrap=True)
        self._console.file.flush()


def print_answer(console: Console, answer: Stream) -> None:
    """A pull as a table, a push row by row until it ends."""
    if answer.header.notice:
        complaints().print(Text(f"NOTICE: {answer.header.notice}"))
    printer = RowPrinter(console, answer)
    rows = answer
    count = 0
    if answer.header.query is None:
        first = [row for row, _ in zip(rows, range(LOOK_AHEAD), strict=False)]
        printer.fit(first)
        printer.start()
        for row in first:
            printer.print(row)
        count = len(first)
    else:
        printer.start()
    for row in rows:
        printer.print(row)
        count += 1
    console.print(Text(f"({count} {'row' if count == 1 else 'rows'})", style="dim"))


def put(console: Console, block: RenderableType, *, indent: int = 0) -> None:
    """Print a block; in a pipe without the spaces that fill its lines."""
    block = Padding(block, (0, 0, 0, indent), expand=False) if indent else block
    if console.is_terminal:
        console.print(block)
        return
    with console.capture() as captured:
        console.print(block)
    for line in captured.get().splitlines():
        console.print(Text(line.rstrip()), soft_wrap=True)
    console.file.flush()


def pairs(found: Mapping[str, Any]) -> Table:
    made = Table.grid(padding=(0, 2))
    for name, value in found.items():
        made.add_row(Text(name, style="bold"), Text(shown(value)))
    return made
