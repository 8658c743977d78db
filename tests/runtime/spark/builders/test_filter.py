"""Golden SQL: filters."""

import pytest

from .programs import check, program

CASES = {
    "stream_filter": """
        CREATE STREAM x AS SELECT id, amount
        FROM orders WHERE amount > 5;
    """,
    "table_filter": """
        CREATE TABLE x AS SELECT id, name
        FROM users WHERE region = 'north';
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_sql(case):
    check(case, program(CASES[case]))
