"""Golden SQL: joins of two streams: what arrives, its order, and the clocks."""

import pytest

from .programs import check, program

CASES = {
    "stream_join": """
        CREATE STREAM x AS SELECT o.id, o.amount, p.paid
        FROM orders o
        JOIN payments p
        WITHIN 10 MINUTES ON o.id = p.id;
    """,
    "stream_join_of_one_topic": """
        CREATE STREAM again (id STRING KEY, item STRING, city STRING, amount INT, tags ARRAY<STRING>)
        WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON');
        CREATE STREAM x AS SELECT o.id, o.amount, p.amount AS other
        FROM orders o
        JOIN again p
        WITHIN 10 MINUTES ON o.id = p.id;
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_sql(case):
    check(case, program(CASES[case]))
