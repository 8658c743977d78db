"""The page says why cases fail, and its list of them can be read again."""

from pathlib import Path

import pytest

from holdfast.testing.case import PASSED, Result, Verdict
from holdfast.testing.report import CaseReport

from . import data, page
from .causes import Cause, by_cause, causes


def test_a_case_has_the_first_cause_that_fits() -> None:
    first, second = Cause("one", ("qtt/a - *",)), Cause("two", ("qtt/* - x",))
    found = by_cause(["qtt/b - x", "qtt/a - x", "qtt/b - y"], [first, second])
    assert found == {first: ["qtt/a - x"], second: ["qtt/b - x"], None: ["qtt/b - y"]}


def test_what_fails_is_listed_under_its_cause(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(page, "causes", lambda: [Cause("Time runs back.", ("qtt/clocks - *",))])
    failed = Verdict(Result.FAILED, "why")
    entries = [
        CaseReport("clocks", "a  b", failed, 0.1),
        CaseReport("clocks", "c", PASSED, 0.1),
        CaseReport("d", "e", failed, 0.1),
    ]
    written = page.page({"qtt": entries})
    assert "Failed (1): Time runs back.\n\n- clocks: a b\n" in written
    assert "Failed (1): not explained yet.\n\n- d: e\n" in written
    page_file = tmp_path / "page.md"
    page_file.write_text(written, encoding="utf-8")
    monkeypatch.setattr(data, "PAGE", page_file)
    assert data.failing() == {"qtt/clocks - a b", "qtt/d - e"}


@pytest.mark.skipif(not data.folder().is_dir(), reason=f"the conformance data is not at {data.folder()}")
def test_every_cause_is_of_cases_that_exist() -> None:
    every = {data.label(kind, case.file, case.name) for kind in data.KINDS for case in data.cases(kind)}
    idle = [p for cause in causes() for p in cause.patterns if not any(Cause("", (p,)).is_of(each) for each in every)]
    assert idle == []
