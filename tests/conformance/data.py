"""Locates ksqlDB's tests, and lists those known to pass. The data is read in place; nothing is copied."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from holdfast.testing.case import Case, Malformed
from holdfast.testing.reader import read_cases

ROOT = Path(__file__).resolve().parents[2]
PASSING = Path(__file__).with_name("passing.txt")
PAGE = ROOT / "docs" / "conformance.md"
TITLES = {"qtt": "Query tests", "plans": "Recorded plans"}
KINDS = tuple(TITLES)


def folder() -> Path:
    named = os.environ.get("HOLDFAST_CONFORMANCE_DIR")
    return (Path(named) if named else ROOT.parent / "shared" / "conformance") / "ksqldb"


def cases(kind: str) -> list[Case | Malformed]:
    return read_cases([folder() / kind], plans=kind == "plans")


def label(kind: str, file: str, name: str) -> str:
    """The label of a case, on one line, for the list and for reports."""
    return f"{kind}/{file} - {' '.join(name.split())}"


def passing() -> set[str]:
    return set(PASSING.read_text(encoding="utf-8").splitlines()) if PASSING.exists() else set()


def failing() -> set[str]:
    """The cases that are known to fail: the page lists them under the heading of their kind."""
    found: set[str] = set()
    kind = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        kind = next((k for k, title in TITLES.items() if line == f"## {title}"), kind)
        if line.startswith("- "):
            file, _, name = line.removeprefix("- ").partition(": ")
            found.add(label(kind, file, name))
    return found


def sample(found: Iterable[Case | Malformed]) -> list[Case | Malformed]:
    """One case of every file: the one whose name has the smallest hash."""
    chosen: dict[str, Case | Malformed] = {}
    for case in sorted(found, key=lambda c: hashlib.sha256(c.name.encode()).digest()):
        chosen.setdefault(case.file, case)
    return [chosen[file] for file in sorted(chosen)]
