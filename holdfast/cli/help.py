"""Help, generated from the grammar that the server parses."""

import textwrap
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from holdfast.cli.console import put
from holdfast.cli.local import LOCALS
from holdfast.cli.terminal import Terminal
from holdfast.sql.syntax.manual import entry_of
from holdfast.sql.syntax.synopsis import Synopsis, by_rule, synopses

LEGEND = "[…] is optional; {… | …} is a choice; “, …” means that more can follow."
KEYS = (
    "A statement can span several lines; Enter runs it after its ;. Tab completes, Up and Ctrl-R search the history, "
    "Ctrl-C ends a push query."
)
MAX_COLUMNS = 110


def print_help(terminal: Terminal, words: Sequence[str]) -> None:
    """All commands and statements, or the statements that begin with some words."""
    columns = min(terminal.out.width, MAX_COLUMNS)
    for block in about(words, columns) if words else overview(columns):
        put(terminal.out, block)


def overview(columns: int) -> Iterator[RenderableType]:
    yield Text("Commands of the shell", style="bold")
    yield side_by_side([(known.synopsis, known.summary) for known in LOCALS], columns)
    yield Text("\nStatements; HELP CREATE TABLE shows the syntax of one", style="bold")
    entries = [entry_of(rule, forms) for rule, forms in by_rule(synopses()).items()]
    yield side_by_side([(entry.title, entry.about) for entry in entries], columns)
    yield Text("\n" + textwrap.fill(KEYS, columns))


def side_by_side(rows: Sequence[tuple[str, str]], columns: int) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.width = columns if any(len(left) + len(right) + 32 > columns for left, right in rows) else None
    for left, right in rows:
        grid.add_row(Text(""), Text(left, style="cyan", no_wrap=True), Text(right))
    return grid


def about(words: Sequence[str], columns: int) -> Iterator[RenderableType]:
    wanted = [word.upper().rstrip(";") for word in words]
    local = [known for known in LOCALS if wanted[0] in known.synopsis.upper().split()]
    found = [each for each in synopses() if each.is_about(wanted)]
    for known in local:
        yield Text.assemble((known.synopsis, "cyan"), "  ", known.summary)
    for rule, forms in by_rule(found).items():
        yield from statement(rule, forms, columns)
    if found:
        yield Text(textwrap.fill(LEGEND, columns), style="dim")
    elif not local:
        yield Text(f"No statement begins with {' '.join(wanted)}. HELP lists all statements.")


def statement(rule: str, forms: Sequence[Synopsis], columns: int) -> Iterator[RenderableType]:
    entry = entry_of(rule, forms)
    yield Text(entry.about or entry.title, style="bold")
    for form in forms:
        wrapped = textwrap.wrap(
            form.text, columns, initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False
        )
        yield Text("\n".join(wrapped), style="cyan")
    if entry.example:
        yield Text(textwrap.indent(entry.example, "  "), style="green")
    yield Text("")
