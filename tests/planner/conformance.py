"""ksqlDB's stored plans, compared with ours. The data stays where it is; nothing of it is copied."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.catalog.commands import Command, CommandId, apply
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.errors import HoldfastError
from holdfast.planner.plan import plan
from holdfast.runtime.plan.codec import encode
from holdfast.sql.bind import bind
from holdfast.sql.bound import BoundNothing
from holdfast.sql.parse import parse

ROOT = Path(__file__).resolve().parents[2]
SHAPE = ("8.0.0", "8.0.1")
"""The releases that write every optional property."""

NEW_PLANNER = "ksql.new.query.planner.enabled"
"""An experiment of ksqlDB's whose plans have other ids."""


def folder() -> Path:
    return Path(os.environ.get("HOLDFAST_CONFORMANCE_DIR", ROOT.parent / "shared" / "conformance")) / "ksqldb" / "plans"


@dataclass(frozen=True)
class Case:
    """The newest plan that ksqlDB stored for one of its tests."""

    file: str
    name: str
    plans: list[dict[str, Any]]
    properties: dict[str, str]

    def __str__(self) -> str:
        return f"{self.file} - {self.name}"


@dataclass(frozen=True)
class Outcome:
    """`refused` is why we do not plan it; otherwise it is equal, or `ours` and `theirs` differ."""

    case: Case
    refused: HoldfastError | None = None
    ours: dict[str, Any] | None = None
    theirs: dict[str, Any] | None = None

    @property
    def equal(self) -> bool:
        return self.refused is None and self.ours is None


def cases(pattern: str = "*") -> Iterator[Case]:
    for path in sorted(folder().glob(f"{pattern}.jsonl")):
        newest: dict[str, dict[str, Any]] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            stored = json.loads(line)
            newest[stored["name"]] = stored
        for stored in newest.values():
            properties = {name: str(value) for name, value in stored["properties"].items()}
            if stored["version"] in SHAPE and properties.get(NEW_PLANNER) != "true":
                yield Case(stored["file"], stored["name"], stored["plan"], properties)


def run(case: Case) -> Outcome:
    """Plan the statements of a case one after the other, each against the catalog that the plans before it give."""
    catalog: Catalog = EMPTY
    for stored in case.plans:
        theirs = {name: value for name, value in stored.items() if name != "statementText"}
        try:
            encoded = _plan(stored, catalog, case.properties)
        except HoldfastError as error:
            return Outcome(case, refused=error)
        if encoded is not None:
            ours = json.loads(encoded)
            del ours["statementText"]
            if ours != theirs:
                return Outcome(case, ours=ours, theirs=theirs)
            catalog = apply(catalog, Command(id=CommandId("", "", ""), statement="", plan=encoded))
    return Outcome(case)


def _plan(stored: dict[str, Any], catalog: Catalog, properties: dict[str, str]) -> bytes | None:
    (parsed,) = parse(stored["statementText"])
    bound = bind(parsed.statement, catalog, properties)
    if isinstance(bound, BoundNothing):
        return None
    query = stored["queryPlan"]
    number = int(query["queryId"].rpartition("_")[2]) if query else 0
    return encode(plan(bound, text=parsed.text, number=number))
