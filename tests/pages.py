"""Runs a page of the documentation: its SQL in the shell, its commands and its Python, and compares what it shows."""

import io
import linecache
import re
import shlex
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from holdfast.cli.main import app
from holdfast.cli.sql import Session
from holdfast.cli.terminal import Terminal
from holdfast.client import Client
from holdfast.config import DEFAULT_SERVER

BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = ("datagen", "status", "backup", "restore")
"""The commands of a page that are run; the others start a server or open a shell."""
WAIT_SECONDS = 90.0
REPEATABLE = ("SELECT", "SHOW")


@dataclass(frozen=True)
class Block:
    kind: str
    text: str
    shows: str | None
    """The output that the following block shows."""


def blocks(page: Path) -> Iterator[Block]:
    found = [(match["kind"], match["text"]) for match in BLOCK.finditer(page.read_text("utf-8"))]
    for i, (kind, text) in enumerate(found):
        following = found[i + 1] if i + 1 < len(found) else ("", "")
        yield Block(kind, text, following[1] if following[0] == "text" else None)


class Reader:
    """Follows the instructions of a page with one server."""

    def __init__(self, url: str, kafka: str) -> None:
        self._url, self._kafka = url, kafka
        self._client = Client(url)
        self._names: dict[str, Any] = {}
        self.ran = 0

    def follow(self, page: Path) -> None:
        for block in blocks(page):
            match block.kind:
                case "sql":
                    self._sql(block)
                case "console":
                    self._console(block)
                case "python":
                    self._python(block.text.replace(DEFAULT_SERVER, self._url), page)

    def _python(self, source: str, page: Path) -> None:
        """Run the code as a file of its own, so that it can read the source of its functions."""
        self.ran += 1
        name = f"<{page.name}, example {self.ran}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        exec(compile(source, name, "exec"), self._names)

    def _sql(self, block: Block) -> None:
        """Run the SQL, and repeat queries until the output is as shown: results may lag behind their records."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            output, errors, ok = self._session(block.text)
            assert ok or "still building" in errors, f"{block.text}\n{errors}"
            if ok and (block.shows is None or output == block.shows):
                self.ran += 1
                return
            assert block.text.lstrip().startswith(REPEATABLE), f"{block.text}\nshows:\n{output}\nnot:\n{block.shows}"
            assert time.monotonic() < deadline, f"{block.text}\nshows:\n{output}{errors}\nnot:\n{block.shows}"
            time.sleep(0.2)

    def _session(self, text: str) -> tuple[str, str, bool]:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            ok = Session(self._client, Terminal(), wait=True).run(text)
        return out.getvalue(), err.getvalue(), ok

    def _console(self, block: Block) -> None:
        for line in block.text.splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words[:1] != ["holdfast"] or words[1] not in COMMANDS:
                continue
            server = ["--server", self._url]
            where = {"datagen": ["--kafka", self._kafka], "restore": []}.get(words[1], server)
            result = CliRunner().invoke(app, [*words[1:], *where])
            assert result.exit_code == 0, result.output
            self.ran += 1
