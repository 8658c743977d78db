"""Help, made from the grammar: what it shows is what the server reads."""

import textwrap
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from holdfast.cli.local import LOCALS
from holdfast.cli.printing import put
from holdfast.cli.terminal import Terminal
from holdfast.sql.manual import entry_of
from holdfast.sql.synopsis import Synopsis, by_rule, synopses

LEGEND = "[…] may be left out; of {… | …} one is chosen; “, …” says that more can follow."
KEYS = (
    "A statement may take several lines; Enter runs it at its ;. Tab completes, the arrow up and Ctrl-R find what was "
    "typed before, Ctrl-C ends a push query."
)
MOST_COLUMNS = 110


def print_help(terminal: Terminal, words: Sequence[str]) -> None:
    """All commands and statements, or the statements that begin with some words."""
    columns = min(terminal.out.width, MOST_COLUMNS)
    for block in about(words, columns) if words else everything(columns):
        put(terminal.out, block)


def everything(columns: int) -> Iterator[RenderableType]:
    yield Text("Commands of the shell", style="bold")
    yield side_by_side([(known.synopsis, known.summary) for known in LOCALS], columns)
    yield Text("\nStatements; HELP CREATE TABLE shows how one is written", style="bold")
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
        yield Text(f"No statement begins with {' '.join(wanted)}. HELP alone lists them.")


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
