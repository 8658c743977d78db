"""Our plans are ksqlDB's plans. The cases that are planned equal are listed; the list may only grow."""

from collections import Counter
from pathlib import Path

import pytest

from .conformance import Outcome, cases, folder, run

pytestmark = pytest.mark.skipif(not folder().is_dir(), reason=f"no conformance data in {folder()}")

EQUAL = Path(__file__).with_name("equal_plans.txt")
DIFFERENT = {
    "source-table - create source table": "our tables are kept from their topics, without a query of their own",
}


@pytest.fixture(scope="module", params=[False, True], ids=["as ksqlDB rewrote them", "as they were written"])
def outcomes(request) -> list[Outcome]:
    return [run(case, written=request.param) for case in cases() if case.written or not request.param]


def test_every_listed_case_is_planned_equal(outcomes):
    found = {str(outcome.case): outcome for outcome in outcomes}
    listed = EQUAL.read_text(encoding="utf-8").splitlines()
    assert listed == sorted(set(listed))
    missing = {name: found[name].refused or "differs" for name in listed if not found[name].equal}
    assert missing == {}


def test_a_plan_that_differs_has_a_reason(outcomes):
    different = {str(outcome.case) for outcome in outcomes if not outcome.equal and outcome.refused is None}
    assert different <= set(DIFFERENT)


def test_what_we_refuse_is_refused_with_a_reason(outcomes, record_property):
    counts = Counter("equal" if o.equal else "refused" if o.refused else "different" for o in outcomes)
    record_property("plans", dict(counts))
    print(f"of {len(outcomes)} cases: {dict(counts)}")
    assert all(o.refused.message for o in outcomes if o.refused)
