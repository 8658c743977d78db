"""Golden SQL: projections."""

import pytest

from .programs import check, program

CASES = {
    "stream_select": """
        CREATE STREAM x AS SELECT id, UCASE(item) AS item, amount * 2 AS twice
        FROM orders;
    """,
    "table_select": """
        CREATE TABLE x AS SELECT id, UCASE(name) AS name
        FROM users;
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_sql(case):
    check(case, program(CASES[case]))
