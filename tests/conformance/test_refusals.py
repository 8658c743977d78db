"""What ksqlDB's tests want refused is refused when it is written, and the error says where it is and what to do."""

from collections.abc import Iterator

import pytest

from holdfast.catalog.fold import apply_plan
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.errors import HoldfastError
from holdfast.planner.commands import commands_for
from holdfast.sql.bind.ddl_kind import BoundPlan
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import statements
from holdfast.testing.case import Case

from .data import cases, failing, folder, label

pytestmark = pytest.mark.skipif(not folder().is_dir(), reason=f"the conformance data is not at {folder()}")


def test_a_refusal_has_a_place_and_says_what_to_do() -> None:
    known = failing()
    wrong = []
    for case in refused_cases():
        name = label("qtt", case.file, case.name)
        error = refusal(case)
        if error is None:
            if name not in known:
                wrong.append(f"{name}: not refused by what is written alone")
        elif error.position is None:
            wrong.append(f"{name}: no position in {error.message}")
        elif error.hint is None and error.detail is None:
            wrong.append(f"{name}: no hint in {error.message}")
    assert wrong == []


def refused_cases() -> Iterator[Case]:
    for case in cases("qtt"):
        # Those with records are refused when a record comes.
        if isinstance(case, Case) and case.expected_error is not None and not case.inputs:
            yield case


def refusal(case: Case) -> HoldfastError | None:
    """The error of the case's statements: read, bound and planned, but not run."""
    catalogs: list[Catalog] = [EMPTY]
    try:
        for text in case.statements:
            for parsed in statements(text, lambda: catalogs[-1].types):
                bound = bind(parsed.statement, catalogs[-1], case.properties)
                if isinstance(bound, BoundPlan):
                    for command in commands_for(bound, text=parsed.text, number=0, properties=case.properties):
                        assert command.plan is not None
                        catalogs.append(apply_plan(catalogs[-1], command, command.plan))
    except HoldfastError as error:
        return error
    return None
