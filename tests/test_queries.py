"""Runs the cases in tests/queries; their format is in the README there."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from runtime.driver import Driver, Record, Sent

from holdfast.errors import HoldfastError

FOLDER = Path(__file__).parent / "queries"
INPUT = re.compile(r"(?P<topic>\S+) (?P<key>\S+) (?P<value>.*?)(?: @(?P<ts>\d+))?(?: #(?P<part>\d+))?")
OUTPUT = re.compile(r"(?P<sink>\w+) (?P<key>\S+) (?P<value>.*?)(?: @(?P<ts>-?\d+))?")


@dataclass
class Case:
    """One case of a file."""

    title: str
    sql: str = ""
    ticks: list[list[str]] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)


def cases(text: str) -> Iterator[Case]:
    for part in re.split(r"^=== ", text, flags=re.MULTILINE)[1:]:
        inputs, _, expected = part.partition("\n----\n")
        head, *ticks = re.split(r"^>>>$", inputs, flags=re.MULTILINE)
        title, _, sql = head.partition("\n")
        yield Case(title.strip(), sql, [lines(tick) for tick in ticks], lines(expected))


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def all_cases() -> Iterator[Any]:
    for file in sorted(FOLDER.glob("*.test")):
        for case in cases(file.read_text()):
            yield pytest.param(case, id=f"{file.stem}: {case.title}")


def read_bytes(text: str) -> bytes | None:
    if text == "-":
        return None
    if text == '""':
        return b""
    return bytes.fromhex(text[2:]) if text.startswith("0x") else text.encode()


def show_bytes(raw: bytes | None) -> str:
    if raw is None:
        return "-"
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return f"0x{raw.hex()}"
    return (text if text.isprintable() else f"0x{raw.hex()}") or '""'


def read_record(line: str) -> Record:
    found = INPUT.fullmatch(line)
    assert found, f"not an input: {line}"
    key, value = read_bytes(found["key"]), read_bytes(found["value"])
    return Record(found["topic"], key, value, int(found["ts"] or 0), int(found["part"] or 0))


def show_row(row: tuple[Any, ...]) -> str:
    return " | ".join(map(show_value, row[:-1]))


def show_value(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case bytes():
            return f"0x{value.hex()}"
        case _:
            return str(value)


@dataclass
class Expected:
    """What a case's lower part says."""

    error: str | None = None
    records: dict[str, list[tuple[str, str, int | None]]] = field(default_factory=lambda: defaultdict(list))
    rows: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    skipped: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)


def read_expected(expected: list[str]) -> Expected:
    found = Expected()
    for line in expected:
        if line.startswith("error "):
            found.error = line.removeprefix("error ")
        elif line.startswith("skipped "):
            _, name, count = line.split()
            found.skipped[name] = int(count)
        elif line.startswith("late "):
            _, name, count = line.split()
            found.late[name] = int(count)
        elif table := re.fullmatch(r"(\w+): (.*)", line):
            found.rows[table[1]] += [] if table[2] == "nothing" else [table[2]]
        elif nothing := re.fullmatch(r"(\w+) nothing", line):
            found.records[nothing[1]] += []
        else:
            record = OUTPUT.fullmatch(line)
            assert record, f"not an expectation: {line}"
            ts = int(record["ts"]) if record["ts"] else None
            found.records[record["sink"]].append((record["key"], record["value"], ts))
    return found


def shown_records(sent: list[Sent], expected: list[tuple[str, str, int | None]]) -> list[tuple[str, str, int | None]]:
    """What was sent, with timestamps where they are expected."""
    timed = any(ts is not None for _, _, ts in expected)
    return [(show_bytes(s.key), show_bytes(s.value), s.timestamp if timed else None) for s in sent]


@pytest.mark.parametrize("case", list(all_cases()))
def test_query(case: Case, engine):
    expected = read_expected(case.expected)
    driver = Driver(engine)
    try:
        if expected.error is not None:
            with pytest.raises(HoldfastError) as raised:
                driver.execute(case.sql)
            assert str(raised.value).startswith(expected.error)
            return
        driver.execute(case.sql)
        outcomes = [driver.tick([read_record(line) for line in tick]) for tick in case.ticks]
        assert {query: why for outcome in outcomes for query, why in outcome.failed.items()} == {}
        for sink, records in expected.records.items():
            shown = shown_records(driver.sent(sink), records)
            if driver.program(sink).collection is not None:
                shown, records = sorted(shown, key=lambda r: r[0]), sorted(records, key=lambda r: r[0])
            assert shown == records, sink
        for table, rows in expected.rows.items():
            assert sorted(map(show_row, driver.rows(table))) == sorted(rows), table
        skipped: dict[str, int] = defaultdict(int)
        for outcome in outcomes:
            for found in outcome.undecodable:
                skipped[found.object] += found.total
        assert dict(skipped) == expected.skipped
        for name, count in expected.late.items():
            counts = [late.total for o in outcomes for (found_in, _), late in o.late.items() if found_in == name]
            assert sum(counts) == count, name
    finally:
        driver.close()
