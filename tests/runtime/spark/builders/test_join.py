"""Golden SQL: joins by key of a stream with a table, and of tables."""

import pytest

from .programs import check, program

CASES = {
    "stream_table_join": """
        CREATE STREAM x AS SELECT o.id, o.amount, u.name
        FROM orders o
        JOIN users u ON o.id = u.id;
    """,
    "stream_table_left_join": """
        CREATE STREAM x AS SELECT o.id, o.amount, u.name
        FROM orders o
        LEFT JOIN users u ON o.id = u.id;
    """,
    "table_table_join": """
        CREATE TABLE x AS SELECT u.id, u.name, a.street
        FROM users u
        JOIN addresses a ON u.id = a.id;
    """,
    "table_table_outer_join": """
        CREATE TABLE x AS SELECT ROWKEY, u.name, a.street
        FROM users u
        FULL OUTER JOIN addresses a ON u.id = a.id;
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_sql(case):
    check(case, program(CASES[case]))
