"""A program in an emulated terminal: tests type into it and read its screen."""

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pexpect
import pyte

WAIT_SECONDS = 60.0
COMMAND = "from holdfast.cli.main import main; main()"
KEYS = {"enter": "\r", "tab": "\t", "ctrl-c": "\x03", "ctrl-d": "\x04", "up": "\x1b[A"}


class Answering(pyte.Screen):
    """A screen that replies to requests for its cursor position, as terminals do."""

    def __init__(self, columns: int, lines: int, answer: Callable[[str], object]) -> None:
        self._answer = answer
        super().__init__(columns, lines)

    def write_process_input(self, data: str) -> None:
        self._answer(data)


class Program:
    """`holdfast` in a pseudo-terminal."""

    def __init__(self, *arguments: str, state: Path, columns: int = 80, lines: int = 30) -> None:
        environment: Mapping[str, str] = {
            **os.environ,
            "TERM": "xterm-256color",
            "XDG_STATE_HOME": str(state),
            "COLUMNS": "",
        }
        self._child = pexpect.spawn(
            sys.executable,
            ["-c", COMMAND, *arguments],
            dimensions=(lines, columns),
            env={name: value for name, value in environment.items() if name not in ("COLUMNS", "NO_COLOR")},
            # Tests that run in the background ignore Ctrl-C, and a child would inherit that.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )
        self.raw = b""
        self._screen = Answering(columns, lines, self._child.send)
        self._stream = pyte.ByteStream(self._screen)

    def type(self, *texts: str) -> "Program":
        """Type texts and keys, as fast as the program accepts them."""
        for text in texts:
            self._child.send(KEYS.get(text, text))
        return self

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self._screen.display if line.strip()]

    def until(self, *shown: str) -> list[str]:
        """The screen, once it shows all of these."""
        return self.when(lambda: all(text in "\n".join(self.lines) for text in shown), str(shown))

    def until_prompt(self) -> list[str]:
        return self.when(lambda: self.lines[-1:] == ["holdfast>"], "a prompt")

    def when(self, ready: Callable[[], bool], what: str) -> list[str]:
        deadline = time.monotonic() + WAIT_SECONDS
        while not ready():
            if time.monotonic() > deadline:
                raise AssertionError(f"{what} did not appear; the screen shows:\n" + "\n".join(self.lines))
            self._read()
        return self.lines

    def ended(self) -> int | None:
        """The exit code, once the program has ended by itself."""
        deadline = time.monotonic() + WAIT_SECONDS
        while self._child.isalive() and time.monotonic() < deadline:
            self._read()
        assert not self._child.isalive(), "the program is still running"
        code: int | None = self._child.exitstatus
        return code

    def close(self) -> None:
        self._child.close(force=True)

    def _read(self) -> None:
        try:
            received = self._child.read_nonblocking(65536, timeout=0.05)
        except (pexpect.TIMEOUT, pexpect.EOF):
            return
        self.raw += received
        self._stream.feed(received)
