"""Compares ksqlDB's recorded plans with ours. The data is read in place; nothing is copied."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.catalog.commands import Command, CommandId
from holdfast.catalog.fold import apply
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.errors import HoldfastError
from holdfast.planner.plan import plan
from holdfast.runtime.plan.codec import encode
from holdfast.runtime.plan.windows import (
    HoppingWindow,
    SessionWindow,
    TimeUnit,
    TumblingWindow,
    WindowExpression,
    WindowTime,
)
from holdfast.sql.bind.ddl_kind import BoundPlan
from holdfast.sql.bind.nothing import BoundNothing
from holdfast.sql.bind.statement import bind
from holdfast.sql.query.windows import default_retention
from holdfast.sql.syntax.parse import ParsedStatement, statements

ROOT = Path(__file__).resolve().parents[2]
SHAPE = ("8.0.0", "8.0.1")
"""The releases that write every optional property; older ones leave out what is null."""
SAME_STEPS = ("7.0.0", "7.1.0", "7.2.0", "7.3.0", "7.4.0", *SHAPE)
"""The releases whose planner creates the same steps as ours."""

NEW_PLANNER = "ksql.new.query.planner.enabled"
"""An experimental planner of ksqlDB whose plans have different ids."""
RUNNER_PROPERTIES = ("use.exact.numeric.comparison",)
"""Properties for ksqlDB's test runner, which are not session properties."""


def folder() -> Path:
    return Path(os.environ.get("HOLDFAST_CONFORMANCE_DIR", ROOT.parent / "shared" / "conformance")) / "ksqldb"


@dataclass(frozen=True)
class Case:
    """The newest plan that ksqlDB recorded for one of its tests.

    `written` has the statements of the test itself; those of the plan are ksqlDB's own rendering of them.
    """

    file: str
    name: str
    version: str
    plans: list[dict[str, Any]]
    properties: dict[str, str]
    written: list[str]

    def __str__(self) -> str:
        return f"{self.file} - {self.name}"


@dataclass(frozen=True)
class Outcome:
    """`refused` is the error if we cannot plan it; otherwise the plans are equal, or `ours` and `theirs` differ."""

    case: Case
    refused: HoldfastError | None = None
    ours: dict[str, Any] | None = None
    theirs: dict[str, Any] | None = None

    @property
    def equal(self) -> bool:
        return self.refused is None and self.ours is None


def cases(pattern: str = "*") -> Iterator[Case]:
    for path in sorted((folder() / "plans").glob(f"{pattern}.jsonl")):
        written = _written(path.stem)
        newest: dict[str, dict[str, Any]] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            stored = json.loads(line)
            newest[stored["name"]] = stored
        for stored in newest.values():
            properties = {name: str(value) for name, value in stored["properties"].items()}
            if stored["version"] not in SAME_STEPS or properties.get(NEW_PLANNER) == "true":
                continue
            properties = {name: value for name, value in properties.items() if name not in RUNNER_PROPERTIES}
            name = stored["name"]
            yield Case(stored["file"], name, stored["version"], stored["plan"], properties, written.get(name, []))


def _written(file: str) -> dict[str, list[str]]:
    path = folder() / "qtt" / f"{file}.json"
    if not path.exists():
        return {}
    return {test["name"]: test["statements"] for test in json.loads(path.read_text(encoding="utf-8"))["tests"]}


def run(case: Case, *, written: bool = False) -> Outcome:
    """Plan the statements of a case in order, each against the catalog that results from the plans before it."""
    texts = case.written if written else [stored["statementText"] for stored in case.plans]
    replay = _Replay(case)
    try:
        for text in texts:
            for parsed in statements(text, lambda: replay.catalog.types):
                outcome = replay.step(parsed)
                if outcome is not None:
                    return outcome
    except HoldfastError as error:
        return Outcome(case, refused=error)
    assert next(replay.stored, None) is None
    return Outcome(case)


class _Replay:
    def __init__(self, case: Case) -> None:
        self.case = case
        self.catalog: Catalog = EMPTY
        self.stored = iter(case.plans)

    def step(self, parsed: ParsedStatement) -> Outcome | None:
        """Plan a statement; returns an outcome if the plan differs from the recorded one."""
        bound = bind(parsed.statement, self.catalog, self.case.properties)
        if isinstance(bound, BoundNothing):
            next(self.stored)
        if not isinstance(bound, BoundPlan):
            return None
        theirs = next(self.stored)
        encoded = encode(plan(bound, text=parsed.text, number=_number(theirs)))
        ours = _without_default_retention(json.loads(encoded))
        ours, theirs = _shape(ours, self.case), _shape(theirs, self.case)
        if ours != theirs:
            return Outcome(self.case, ours=ours, theirs=theirs)
        self.catalog = apply(self.catalog, Command(id=CommandId("", "", ""), statement="", plan=encoded))
        return None


def _number(stored: dict[str, Any]) -> int:
    query = stored.get("queryPlan")
    return int(query["queryId"].rpartition("_")[2]) if query else 0


def _without_default_retention(value: Any) -> Any:
    """A plan in which windows have no retention unless the statement says one: ksqlDB does not write the default."""
    if isinstance(value, list):
        return list(map(_without_default_retention, value))
    if not isinstance(value, dict):
        return value
    members = {name: _without_default_retention(item) for name, item in value.items()}
    if value.get("retention") and value.get("windowType") and value["retention"] == _default_retention(value):
        members["retention"] = None
    return members


def _default_retention(window: dict[str, Any]) -> dict[str, Any]:
    spans = {name: _window_time(window.get(name)) for name in ("size", "advanceBy", "gap", "gracePeriod")}
    size, advance, gap, grace = spans.values()
    if gap is not None:
        made: WindowExpression = SessionWindow(gap=gap, grace_period=grace)
    elif size is not None and advance is not None:
        made = HoppingWindow(size=size, advance_by=advance, grace_period=grace)
    else:
        assert size is not None
        made = TumblingWindow(size=size, grace_period=grace)
    default = default_retention(made)
    return {"value": default.value, "timeUnit": default.time_unit.value}


def _window_time(written: dict[str, Any] | None) -> WindowTime | None:
    return None if written is None else WindowTime(value=written["value"], time_unit=TimeUnit(written["timeUnit"]))


def _shape(document: dict[str, Any], case: Case) -> dict[str, Any]:
    """A plan without its text and, for older releases, without properties that they did not write."""
    rest = {name: value for name, value in document.items() if name != "statementText"}
    return rest if case.version in SHAPE else _bare(rest)


def _bare(value: Any) -> Any:
    """A document without nulls, empty objects and false values."""
    if isinstance(value, dict):
        members = {name: _bare(item) for name, item in value.items()}
        return {name: item for name, item in members.items() if item not in (None, {}, False)}
    return [_bare(item) for item in value] if isinstance(value, list) else value
