"""Golden SQL: joins by foreign key."""

import pytest

from .programs import check, program

CASES = {
    "fk_join": """
        CREATE TABLE x AS SELECT u.id, u.name, r.country
        FROM users u
        JOIN regions r ON u.region = r.region;
    """,
    "fk_left_join": """
        CREATE TABLE x AS SELECT u.id, u.name, r.country
        FROM users u
        LEFT JOIN regions r ON u.region = r.region;
    """,
    "fk_join_inside_join": """
        CREATE TABLE x AS SELECT u.id, r.country, a.street
        FROM users u
        JOIN regions r ON u.region = r.region
        JOIN addresses a ON u.id = a.id;
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_sql(case):
    check(case, program(CASES[case]))
