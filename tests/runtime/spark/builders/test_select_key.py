"""Golden SQL: pARTITION BY."""

import pytest

from .programs import check, program

CASES = {
    "stream_select_key": """
        CREATE STREAM x AS SELECT *
        FROM orders PARTITION BY city;
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_sql(case):
    check(case, program(CASES[case]))
