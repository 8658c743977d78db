"""The causes of expected failures: causes.toml explains groups of cases."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

CAUSES = Path(__file__).with_name("causes.toml")


@dataclass(frozen=True, slots=True)
class Cause:
    """`patterns` match the labels of the cases that it explains; `*` is a wildcard."""

    text: str
    patterns: tuple[str, ...]

    def is_of(self, label: str) -> bool:
        return any(fnmatchcase(label, pattern) for pattern in self.patterns)


def causes() -> list[Cause]:
    read = tomllib.loads(CAUSES.read_text(encoding="utf-8"))["cause"]
    return [Cause(" ".join(each["text"].split()), tuple(each["cases"])) for each in read]


def by_cause(labels: Iterable[str], known: Iterable[Cause]) -> dict[Cause | None, list[str]]:
    """The labels of each cause, in order; unexplained ones under None, last."""
    grouped: dict[Cause | None, list[str]] = {cause: [] for cause in known}
    grouped[None] = []
    for label in labels:
        grouped[next((cause for cause in grouped if cause is not None and cause.is_of(label)), None)].append(label)
    return {cause: found for cause, found in grouped.items() if found}
