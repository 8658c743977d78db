"""`holdfast sql`: run statements on a server and print the results."""

import re
import sys
import time
from contextlib import closing
from pathlib import Path

import typer
from rich.text import Text

from holdfast.cli.backfill import wait_until_built
from holdfast.cli.console import print_error, print_errors
from holdfast.cli.help import print_help
from holdfast.cli.local import Local, file_of, read_local
from holdfast.cli.outputs import Format, output_in
from holdfast.cli.split import ScriptStatement, script_position, split_statements
from holdfast.cli.terminal import Terminal
from holdfast.client import Client
from holdfast.errors import ConfigError, HoldfastError, nearest

SHOW_ALL = "SHOW STREAMS; SHOW TABLES; SHOW MATERIALIZED VIEWS; SHOW VIEWS;"

MAX_DEPTH = 16
"""Maximum nesting of RUN SCRIPT, so that a script that runs itself ends with an error."""


QUIET = ("SET", "UNSET", "DEFINE", "UNDEFINE")
"""Statements whose response only updates the session and is not shown."""


class ExitShell(Exception):
    """The user entered EXIT."""


class ScriptFailed(Exception):
    """A nested script failed and has printed its error."""


class Session:
    """Runs scripts against a server; SET, OUTPUT and SPOOL apply to the statements after them."""

    def __init__(
        self, client: Client, terminal: Terminal, *, format_: Format = Format.TABLE, wait: bool = False
    ) -> None:
        self._client = client
        self._terminal = terminal
        self._output = output_in(format_, terminal)
        self._wait = wait
        self._depth = 0

    def run(self, script: str, source: str | None = None) -> bool:
        """Run a script up to its first error, which is printed; True if there was none."""
        found = list(split_statements(script))
        for number, statement in enumerate(found, start=1):
            try:
                self._run(statement)
            except HoldfastError as error:
                if error.position is not None:
                    error.position = script_position(script, statement.start, error.position)
                context = context_of(script, statement, number, len(found), source)
                print_error(self._terminal.err, error, script, context)
                return False
            except ScriptFailed:
                return False
        return True

    def _run(self, statement: ScriptStatement) -> None:
        if (command := read_local(statement.text)) is not None:
            self._command(*command)
        elif statement.first == "PRINT":
            self._print(statement.text)
        elif statement.returns_rows:
            began = time.monotonic()
            with self._client.stream(statement.text) as stream:
                self._output.rows(stream, began)
        else:
            self._execute(statement)

    def _print(self, text: str) -> None:
        """Print records until there are no more, or until Ctrl-C."""
        with closing(self._client.lines(text)) as lines:
            try:
                for line in lines:
                    self._terminal.out.print(Text(line), soft_wrap=True)
            except KeyboardInterrupt:
                if self._terminal.is_interactive:
                    self._terminal.out.print()

    def _execute(self, statement: ScriptStatement) -> None:
        for entity in self._client.execute(statement.text):
            if statement.first not in QUIET:
                self._output.entity(entity)
            results = [entity.get("commandStatus", {}), *entity.get("changes", ())]
            for query in filter(None, (each.get("queryId") for each in results)):
                if self._wait and statement.first in ("CREATE", "INSERT", "COMMIT"):
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
                text = f"DESCRIBE {match['object']};" if match["object"] else SHOW_ALL
                for entity in self._client.execute(text):
                    self._output.entity(entity)
            case "clear":
                self._terminal.out.clear()
            case "exit":
                raise ExitShell
            case _:
                raise AssertionError(command.name)

    def _run_script(self, file: str) -> None:
        if self._depth == MAX_DEPTH:
            raise HoldfastError(
                "scripts are nested too deeply", detail=f"RUN SCRIPT can be nested at most {MAX_DEPTH} levels deep."
            )
        self._depth += 1
        try:
            if not self.run(read_script(Path(file).expanduser()), file):
                raise ScriptFailed
        finally:
            self._depth -= 1

    def _spool(self, file: str | None) -> None:
        if file is not None:
            self._terminal.spool(Path(file))
            self._terminal.err.print(f"Copying output to {file}.")
        elif not self._terminal.stop_spool():
            self._terminal.err.print("Output was not being copied.")


def context_of(script: str, statement: ScriptStatement, number: int, count: int, source: str | None) -> str | None:
    """Which statement of a script failed; None if there is only one."""
    if count == 1 and source is None:
        return None
    line = script.count("\n", 0, statement.start) + 1
    return f"statement {number}, starting at line {line}{f' of {source}' if source else ''}."


def format_of(name: str | None) -> Format:
    names = {**{each.value: each for each in Format}, "TABULAR": Format.TABLE}
    if name is None or name.upper() not in names:
        known = [each.value for each in Format]
        raise ConfigError(f'unknown output format "{name or ""}"', hint=nearest(name or "", known, plural="formats"))
    return names[name.upper()]


def run(execute: str | None, file: Path | None, server: str, output: str, *, wait: bool) -> None:
    terminal = Terminal()
    with print_errors(), Client(server) as client:
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
        except ExitShell:
            return


def read_script(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise HoldfastError(f'the file "{file}" cannot be read', detail=f"{cause}.") from None
