"""Golden SQL: timestamps that come from a column."""

import pytest

from .programs import check, program

CASES = {
    "stream_timestamp": """
        CREATE STREAM x WITH (TIMESTAMP='stamp') AS SELECT id, CAST(amount AS BIGINT) AS stamp
        FROM orders;
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_sql(case):
    check(case, program(CASES[case]))
