"""What a run of tests says: to people at its end, and to machines as JSON."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.testing.case import Result, Verdict


@dataclass(frozen=True, slots=True)
class Entry:
    """One case and how it went."""

    file: str
    name: str
    verdict: Verdict
    seconds: float


def write_json(entries: Iterable[Entry], path: Path) -> None:
    """A list with one object per case."""
    told = [
        {
            "file": entry.file,
            "name": entry.name,
            "result": entry.verdict.result.value,
            "reason": entry.verdict.reason,
            "seconds": round(entry.seconds, 3),
        }
        for entry in entries
    ]
    path.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def counts(entries: Iterable[Entry]) -> Counter[Result]:
    return Counter(entry.verdict.result for entry in entries)


def closing(entries: Sequence[Entry]) -> str:
    """The last line of a run."""
    count = counts(entries)
    return f"{count[Result.PASSED]} passed, {count[Result.FAILED]} failed, {count[Result.UNSUPPORTED]} unsupported"


def lacks(entries: Iterable[Entry]) -> list[tuple[str, int]]:
    """What unsupported cases lack, the most wanted first."""
    found = Counter(e.verdict.missing or "" for e in entries if e.verdict.result is Result.UNSUPPORTED)
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))
