"""Output formats: tables for people, JSON and CSV for programs.

JSON is one object per line: a row by its column names, `{"@tombstone": {...}}` for a deleted row, `{"@snapshot": t}`
after the rows that EMIT ALL begins with, and for other statements the server's response. CSV has a header line; NULL is
an empty field, and an empty string is `""`; a push query has a last column `tombstone`, `true` for a deleted row.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from itertools import chain, islice
from typing import Any, Protocol

import orjson
from rich.text import Text

from holdfast.cli.console import pairs, put, put_listing
from holdfast.cli.layout import TableLayout
from holdfast.cli.terminal import Terminal
from holdfast.client import Entity, Notice, Row, Snapshot, Stream
from holdfast.client.display import TOMBSTONE, format_value, is_right_aligned
from holdfast.client.entities import Document, Grid, Pairs, blocks, warnings
from holdfast.client.session import fragment
from holdfast.client.values import plain
from holdfast.types import Scalar, SqlType, is_number

LOOK_AHEAD = 1000
WANTED = {Scalar.BOOLEAN: 5, Scalar.DATE: 10, Scalar.TIME: 12, Scalar.TIMESTAMP: 23}
NUMBER_WIDTH = 12


class Format(StrEnum):
    """Output formats by name."""

    TABLE = "TABLE"
    JSON = "JSON"
    CSV = "CSV"


class Output(Protocol):
    """Prints the responses of a server."""

    def entity(self, entity: Entity) -> None: ...

    def rows(self, stream: Stream, began: float) -> None:
        """Print rows as they arrive, up to the last; `began` is when the query was sent."""


def output_in(format_: Format, terminal: Terminal) -> Output:
    match format_:
        case Format.TABLE:
            return TableOutput(terminal)
        case Format.JSON:
            return JsonOutput(terminal)
        case Format.CSV:
            return CsvOutput(terminal)


@contextmanager
def stoppable(stream: Stream, terminal: Terminal) -> Iterator[None]:
    """End a push query normally on Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt:
        if not stream.header.is_push:
            raise
        if terminal.is_interactive:
            terminal.out.print()  # ends the line on which the terminal echoed ^C


def print_notices(terminal: Terminal, notices: Sequence[str]) -> None:
    for notice in notices:
        terminal.err.print(Text(f"NOTICE: {notice}", style="yellow"))


class TableOutput:
    """Aligned tables, in colour on a terminal."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._console = terminal.out

    def entity(self, entity: Entity) -> None:
        print_notices(self._terminal, warnings(entity))
        for number, block in enumerate(blocks(entity)):
            if number:
                self._console.print()
            match block:
                case str():
                    self._console.print(Text(block), soft_wrap=True)
                case Grid(names, rows, plural) if not rows:
                    del names
                    self._console.print(Text(f"There are no {plural}.", style="dim"))
                case Grid(names, rows):
                    put_listing(self._console, names, rows)
                case Pairs(found):
                    put(self._console, pairs(found))
                case Document(text):
                    self._console.file.write(text)
        self._console.file.flush()

    def rows(self, stream: Stream, began: float) -> None:
        header = stream.header
        print_notices(self._terminal, [header.notice] if header.notice else [])
        budget = self._console.width if self._terminal.is_interactive else None
        right = [is_right_aligned(type_) for type_ in header.types]
        unfolded = [wanted_width(type_) > 0 for type_ in header.types]
        layout = TableLayout(header.names, right, budget, unfolded)
        first: list[Row] = []
        if header.is_push:
            layout.share([wanted_width(type_) for type_ in header.types])
        else:
            first = list(islice(stream, LOOK_AHEAD))
            layout.fit([cells(row) for row in first])
        count = 0
        with stoppable(stream, self._terminal):
            self._lines(layout.heading(), "bold")
            for part in chain(first, stream.parts()):
                match part:
                    case Row() as row:
                        count += 1
                        self._lines(layout.row(cells(row), count), "red" if row.tombstone else "")
                    case Snapshot(time=at):
                        self._lines(iter([f"-- the rows above are as of {at}; changes follow"]), "dim")
                    case Notice(message):
                        print_notices(self._terminal, [message])
        rows = f"{count} {'row' if count == 1 else 'rows'}"
        took = f" in {duration_text(time.monotonic() - began)}" if self._terminal.is_interactive else ""
        self._lines(iter([f"({rows}{took})"]), "dim")

    def _lines(self, lines: Iterator[str], style: str) -> None:
        for line in lines:
            self._console.print(Text(line, style=style), soft_wrap=True)
        self._console.file.flush()


def cells(row: Row) -> list[str]:
    if not row.tombstone:
        return [format_value(value) for value in row]
    return [TOMBSTONE if value is None else format_value(value) for value in row]


def wanted_width(type_: SqlType) -> int:
    """The width of a type's values in terminal columns; 0 if it is unknown."""
    return NUMBER_WIDTH if is_number(type_) else WANTED.get(type_, 0) if isinstance(type_, Scalar) else 0


def duration_text(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


class JsonOutput:
    """One JSON object per line."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def entity(self, entity: Entity) -> None:
        self._put(entity)

    def rows(self, stream: Stream, began: float) -> None:
        del began
        print_notices(self._terminal, [stream.header.notice] if stream.header.notice else [])
        with stoppable(stream, self._terminal):
            for part in stream.parts():
                match part:
                    case Row() as row:
                        self._put({"@tombstone": row.as_dict()} if row.tombstone else row.as_dict())
                    case Snapshot(time=at):
                        self._put({"@snapshot": at})
                    case Notice(message):
                        print_notices(self._terminal, [message])

    def _put(self, entry: dict[str, Any]) -> None:
        # Written directly to the file, because rich formats text for people.
        self._terminal.out.file.write(orjson.dumps(plain(entry), default=fragment).decode() + "\n")
        self._terminal.out.file.flush()


class CsvOutput:
    """Comma-separated values; other output goes to stderr."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def entity(self, entity: Entity) -> None:
        print_notices(self._terminal, warnings(entity))
        for block in blocks(entity):
            match block:
                case str():
                    self._terminal.err.print(Text(block))
                case Grid(names, rows):
                    self._put(names)
                    for row in rows:
                        self._put(row)
                case Pairs(found):
                    for pair in found.items():
                        self._put(pair)
                case Document(text):
                    self._terminal.out.file.write(text)
                    self._terminal.out.file.flush()

    def rows(self, stream: Stream, began: float) -> None:
        del began
        header = stream.header
        print_notices(self._terminal, [header.notice] if header.notice else [])
        with stoppable(stream, self._terminal):
            self._put([*header.names, *(["tombstone"] if header.is_push else [])])
            for part in stream.parts():
                match part:
                    case Row() as row:
                        self._put([*row, *([row.tombstone or None] if header.is_push else [])])
                    case Notice(message):
                        print_notices(self._terminal, [message])

    def _put(self, values: Sequence[Any]) -> None:
        self._terminal.out.file.write(",".join(map(csv_field, values)) + "\n")
        self._terminal.out.file.flush()


def csv_field(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else format_value(value)
    if text == "" or any(character in text for character in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
