"""Golden SQL: indexes."""

import pytest

from .programs import check, program

CASES = {
    "index": """
        CREATE INDEX x ON users (region, LEN(name));
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_sql(case):
    check(case, program(CASES[case]))
