"""Every plan that ksqlDB 5.5 to 8.0 wrote for its own tests is read, and written back as it was."""

import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from holdfast.explain.text import explain
from holdfast.runtime.plan import json_text
from holdfast.runtime.plan.codec import decode, encode
from holdfast.runtime.plan.steps import SinkStep, SourceStep, walk

ROOT = Path(__file__).parents[3]
FOLDER = Path(os.environ.get("HOLDFAST_CONFORMANCE_DIR", ROOT.parent / "shared" / "conformance")) / "ksqldb" / "plans"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no conformance data in {FOLDER}")


def exactly(value: Any) -> Any:
    """A value that equals another only when kinds and scales are the same; property order does not matter."""
    match value:
        case dict():
            return {name: exactly(member) for name, member in value.items()}
        case list():
            return [exactly(element) for element in value]
        case Decimal():
            return value.as_tuple()
        case _:
            return (type(value), value)


def parsed(text: str | bytes) -> Any:
    return json.loads(text, parse_float=Decimal)


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.jsonl")), ids=lambda file: file.stem)
def test_plans_of_ksqldb_round_trip(file: Path):
    cases = [parsed(line) for line in file.read_text().splitlines()]
    documents = {json_text.write(plan): plan for case in cases for plan in case["plan"]}
    assert documents
    for text, document in documents.items():
        plan = decode(text)
        assert exactly(parsed(encode(plan))) == exactly(document)
        if plan.query is not None:
            shown = explain(plan)
            steps = list(walk(plan.query.physical_plan))
            assert all(f"on topic {s.topic_name}  (" in shown for s in steps if isinstance(s, SourceStep | SinkStep))
            assert shown.count("->  ") >= len(steps)
