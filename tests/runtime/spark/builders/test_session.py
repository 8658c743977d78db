"""Golden SQL: session windows."""

import pytest

from .programs import check, program

CASES = {
    "session": """
        CREATE TABLE x AS SELECT id, COUNT(*) AS n
        FROM orders
        WINDOW SESSION (30 SECONDS, GRACE PERIOD 1 MINUTE)
        GROUP BY id;
    """,
    "session_across_partitions": """
        CREATE TABLE x AS SELECT city, LATEST_BY_OFFSET(item) AS item
        FROM orders
        WINDOW SESSION (30 SECONDS)
        GROUP BY city;
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_sql(case):
    check(case, program(CASES[case]))
