"""Golden SQL: aggregations: partials, their merge by the store, and results that go back to Spark."""

import pytest

from .programs import check, program

CASES = {
    "aggregate_projected_by_store": """
        CREATE TABLE x AS SELECT city, SUM(amount) AS s
        FROM orders
        GROUP BY city
        HAVING COUNT(*) > 1;
    """,
    "aggregate_projected_by_spark": """
        CREATE TABLE x AS SELECT city, SUM(amount) + 1 AS s, MAX(item) AS m
        FROM orders
        GROUP BY city;
    """,
    "aggregate_in_order": """
        CREATE TABLE x AS SELECT city, LATEST_BY_OFFSET(item) AS item, COLLECT_LIST(amount) AS amounts
        FROM orders
        GROUP BY city;
    """,
    "table_aggregate": """
        CREATE TABLE x AS SELECT region, COUNT(*) + 0 AS n, COLLECT_LIST(name) AS names
        FROM users
        GROUP BY region;
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_sql(case):
    check(case, program(CASES[case]))
