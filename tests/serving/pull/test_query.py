"""Queries that read: joins, groups, order, unions, queries inside queries; all at one time, by both engines."""

import pytest

from holdfast.errors import HoldfastError, ReadError
from holdfast.runtime.expressions.physical import Dialect
from holdfast.serving.pull.query import read
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.pull import BoundRead, compiled
from holdfast.sql.syntax.parse import parse
from tests.serving.client_reads import Reading, plain

ANSWERS = [
    ("SELECT COUNT(*) FROM t", [(5,)]),
    ("SELECT COUNT(*) FROM t WHERE false", [(0,)]),
    ("SELECT COUNT(*) FROM t GROUP BY ()", [(5,)]),
    ("SELECT COUNT(n), SUM(n), AVG(n), MIN(n), MAX(s) FROM t", [(4, 10, 2.5, 1, "y")]),
    ("SELECT SUM(n), AVG(n), MIN(n) FROM t WHERE n > 100", [(0, 0.0, None)]),
    ("SELECT s, COUNT(*) AS c, SUM(n) t FROM t GROUP BY s ORDER BY c DESC, s",
     [("x", 2, 4), ("", 1, 4), ("y", 1, 0), (None, 1, 2)]),
    ("SELECT s, COUNT(n) FROM t GROUP BY 1 HAVING COUNT(*) > 1", [("x", 2)]),
    ("SELECT n % 2 AS odd, COUNT(*) FROM t WHERE n IS NOT NULL GROUP BY odd ORDER BY odd", [(0, 2), (1, 2)]),
    ("SELECT SUM(n) + 1 AS m FROM t HAVING SUM(n) > 5", [(11,)]),
    ("SELECT SUM(n) FROM t HAVING SUM(n) > 500", []),
    ("SELECT COUNT_DISTINCT(s) FROM t", [(3,)]),
    ("SELECT SUM(CAST(n AS DECIMAL(10, 2))) AS d FROM i", "[(Decimal('30.00'),)]"),
    ("SELECT SUM(big) FROM (SELECT 2147483647 AS big FROM i) x", [(2147483645,)]),
    ("SELECT id, n FROM t ORDER BY n DESC LIMIT 2 OFFSET 1", [("it's", 4), ("A", 3)]),
    ("SELECT id, n FROM t ORDER BY n DESC NULLS LAST, id LIMIT 1", [("it's", 4)]),
    ("SELECT id FROM t ORDER BY -n NULLS FIRST OFFSET 3", [("b",), ("a",)]),
    ("SELECT id FROM i ORDER BY 'a constant', id", [(1,), (2,), (5,)]),
    ("SELECT DISTINCT s FROM t ORDER BY 1", [("",), ("x",), ("y",), (None,)]),
    ("SELECT DISTINCT a FROM two ORDER BY a DESC LIMIT 1", [(2,)]),
    ("SELECT t.id, i.n FROM t JOIN i ON t.n = i.id ORDER BY t.id", [("a", 10), ("b", 20)]),
    ("SELECT t.id, i.n FROM t LEFT JOIN i ON t.n = i.id AND i.n > 10 WHERE t.n < 3 ORDER BY t.id",
     [("a", None), ("b", 20)]),
    ("SELECT t.id, i.id AS other FROM t RIGHT JOIN i ON t.n = i.id ORDER BY other", [("a", 1), ("b", 2), (None, 5)]),
    ("SELECT COUNT(*), i.id IS NULL AS alone FROM t FULL JOIN i ON t.n = i.id GROUP BY (i.id IS NULL) ORDER BY alone",
     [(3, False), (3, True)]),
    ("SELECT x.id, y.id AS other FROM i x, i y WHERE x.n < y.n", [(1, 2)]),
    ("SELECT COUNT(*) FROM i CROSS JOIN t", [(15,)]),
    ("SELECT * FROM i JOIN l ON i.id = l.id", [(1, 10, 1, 1)]),
    ("SELECT id FROM t WHERE n IN (SELECT id FROM i) ORDER BY id", [("a",), ("b",)]),
    ("SELECT id FROM t WHERE n NOT IN (SELECT id FROM l) ORDER BY id", [("",), ("A",), ("b",), ("it's",)]),
    ("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM i WHERE i.id = t.n AND i.n > 10)", [("b",)]),
    ("SELECT id, (SELECT MAX(n) FROM i WHERE i.id <= t.n) AS m FROM t WHERE n > 0 ORDER BY id",
     [("A", 20), ("a", 10), ("b", 20), ("it's", 20)]),
    ("SELECT id FROM t WHERE n = (SELECT MAX(n) FROM t)", [("it's",)]),
    ("SELECT s, (SELECT COUNT(*) FROM t u WHERE u.s = t.s) AS same FROM t WHERE s <> '' GROUP BY s ORDER BY s",
     [("x", 2), ("y", 1)]),
    ("WITH x AS (SELECT s, SUM(n) AS total FROM t GROUP BY s), y (k, v) AS (SELECT * FROM x WHERE total > 0)"
     " SELECT * FROM y ORDER BY k", [("", 4), ("x", 4), (None, 2)]),
    ("WITH x AS (SELECT id FROM i) SELECT a.id, b.id AS c FROM x a JOIN x b ON a.id + 1 = b.id", [(1, 2)]),
    ("SELECT id, n FROM i UNION ALL SELECT n, id FROM l ORDER BY 2, 1",
     [(1, 1), (1, 10), (2, 20), (2, 3_000_000_000), (5, None)]),
    ("SELECT s FROM t UNION SELECT s FROM t ORDER BY s NULLS FIRST", [(None,), ("",), ("x",), ("y",)]),
    ("SELECT id FROM i UNION ALL (SELECT id FROM i ORDER BY id DESC LIMIT 1) ORDER BY id", [(1,), (2,), (5,), (5,)]),
    ("SELECT x.c FROM (SELECT s, COUNT(*) AS c FROM t GROUP BY s) x WHERE x.s = 'x'", [(2,)]),
    ("SELECT MAX(ROWTIME) - MIN(ROWTIME) AS span FROM two", [(0,)]),
]  # fmt: skip

