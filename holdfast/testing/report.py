"""The report of a test run: as text and as JSON."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.testing.case import Result, Verdict


@dataclass(frozen=True, slots=True)
class CaseReport:
    """The verdict of one case, and how long it took."""

    file: str
    name: str
    verdict: Verdict
    seconds: float


def write_json(entries: Iterable[CaseReport], path: Path) -> None:
    """Write a JSON list with one object per case."""
    objects = [
        {
            "file": entry.file,
            "name": entry.name,
            "result": entry.verdict.result.value,
            "reason": entry.verdict.reason,
            "seconds": round(entry.seconds, 3),
        }
        for entry in entries
    ]
    path.write_text(json.dumps(objects, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def counts(entries: Iterable[CaseReport]) -> Counter[Result]:
    return Counter(entry.verdict.result for entry in entries)


def summary(entries: Sequence[CaseReport]) -> str:
    """The last line of the report."""
    count = counts(entries)
    return f"{count[Result.PASSED]} passed, {count[Result.FAILED]} failed, {count[Result.UNSUPPORTED]} unsupported"


def missing_features(entries: Iterable[CaseReport]) -> list[tuple[str, int]]:
    """The missing features of unsupported cases, the most frequent first."""
    found = Counter(e.verdict.missing or "" for e in entries if e.verdict.result is Result.UNSUPPORTED)
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))
