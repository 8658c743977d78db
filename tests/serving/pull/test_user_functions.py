"""Functions of users in the queries of clients: Spark computes them."""

import pytest

from holdfast.errors import HoldfastError
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import parse
from tests.serving.client_reads import Reading, plain

FUNCTIONS = """
CREATE FUNCTION half(n INT) RETURNS DOUBLE LANGUAGE PYTHON AS '
def half(n):
    return [10 / (v - 4) if v == 4 else v / 2 for v in n.to_pylist()]
';
CREATE FUNCTION most(n INT) RETURNS INT LANGUAGE PYTHON AS '
class Most:
    def partial(self, n): return max(n.to_pylist())
    def merge(self, one, other): return max(one, other)
    def result(self, state): return state
';
"""


@pytest.fixture
def asked(engine):
    opened = Reading(engine)
    opened.driver.execute(FUNCTIONS)
    opened.put("T", {"a": (1, "x"), "b": (2, "x"), "c": (4, "y")})
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT id, half(n) AS h FROM t", [("a", 0.5), ("b", 1.0), ("c", None)]),
        ("SELECT id, HALF(n) AS h FROM t WHERE id = 'b'", [("b", 1.0)]),
        ("SELECT id FROM t WHERE half(n) < 1", [("a",)]),
        ("SELECT s, SUM(half(n)) AS h FROM t GROUP BY s ORDER BY s", [("x", 1.5), ("y", 0.0)]),
    ],
)
def test_a_function_of_a_user_in_a_pull(asked: Reading, text: str, rows: list[tuple[object, ...]]) -> None:
    assert sorted(plain(asked.pull(text).rows)) == rows


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT most(n) FROM t", "MOST"),
        ("INSERT INTO t (id, n) VALUES ('d', CAST(half(3) AS INT))", "HALF"),
    ],
)
def test_where_functions_of_users_cannot_be(asked: Reading, text: str, says: str) -> None:
    with pytest.raises(HoldfastError, match=says) as caught:
        bind(parse(text)[0].statement, asked.driver.catalog)
    assert caught.value.position is not None
    assert "@" not in caught.value.message
