"""Every statement of the grammar is explained, by an example that can be read."""

import pytest

from holdfast.sql.syntax.manual import MANUAL
from holdfast.sql.syntax.parse import parse
from holdfast.sql.syntax.statements import Refused
from holdfast.sql.syntax.synopsis import by_rule, synopses


def test_every_statement_is_in_the_manual() -> None:
    rules = set(by_rule(synopses()))
    assert rules - set(MANUAL) == set(), "write what they are for in holdfast/sql/manual.py"
    assert set(MANUAL) - rules == set()


@pytest.mark.parametrize("rule", MANUAL)
def test_an_example_is_one_statement_that_begins_as_its_form_does(rule: str) -> None:
    (parsed,) = parse(MANUAL[rule].example)
    assert MANUAL[rule].is_built is not isinstance(parsed.statement, Refused)
    assert MANUAL[rule].about.endswith("Not in this release.") is isinstance(parsed.statement, Refused)
    assert parsed.text.split()[0] in by_rule(synopses())[rule][0].text
