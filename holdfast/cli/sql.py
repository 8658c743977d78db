"""`holdfast sql`: statements to a server, answers to the terminal."""

import re
import sys
import time
from contextlib import closing
from pathlib import Path

import typer
from rich.text import Text

from holdfast.cli.backfill import wait_until_built
from holdfast.cli.help import print_help
from holdfast.cli.local import Local, file_of, read_local
from holdfast.cli.outputs import Format, output_in
from holdfast.cli.printing import print_error, told_errors
from holdfast.cli.split import Piece, pieces, place_in
from holdfast.cli.terminal import Terminal
from holdfast.client import Client
from holdfast.errors import ConfigError, HoldfastError, nearest

EVERYTHING = "SHOW STREAMS; SHOW TABLES; SHOW MATERIALIZED VIEWS; SHOW VIEWS;"

DEEPEST = 16
"""Scripts that run scripts: one that runs itself is found before the stack is."""


QUIET = ("SET", "UNSET", "DEFINE", "UNDEFINE")
"""Their answer is what a client carries on; nobody asked to see it."""


class Leave(Exception):
    """EXIT was said."""


class ScriptFailed(Exception):
    """A script that was run by a statement failed, and has said so."""


class Session:
    """Runs scripts against a server; what SET, OUTPUT and SPOOL say holds for the statements after it."""

    def __init__(
        self, client: Client, terminal: Terminal, *, format_: Format = Format.TABLE, wait: bool = False
    ) -> None:
        self._client = client
        self._terminal = terminal
        self._output = output_in(format_, terminal)
        self._wait = wait
        self._depth = 0

    def run(self, script: str, source: str | None = None) -> bool:
        """Run a script up to its first error, which is printed; True when there was none."""
        found = list(pieces(script))
        for number, piece in enumerate(found, start=1):
            try:
                self._run(piece)
            except HoldfastError as error:
                if error.position is not None:
                    error.position = place_in(script, piece.start, error.position)
                context = context_of(script, piece, number, len(found), source)
                print_error(self._terminal.err, error, script, context)
                return False
            except ScriptFailed:
                return False
        return True

    def _run(self, piece: Piece) -> None:
        if (command := read_local(piece.text)) is not None:
            self._command(*command)
        elif piece.first == "PRINT":
            self._print(piece.text)
        elif piece.asks:
            began = time.monotonic()
            with self._client.stream(piece.text) as stream:
                self._output.rows(stream, began)
        else:
            self._execute(piece)

    def _print(self, text: str) -> None:
        """Ctrl-C is the usual end of it."""
        with closing(self._client.lines(text)) as lines:
            try:
                for line in lines:
                    self._terminal.out.print(Text(line), soft_wrap=True)
            except KeyboardInterrupt:
                if self._terminal.is_interactive:
                    self._terminal.out.print()

    def _execute(self, piece: Piece) -> None:
        for entity in self._client.execute(piece.text):
            if piece.first not in QUIET:
                self._output.entity(entity)
            told = [entity.get("commandStatus", {}), *entity.get("changes", ())]
            for query in filter(None, (each.get("queryId") for each in told)):
                if self._wait and piece.first in ("CREATE", "INSERT", "COMMIT"):
                    wait_until_built(self._client, query, self._terminal)

    # ---- the shell's own commands

    def _command(self, command: Local, match: re.Match[str]) -> None:
        match command.name:
            case "help":
                print_help(self._terminal, match["words"].split())
            case "run":
                self._run_script(file_of(match) or "")
            case "spool":
                self._spool(file_of(match))
            case "output":
                self._output = output_in(format_of(match["format"]), self._terminal)
            case "describe":
                text = f"DESCRIBE {match['object']};" if match["object"] else EVERYTHING
                for entity in self._client.execute(text):
                    self._output.entity(entity)
            case "clear":
                self._terminal.out.clear()
            case "exit":
                raise Leave
            case _:
                raise AssertionError(command.name)

    def _run_script(self, file: str) -> None:
        if self._depth == DEEPEST:
            raise HoldfastError("scripts run each other without end", detail=f"They are {DEEPEST} deep.")
        self._depth += 1
        try:
            if not self.run(read_script(Path(file).expanduser()), file):
                raise ScriptFailed
        finally:
            self._depth -= 1

    def _spool(self, file: str | None) -> None:
        if file is not None:
            self._terminal.spool(Path(file))
            self._terminal.err.print(f"What is shown is copied to {file}.")
        elif not self._terminal.stop_spool():
            self._terminal.err.print("Nothing was being copied.")


def context_of(script: str, piece: Piece, number: int, count: int, source: str | None) -> str | None:
    """Which statement of a script it was; None where there is only one to think of."""
    if count == 1 and source is None:
        return None
    line = script.count("\n", 0, piece.start) + 1
    return f"statement {number}, which begins in line {line}{f' of {source}' if source else ''}."


def format_of(name: str | None) -> Format:
    names = {**{each.value: each for each in Format}, "TABULAR": Format.TABLE}
    if name is None or name.upper() not in names:
        known = [each.value for each in Format]
        raise ConfigError(f'there is no output "{name or ""}"', hint=nearest(name or "", known, plural="forms"))
    return names[name.upper()]


def run(execute: str | None, file: Path | None, server: str, output: str, *, wait: bool) -> None:
    terminal = Terminal()
    with told_errors(), Client(server) as client:
        format_ = format_of(output)
        if execute is None and file is None and sys.stdin.isatty() and terminal.is_interactive:
            from holdfast.cli.shell import shell

            shell(Session(client, terminal, format_=format_, wait=True), client, terminal)
            return
        session = Session(client, terminal, format_=format_, wait=wait)
        if execute is not None:
            script, source = execute, None
        elif file is None or str(file) == "-":
            script, source = sys.stdin.read(), None
        else:
            script, source = read_script(file), str(file)
        try:
            if not session.run(script, source):
                raise typer.Exit(1)
        except Leave:
            return


def read_script(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise HoldfastError(f'the file "{file}" cannot be read', detail=f"{cause}.") from None
