"""Views: a name for a query, read as a table is."""

import pytest

from holdfast.errors import BindError, DependentObjects, DuplicateObject, NotSupported, WrongObjectKind
from holdfast.sql.bind.nothing import BoundNothing
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import parse
from tests.serving.client_reads import Reading, plain


def run(reading: Reading, text: str) -> None:
    reading.driver.execute(text)


@pytest.fixture
def viewed(reading):
    reading.put("T", {"a": (1, "x"), "b": (2, "x"), "c": (3, "y")})
    reading.put("I", {1: (10,), 2: (20,)})
    run(reading, "CREATE VIEW per_s (s, total) AS SELECT s, SUM(n) FROM t GROUP BY s;")
    run(reading, "CREATE VIEW named AS WITH x AS (SELECT id, n FROM t) SELECT x.id, i.n FROM x JOIN i ON i.id = x.n;")
    run(reading, "CREATE VIEW large AS SELECT * FROM per_s WHERE total > (SELECT MIN(total) - 1 FROM per_s);")
    return reading


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM per_s ORDER BY s", [("x", 3), ("y", 3)]),
        ("SELECT id, n FROM named WHERE n > 10", [("b", 20)]),
        ("SELECT COUNT(*) FROM large", [(2,)]),
        ("SELECT t.id, v.total FROM t JOIN per_s v ON v.s = t.s WHERE t.id = 'a'", [("a", 3)]),
        ("SELECT id FROM i WHERE n IN (SELECT n FROM named) ORDER BY id", [(1,), (2,)]),
    ],
)
def test_a_view_is_read_as_a_table_is(query, expected, viewed):
    assert plain(viewed.pull(f"{query};").rows) == expected


def test_all_that_a_view_reads_is_read_at_one_time(viewed):
    at = viewed.now
    viewed.put("T", {"a": (5, "x")})
    assert plain(viewed.pull(f"SELECT total FROM per_s WHERE s = 'x' AS OF {at};").rows) == [(3,)]
    assert plain(viewed.pull("SELECT total FROM per_s WHERE s = 'x';").rows) == [(7,)]


def test_what_a_view_reads_stays(viewed):
    with pytest.raises(DependentObjects) as raised:
        run(viewed, "DROP VIEW per_s;")
    assert (raised.value.message, raised.value.detail) == (
        'cannot drop view "PER_S" because views depend on it',
        "It is read by LARGE.",
    )
    with pytest.raises(DependentObjects, match='cannot drop table "I" because views depend on it'):
        run(viewed, "DROP TABLE i;")
    run(viewed, "DROP VIEW large; DROP VIEW per_s;")
    assert list(viewed.driver.catalog.views) == ["NAMED"]


@pytest.mark.parametrize(
    ("statement", "kind", "message"),
    [
        ("CREATE VIEW per_s AS SELECT id FROM t;", DuplicateObject, 'view "PER_S" already exists'),
        ("CREATE VIEW t AS SELECT id FROM i;", DuplicateObject, 'table "T" already exists'),
        ("CREATE TABLE named AS SELECT id, n FROM t;", DuplicateObject, 'view "NAMED" already exists'),
        ("CREATE VIEW v AS SELECT nn FROM t;", BindError, 'column "NN" does not exist in "T"'),
        ("CREATE VIEW v (a, b) AS SELECT id FROM t;", BindError, '"V" names 2 columns, but its query has 1'),
        ("CREATE VIEW v AS SELECT id FROM v;", BindError, 'stream or table "V" does not exist'),
        ("CREATE VIEW v AS SELECT id FROM t AS OF 5;", NotSupported, "AS OF cannot be used in a view"),
        ("CREATE VIEW v AS SELECT id FROM t EMIT CHANGES;", NotSupported,
         "EMIT is not allowed in a pull query or a view"),
        ("CREATE TABLE x AS SELECT id, n FROM named;", NotSupported,
         'a continuous query cannot read the view "NAMED" here'),
        ("INSERT INTO named (id) VALUES ('a');", WrongObjectKind, '"NAMED" is a view, not a stream or table'),
        ("DROP VIEW nothing;", BindError, 'view "NOTHING" does not exist'),
    ],
)  # fmt: skip
def test_what_is_refused(statement, kind, message, viewed):
    with pytest.raises(kind) as raised:
        run(viewed, statement)
    assert raised.value.message == message
    assert raised.value.position is not None


def test_what_is_there_or_not_may_be_left_to_chance(viewed):
    catalog = viewed.driver.catalog
    for text in ("CREATE VIEW IF NOT EXISTS named AS SELECT id FROM t;", "DROP VIEW IF EXISTS nothing;"):
        assert isinstance(bind(parse(text)[0].statement, catalog), BoundNothing)
