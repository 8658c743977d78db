"""Golden SQL: joins of two streams: pairs, rows without a match, and what is stored."""

import pytest

from .programs import check, program

CASES = {
    "stream_left_join_at_once": """
        CREATE STREAM x AS SELECT o.id, o.amount, p.paid
        FROM orders o
        LEFT JOIN payments p
        WITHIN 10 MINUTES ON o.id = p.id;
    """,
    "stream_left_join_with_grace": """
        CREATE STREAM x AS SELECT o.id, o.amount, p.paid
        FROM orders o
        LEFT JOIN payments p
        WITHIN 10 MINUTES GRACE PERIOD 1 MINUTE ON o.id = p.id;
    """,
    "stream_outer_join_with_grace": """
        CREATE STREAM x AS SELECT ROWKEY, o.amount, p.paid
        FROM orders o
        FULL OUTER JOIN payments p
        WITHIN (5 MINUTES, 10 MINUTES) GRACE PERIOD 1 MINUTE ON o.id = p.id;
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_sql(case):
    check(case, program(CASES[case]))
