"""Our plans are ksqlDB's plans, wherever we plan a statement at all."""

from collections import Counter

import pytest

from .conformance import Outcome, cases, folder, run

pytestmark = pytest.mark.skipif(not folder().is_dir(), reason=f"ksqlDB's plans are not at {folder()}")

# Files about the clauses and steps that this release plans; here nothing may differ.
CORE = ("project-filter", "select*", "where", "group-by", "having", "null", "key-schemas", "multi-col-keys", "sum",
        "count", "identifiers", "quoted-identifiers", "timestamp-extractor", "row-offset*", "magic-*", "between",
        "operators", "simple-struct", "json", "sink-topic-naming", "drop_source", "binary-*", "in", "arithmetic*",
        "case-expression")  # fmt: skip

EQUAL_IN_CORE = 120
EQUAL = 175
DIFFERENT = 2
"""ksqlDB writes the empty struct `STRUCT< >`, and a column named MAP without back-quotes."""


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    return [run(case) for case in cases()]


def test_no_plan_of_the_core_differs():
    found = [run(case) for pattern in CORE for case in cases(pattern)]
    different = [(str(o.case), o.ours, o.theirs) for o in found if not o.equal and o.refused is None]
    assert different == []
    assert sum(o.equal for o in found) >= EQUAL_IN_CORE


def test_most_statements_that_we_plan_give_the_same_plan(outcomes, record_property):
    counts = Counter("equal" if o.equal else "refused" if o.refused else "different" for o in outcomes)
    record_property("plans", dict(counts))
    print(f"of {len(outcomes)} cases: {dict(counts)}")
    assert counts["equal"] >= EQUAL
    assert counts["different"] <= DIFFERENT


def test_what_we_refuse_is_refused_with_a_reason(outcomes):
    assert all(o.refused.message for o in outcomes if o.refused)
