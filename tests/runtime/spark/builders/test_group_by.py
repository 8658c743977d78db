"""Golden SQL: groupings."""

import pytest

from .programs import check, program

CASES = {
    "stream_group_by_key": """
        CREATE TABLE x AS SELECT id, COUNT(*) AS n
        FROM orders
        GROUP BY id;
    """,
    "stream_group_by": """
        CREATE TABLE x WITH (KEY_FORMAT='JSON') AS SELECT city, item, COUNT(*) AS n
        FROM orders
        GROUP BY city, item;
    """,
    "table_group_by": """
        CREATE TABLE x AS SELECT region, COUNT(*) AS n
        FROM users
        GROUP BY region;
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_sql(case):
    check(case, program(CASES[case]))
