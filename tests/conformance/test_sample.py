"""One case of every file of ksqlDB's tests, chosen by hash. `make conformance` runs them all.

A case of the list of passing cases must pass. Of the others, one that needs what this release lacks is skipped and
says what that is. One that fails is an expected failure only when docs/conformance.md names it among those that fail.
"""

import pytest

from holdfast.testing.case import Case, Malformed, Result
from holdfast.testing.runner import run

from .data import KINDS, cases, failing, folder, label, passing, sample

pytestmark = pytest.mark.skipif(not folder().is_dir(), reason=f"the conformance data is not at {folder()}")

KNOWN = passing()
FAILING = failing()


def chosen():
    for kind in KINDS if folder().is_dir() else ():
        for case in sample(cases(kind)):
            yield pytest.param(case, label(kind, case.file, case.name), id=f"{kind}-{case.file}")


@pytest.mark.parametrize(("case", "name"), list(chosen()))
def test_a_case_of_every_file(case: Case | Malformed, name: str, engine) -> None:
    verdict = run(case, engine)
    if name in KNOWN:
        assert verdict.result is Result.PASSED, verdict.reason
    elif verdict.result is Result.UNSUPPORTED:
        pytest.skip(f"unsupported: {verdict.missing}")
    elif verdict.result is Result.FAILED:
        assert name in FAILING, verdict.reason
        pytest.xfail(str(verdict.reason))


def test_the_list_and_the_page_name_cases_that_exist() -> None:
    every = {label(kind, case.file, case.name) for kind in KINDS for case in cases(kind)}
    assert KNOWN - every == set()
    assert FAILING - every == set()
    assert KNOWN.isdisjoint(FAILING)
