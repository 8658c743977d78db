"""Runs `java/WindowedApplication.java`, an application of Kafka Streams itself, beside a test."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.config import load
from holdfast.jars import Jar, JarSet, fetch_jars, fetch_listed, find_java

SOURCE = Path(__file__).parent / "java" / "WindowedApplication.java"
JARS = (
    Jar(
        "org.apache.kafka",
        "kafka-streams",
        "4.3.1",
        "bd73f3805e116f711e8456ee89a8a5b43ff5dcf5a5bb865afae29deae89e7c4b",
    ),
    Jar("org.rocksdb", "rocksdbjni", "10.1.3", "e7f925287d9fe2574fb7c7a86f7facaa9b8ab602a2eed0e598bf633528121498"),
)
"""What the application needs beyond the jars of the broker."""
FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
KINDS = ("tumbling", "hopping", "session")

Windows = Mapping[tuple[str, int, int], Any]
"""The value of each key, start and end."""


class WindowedApplication:
    """A running application; `id` is the prefix of its topics."""

    def __init__(self, process: "subprocess.Popen[str]", id_: str) -> None:
        self._process, self.id = process, id_

    @property
    def topics(self) -> Mapping[str, str]:
        """The output topic of each kind of windows."""
        return {kind: f"{self.id}-{kind}" for kind in KINDS}

    @property
    def changelogs(self) -> Mapping[str, str]:
        return {kind: f"{self.id}-{kind}-changelog" for kind in KINDS}

    def records(self) -> int:
        """The number of records it has processed; -1 while it starts and restores its stores."""
        return int(self._ask("records")["records"])

    def stores(self) -> tuple[int, Mapping[str, Windows]]:
        """The number of records it has processed, -1 while it starts, and what its stores answer."""
        answer = self._ask("stores")
        return answer["records"], {kind: windows(answer[kind]) for kind in KINDS if kind in answer}

    def read(self, kind: str, topic: str, size_ms: int | None = None) -> Windows:
        """The last value of each window in a topic, as it reads them itself."""
        size = "" if size_ms is None else f" {size_ms}"
        return windows(self._ask(f"read {kind} {topic}{size}")["windows"])

    def _ask(self, request: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{request}\n")
        self._process.stdin.flush()
        lines: list[str] = []
        for line in self._process.stdout:
            if line.startswith("{"):
                return json.loads(line)
            lines.append(line)
        raise AssertionError(f"the application ended: {''.join(lines)}")


def windows(rows: Sequence[Sequence[Any]]) -> Windows:
    return {(key, start, end): value for key, start, end, value in rows}


@contextmanager
def windowed_application(
    kafka: str, id_: str, topic: str, folder: Path, spans_ms: Sequence[int]
) -> Iterator[WindowedApplication]:
    """Run the application until the end of the block; its output topics must exist. Skips the test without a JDK."""
    if shutil.which("javac") is None:
        pytest.skip("running Java source needs a JDK")
    cache, java = load({}, environment={}).jar_dir, find_java()
    jars = (*fetch_jars(JarSet.BROKER, cache, java=java), *fetch_listed(JARS, cache, java=java))
    command = [str(java), *FLAGS, "-cp", ":".join(map(str, jars)), str(SOURCE)]
    arguments = [kafka, id_, topic, str(folder), *map(str, spans_ms)]
    with subprocess.Popen(
        [*command, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield WindowedApplication(process, id_)
        finally:
            process.kill()
