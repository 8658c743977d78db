"""Plans to draw: those that ksqlDB recorded, and a few of our own."""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from holdfast.catalog.fold import fold
from holdfast.catalog.snapshot import EMPTY
from holdfast.planner.commands import commands_for
from holdfast.planner.plan import plan
from holdfast.runtime.plan import json_text
from holdfast.runtime.plan.codec import decode
from holdfast.runtime.plan.document import Plan
from holdfast.sql.bind.ddl_kind import BoundPlan
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import statements

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("HOLDFAST_CONFORMANCE_DIR", ROOT.parent / "shared" / "conformance")) / "ksqldb" / "plans"

SCRIPT = """
CREATE STREAM orders (id STRING KEY, city STRING, amount DOUBLE) WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON');
CREATE TABLE users (id STRING PRIMARY KEY, level INT) WITH (KAFKA_TOPIC='users', VALUE_FORMAT='JSON');
CREATE STREAM large AS SELECT id, UCASE(city) AS town, amount FROM orders WHERE amount > 100;
CREATE TABLE per_city AS SELECT city, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY city
  HAVING COUNT(*) > 1;
CREATE TABLE seniors AS SELECT id, level * 10 AS points FROM users WHERE level > 3;
"""


@cache
def ours() -> dict[str, Plan]:
    """The plans of the script, by the name of the object that each creates."""
    catalog, found = EMPTY, {}
    for number, parsed in enumerate(statements(SCRIPT)):
        bound = bind(parsed.statement, catalog, {})
        assert isinstance(bound, BoundPlan)
        found[str(bound.target.name)] = plan(bound, text=parsed.text, number=number)
        catalog = fold(commands_for(bound, text=parsed.text, number=number), catalog)
    return found


def stored(file: Path) -> Iterator[tuple[str, Plan]]:
    """Each different plan of a file, with the release that wrote it first."""
    seen: set[bytes] = set()
    for line in file.read_text().splitlines():
        case = json_text.read(line.encode())
        assert isinstance(case, dict)
        assert isinstance(case["plan"], list)
        for document in case["plan"]:
            text = json_text.write(document)
            if text not in seen:
                seen.add(text)
                yield str(case["version"]), decode(text)


def files() -> list[Path]:
    return sorted(FOLDER.glob("*.jsonl"))


def plan_of(text: str) -> Plan:
    """The plan of one statement."""
    (parsed,) = statements(text)
    bound = bind(parsed.statement, EMPTY, {})
    assert isinstance(bound, BoundPlan)
    return plan(bound, text=parsed.text, number=0)
