"""The consoles for results and errors, and the spool, a copy of both in a file."""

import re
import sys
from pathlib import Path
from typing import TextIO

from rich.console import Console

from holdfast.errors import HoldfastError

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\r(?!\n)")
PIPED_WIDTH = 100_000


class Tee:
    """A file that also writes to the spool, without colours and cursor movements."""

    def __init__(self, file: TextIO, terminal: "Terminal") -> None:
        self._file = file
        self._terminal = terminal

    @property
    def encoding(self) -> str:
        return self._file.encoding or "utf-8"

    def write(self, text: str) -> int:
        self._terminal.note(ESCAPES.sub("", text))
        return self._file.write(text)

    def flush(self) -> None:
        self._file.flush()

    def isatty(self) -> bool:
        return self._file.isatty()

    def fileno(self) -> int:
        return self._file.fileno()


class PlainConsole(Console):
    """Rich's console, but a closed pipe raises `BrokenPipeError` instead of exiting."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Terminal:
    """The consoles for results (`out`) and errors (`err`); in a pipe they have no colours and do not wrap lines."""

    def __init__(self) -> None:
        self._spool: TextIO | None = None
        out, err = Tee(sys.stdout, self), Tee(sys.stderr, self)
        self.out = PlainConsole(
            file=out,  # type: ignore[arg-type]
            width=None if out.isatty() else PIPED_WIDTH,
            highlight=False,
            emoji=False,
            markup=False,
        )
        self.err = PlainConsole(file=err, highlight=False, emoji=False, markup=False, soft_wrap=True)  # type: ignore[arg-type]

    @property
    def is_interactive(self) -> bool:
        return self.out.is_terminal

    def spool(self, path: Path) -> None:
        """Append all further output to a file."""
        self.stop_spool()
        try:
            self._spool = path.expanduser().open("a", encoding="utf-8")
        except OSError as cause:
            raise HoldfastError(f'the file "{path}" cannot be written', detail=f"{cause.strerror}.") from None

    def stop_spool(self) -> bool:
        """Stop copying; True if there was a spool."""
        before, self._spool = self._spool, None
        if before is not None:
            before.close()
        return before is not None

    def note(self, text: str) -> None:
        """Write only to the spool."""
        if self._spool is not None:
            self._spool.write(text)
            self._spool.flush()