MISTAKES = [
    ("SELECT id, COUNT(*) FROM t", 'column "ID" is neither aggregated nor in GROUP BY',
     "Add ID to GROUP BY, or aggregate it.", 8),
    ("SELECT id FROM t, i", 'column "ID" is ambiguous', "Write T.ID or I.ID.", 8),
    ("SELECT id FROM t x, i x", 'two relations of the query are called "X"',
     "Give one of them another name: I AS other.", 21),
    ("SELECT y.id FROM t ORDER BY id", 'relation "Y" does not exist', "Known names are: T.", 8),
    ("SELECT id FROM t ORDER BY nn", 'column "NN" does not exist in "T"', 'Did you mean "N"?', 27),
    ("SELECT id FROM t ORDER BY 2", "ORDER BY position 2 is not in the select list", None, 27),
    ("SELECT DISTINCT id FROM t ORDER BY n", "with DISTINCT, rows can only be sorted by selected expressions",
     None, 36),
    ("SELECT id FROM t UNION SELECT id FROM i", "UNION cannot match STRING with INTEGER", None, 24),
    ("SELECT id FROM t UNION SELECT id, n FROM t",
     "each SELECT of a UNION must have the same number of columns: 1, not 2", None, 24),
    ("SELECT id FROM t UNION SELECT id FROM t ORDER BY n", "a UNION can only be sorted by its columns",
     "Its columns are: ID.", 50),
    ("SELECT id FROM t WHERE n = (SELECT id, n FROM i)", "a query inside an expression must return one column, not 2",
     None, 29),
    ("SELECT id FROM t WHERE id IN (SELECT n FROM i)", "cannot compare STRING with the INTEGER of a query", None, 24),
    ("SELECT LATEST_BY_OFFSET(n) FROM t", "the aggregate LATEST_BY_OFFSET cannot be used in a pull query",
     None, 8),
    ("SELECT SUM(COUNT(*)) FROM t", "aggregates cannot be nested: COUNT in SUM", None, 12),
    ("SELECT n FROM t GROUP BY COUNT(*)", "GROUP BY cannot contain the aggregate COUNT", None, 26),
    ("SELECT COUNT(*) FROM t JOIN i ON COUNT(*) = 1", "ON cannot contain the aggregate COUNT", None, 34),
    ("SELECT COUNT(*) FROM t WHERE COUNT(*) > 1", "WHERE cannot contain the aggregate COUNT",
     "Filter groups with HAVING, after GROUP BY.", 30),
    ("SELECT COUNT(*) FROM t HAVING SUM(n)", "HAVING must be BOOLEAN, not INTEGER", None, 31),
    ("SELECT EXPLODE(ARRAY[1]), COUNT(*) FROM t", "a pull query cannot contain the table function EXPLODE",
     "Table functions are only allowed in the select list.", 8),
    ("WITH x AS (SELECT id FROM x) SELECT * FROM x", 'stream or table "X" does not exist', None, 27),
    ("WITH x (a, b) AS (SELECT id FROM i) SELECT * FROM x", '"X" names 2 columns, but its query has 1', None, 6),
    ("SELECT COUNT(*) FROM t WINDOW TUMBLING (SIZE 1 SECOND)", "WINDOW is not allowed in a pull query or a view",
     "It is only allowed in a continuous query: CREATE TABLE … AS SELECT.", 24),
    ("SELECT id FROM t LIMIT 1 UNION SELECT id FROM t", "LIMIT must come after the last SELECT of a UNION", None, 1),
    ("SELECT * FROM (SELECT id FROM t AS OF 5) x", "AS OF is only allowed at the end of the whole query", None, 33),
    ("SELECT t.id, i.id, n FROM t JOIN i ON true", 'column "N" is ambiguous', "Write T.N or I.N.", 20),
]  # fmt: skip


