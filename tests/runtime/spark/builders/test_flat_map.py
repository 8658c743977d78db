"""Golden SQL: table functions."""

import pytest

from .programs import check, program

CASES = {
    "stream_flat_map": """
        CREATE STREAM x AS SELECT id, EXPLODE(tags) AS tag
        FROM orders;
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_sql(case):
    check(case, program(CASES[case]))
