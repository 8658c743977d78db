"""Golden SQL: windows that a state stores until they close."""

import pytest

from .programs import check, program

CASES = {
    "tumbling_final": """
        CREATE TABLE x AS SELECT city, COUNT(*) AS n
        FROM orders
        WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 10 SECONDS)
        GROUP BY city EMIT FINAL;
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_sql(case):
    check(case, program(CASES[case]))
