"""Golden SQL: time windows."""

import pytest

from .programs import check, program

CASES = {
    "tumbling": """
        CREATE TABLE x AS SELECT city, COUNT(*) AS n
        FROM orders
        WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 10 SECONDS)
        GROUP BY city;
    """,
    "hopping": """
        CREATE TABLE x AS SELECT id, COUNT(*) AS n
        FROM orders
        WINDOW HOPPING (SIZE 1 MINUTE, ADVANCE BY 20 SECONDS)
        GROUP BY id;
    """,
    "tumbling_with_retention": """
        CREATE TABLE x AS SELECT id, SUM(amount) AS s
        FROM orders
        WINDOW TUMBLING (SIZE 1 MINUTE, RETENTION 1 HOUR, GRACE PERIOD 10 SECONDS)
        GROUP BY id;
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_sql(case):
    check(case, program(CASES[case]))
