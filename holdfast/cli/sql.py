"""`holdfast sql`: statements to a server, answers to the terminal."""

import sys
from pathlib import Path

import typer
from rich.console import Console

from holdfast.cli.entities import print_entity
from holdfast.cli.printing import output, print_answer, print_error, told_errors
from holdfast.cli.split import Piece, pieces, place_in
from holdfast.client import Client, ServerError
from holdfast.errors import HoldfastError


class Session:
    """Runs scripts against a server; what SET says holds for the statements after it."""

    def __init__(self, client: Client, console: Console) -> None:
        self._client = client
        self._console = console

    def run(self, script: str) -> bool:
        """Run a script up to its first error, which is printed; True when there was none."""
        for piece in pieces(script):
            try:
                self._run(piece)
            except ServerError as error:
                if error.position is not None:
                    error.position = place_in(script, piece.start, error.position)
                print_error(error, script)
                return False
            except HoldfastError as error:
                print_error(error)
                return False
        return True

    def _run(self, piece: Piece) -> None:
        if piece.asks:
            self._ask(piece)
            return
        for entity in self._client.execute(piece.text):
            if piece.first not in ("SET", "UNSET"):
                print_entity(self._console, entity)

    def _ask(self, piece: Piece) -> None:
        with self._client.stream(piece.text) as answer:
            try:
                print_answer(self._console, answer)
            except KeyboardInterrupt:
                # The usual end of a push query. Leaving the block closes it on the server.
                if answer.header.query is None:
                    raise


def run(execute: str | None, file: Path | None, server: str) -> None:
    with told_errors(), Client(server) as client:
        session = Session(client, output())
        if execute is None and file is None and sys.stdin.isatty():
            from holdfast.cli.shell import shell

            shell(session, client)
        elif not session.run(script_of(execute, file)):
            raise typer.Exit(1)


def script_of(execute: str | None, file: Path | None) -> str:
    if execute is not None:
        return execute
    try:
        return sys.stdin.read() if file is None or str(file) == "-" else file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise HoldfastError(f'the file "{file}" cannot be read', detail=f"{cause}.") from None