def fill(reading: Reading) -> Reading:
    reading.put("T", {"a": (1, "x"), "b": (2, None), "": (None, "y"), "A": (3, "x"), "it's": (4, "")})
    reading.put("I", {1: (10,), 2: (20,), 5: (None,)})
    reading.put("L", {1: (1,), 3_000_000_000: (2,)})
    reading.put("TWO", {(1, "x"): (1,), (1, "y"): (2,), (2, "x"): (3,)})
    return reading


@pytest.fixture(scope="module")
def filled(engine):
    reading = fill(Reading(engine))
    yield reading
    reading.close()


def matches(expected: object, rows: list[tuple[object, ...]]) -> bool:
    return repr(rows) == expected if isinstance(expected, str) else rows == expected


@pytest.mark.parametrize(("query", "expected"), ANSWERS, ids=[query for query, _ in ANSWERS])
def test_what_the_store_answers(query, expected, filled):
    bound = bind(parse(f"{query};")[0].statement, filled.driver.catalog)
    assert isinstance(bound, BoundRead)
    assert bound.dialect is Dialect.DUCKDB
    assert matches(expected, plain(filled.pull(f"{query};").rows))


@pytest.mark.parametrize(("query", "message", "hint", "column"), MISTAKES, ids=[each[0] for each in MISTAKES])
def test_type_errors_are_reported_with_their_place(query, message, hint, column, filled):
    with pytest.raises(HoldfastError) as problem:
        filled.pull(f"{query};")
    error = problem.value
    assert (error.message, error.position.column if error.position else None) == (message, column)
    if hint is not None:
        assert error.hint == hint


def test_a_query_in_an_expression_that_gives_two_rows_fails(filled):
    with pytest.raises(ReadError, match="the query failed") as problem:
        filled.pull("SELECT id FROM t WHERE n = (SELECT id FROM i);")
    assert "More than one row" in str(problem.value)


def test_names_of_columns(filled):
    def names(query: str) -> list[str]:
        return [column.name for column in filled.pull(query).columns]

    assert names("SELECT * FROM t JOIN i ON t.n = i.id;") == ["T_ID", "T_N", "S", "I_ID", "I_N"]
    assert names("SELECT t.id, s, COUNT(*) FROM t JOIN i ON true GROUP BY t.id, s;") == ["ID", "S", "KSQL_COL_0"]
    assert names("SELECT t.id, i.n, i.id FROM t JOIN i ON true;") == ["T_ID", "N", "I_ID"]
    assert names("SELECT x.* FROM (SELECT id AS k, n FROM i) x ORDER BY k;") == ["K", "N"]


def test_all_objects_are_read_at_one_time(reading):
    fill(reading)
    first = reading.now
    reading.put("I", {1: (11,)})
    second = reading.put("T", {"a": (5, "z")})
    query = "SELECT t.n, i.n AS m FROM t, i WHERE t.id = 'a' AND i.id = 1 AS OF {};"
    assert plain(reading.pull(query.format(first)).rows) == [(1, 10)]
    assert plain(reading.pull(query.format(first + 1)).rows) == [(1, 11)]
    assert plain(reading.pull(query.format(second)).rows) == [(5, 11)]
    assert reading.pull(query.format("now()")).time == reading.now


def test_functions_without_a_proven_form_run_on_spark(engine):
    reading = fill(Reading(engine))
    try:
        query = "SELECT UCASE(s) AS u, COUNT(*) AS c FROM t JOIN i ON i.id > 1 GROUP BY UCASE(s) ORDER BY u NULLS FIRST"
        bound = bind(parse(f"{query};")[0].statement, reading.driver.catalog)
        assert isinstance(bound, BoundRead)
        assert bound.dialect is Dialect.SPARK
        assert plain(reading.pull(f"{query};").rows) == [(None, 2), ("", 2), ("X", 4), ("Y", 2)]
        assert plain(reading.pull("SELECT TOPK(n, 2) FROM t;").rows) == [([4, 3],)]
    finally:
        reading.close()


def test_both_engines_give_the_same(engine):
    reading = fill(Reading(engine))
    try:
        for query, expected in ANSWERS:
            select = parse(f"{query};")[0].statement
            bound = compiled(select, reading.driver.catalog, Dialect.SPARK)  # type: ignore[arg-type]
            assert matches(expected, plain(read(bound, reading.store, engine, reading.times).rows)), query
    finally:
        reading.close()
