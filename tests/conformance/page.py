"""Writes the page docs/conformance.md from the results of a run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from textwrap import wrap

from holdfast.testing.case import Result
from holdfast.testing.report import CaseReport, counts, missing_features, summary

from .causes import by_cause, causes
from .data import TITLES, label

WIDTH = 120
ABOUT = {
    "qtt": "Statements, records in, records or an error out; from text to plan to bytes to ticks of one record.",
    "plans": "Plans that ksqlDB 5.5 to 8.0 stored for these tests, run by the lower layer alone, from their bytes.",
}


def page(results: Mapping[str, Sequence[CaseReport]], before: str = "") -> str:
    """The page for these results; the section of a kind that was not run is copied from the previous page."""
    parts = [
        "# Conformance",
        "",
        "How far ksqlDB's own tests run here. Written by `make conformance`, never by hand. A case *passes* when all",
        "of its records are as ksqlDB's would be: keys, values, timestamps, windows, and their order. It is",
        "*unsupported* when it needs something that this release does not have, which is then named. It *fails*",
        "otherwise. How a case is run and compared is in [testing.md](testing.md).",
        "",
    ]
    for kind, title in TITLES.items():
        if kind not in results:
            parts += _section(before, title)
            continue
        entries = results[kind]
        parts += [f"## {title}", "", ABOUT[kind], "", f"**{summary(entries)}.**", ""]
        parts += _causes(entries) + _failures(kind, entries) + _files(entries)
    return "\n".join(parts).rstrip() + "\n"


def _section(page: str, title: str) -> list[str]:
    """The lines of a section, up to the next one."""
    _, heading, rest = page.partition(f"## {title}\n")
    return [heading.rstrip("\n"), *rest.partition("\n## ")[0].rstrip("\n").split("\n"), ""] if heading else []


def _causes(entries: Sequence[CaseReport]) -> list[str]:
    missing = missing_features(entries)
    if not missing:
        return []
    rows = [f"| {name.replace('|', chr(92) + '|')} | {count} |" for name, count in missing]
    return ["What unsupported cases lack first:", "", "| missing | cases |", "|---|--:|", *rows, ""]


def _failures(kind: str, entries: Sequence[CaseReport]) -> list[str]:
    """The cases that fail, by cause."""
    failed = {label(kind, e.file, e.name): e for e in entries if e.verdict.result is Result.FAILED}
    parts: list[str] = []
    for cause, labels in by_cause(failed, causes()).items():
        listed = [f"- {failed[each].file}: {' '.join(failed[each].name.split())}" for each in labels]
        heading = f"Failed ({len(labels)}): {'not explained yet.' if cause is None else cause.text}"
        parts += [*wrap(heading, WIDTH), "", *listed, ""]
    return parts


def _files(entries: Sequence[CaseReport]) -> list[str]:
    per_file: dict[str, Counter[Result]] = {
        file: counts(e for e in entries if e.file == file) for file in sorted({e.file for e in entries})
    }
    rows = [f"| {file} | {' | '.join(str(count[r] or '') for r in Result)} |" for file, count in per_file.items()]
    return ["| file | passed | failed | unsupported |", "|---|--:|--:|--:|", *rows, ""]
