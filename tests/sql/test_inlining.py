"""Views in continuous queries: the plan is that of the query that one would write without them."""

import pytest

from holdfast.errors import BindError, HoldfastError, NotSupported, UnknownColumn
from holdfast.planner.plan import plan
from holdfast.runtime.plan.codec import encode
from holdfast.sql.bind.ddl_kind import BoundPlan
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.read.subscribe import BoundSubscribe
from holdfast.sql.syntax.parse import parse

from .build import catalog_of

SETUP = """
CREATE STREAM clicks (id STRING KEY, user STRING, page STRING, ms BIGINT) WITH (KAFKA_TOPIC='c', VALUE_FORMAT='JSON');
CREATE STREAM buys (id STRING KEY, user STRING, n INT) WITH (KAFKA_TOPIC='b', VALUE_FORMAT='JSON');
CREATE TABLE users (id STRING PRIMARY KEY, name STRING, age INT) WITH (KAFKA_TOPIC='u', VALUE_FORMAT='JSON');
CREATE TABLE orders (id INT PRIMARY KEY, user STRING, n INT) WITH (KAFKA_TOPIC='o', VALUE_FORMAT='JSON');
CREATE VIEW adults AS SELECT id, UCASE(name) AS name, age FROM users WHERE age >= 18;
CREATE VIEW everyone AS SELECT * FROM users;
CREATE VIEW renamed (a, b) AS SELECT id, name FROM users;
CREATE VIEW old AS SELECT id, name AS n FROM adults WHERE age > 60;
CREATE VIEW per_user AS SELECT user, COUNT(*) AS orders, SUM(n) AS n FROM orders GROUP BY user;
CREATE VIEW many AS SELECT user, n FROM per_user WHERE orders > 3;
CREATE VIEW named AS SELECT o.id AS id, o.n AS n, u.name AS name FROM orders o JOIN users u ON o.user = u.id;
CREATE VIEW slow AS SELECT user, page, ms / 1000 AS s FROM clicks WHERE ms > 1000;
CREATE VIEW sorted AS SELECT id, name FROM users ORDER BY id;
CREATE VIEW first AS SELECT id, name FROM users LIMIT 3;
CREATE VIEW united AS SELECT id FROM users UNION ALL SELECT user FROM orders;
CREATE VIEW inside AS SELECT id FROM users WHERE age > (SELECT MIN(n) FROM orders);
CREATE VIEW named_so AS WITH x AS (SELECT id FROM users) SELECT id FROM x;
"""
CATALOG = catalog_of(SETUP)


def planned(text: str) -> bytes:
    (parsed,) = parse(text)
    bound = bind(parsed.statement, CATALOG)
    assert isinstance(bound, BoundPlan)
    return encode(plan(bound, text="", number=0))


@pytest.mark.parametrize(
    ("with_views", "without"),
    [
        ("CREATE TABLE x AS SELECT * FROM everyone;", "CREATE TABLE x AS SELECT * FROM users;"),
        (
            "CREATE TABLE x AS SELECT id, name FROM adults WHERE name <> 'BO';",
            "CREATE TABLE x AS SELECT id, UCASE(name) AS name FROM users WHERE age >= 18 AND UCASE(name) <> 'BO';",
        ),
        (
            "CREATE MATERIALIZED VIEW x AS SELECT a, v.b AS c FROM renamed v;",
            "CREATE MATERIALIZED VIEW x AS SELECT id AS a, name AS c FROM users;",
        ),
        (
            "CREATE MATERIALIZED VIEW x AS SELECT * FROM old;",
            "CREATE MATERIALIZED VIEW x AS SELECT id, UCASE(name) AS n FROM users WHERE age >= 18 AND age > 60;",
        ),
        (
            "CREATE MATERIALIZED VIEW x AS SELECT name, COUNT(*) AS c FROM adults GROUP BY name HAVING COUNT(*) > 1;",
            "CREATE MATERIALIZED VIEW x AS SELECT UCASE(name) AS name, COUNT(*) AS c FROM users WHERE age >= 18"
            " GROUP BY UCASE(name) HAVING COUNT(*) > 1;",
        ),
        (
            "CREATE TABLE x AS SELECT user, n * 2 AS twice FROM per_user WHERE orders > 1;",
            "CREATE TABLE x AS SELECT user, SUM(n) * 2 AS twice FROM orders GROUP BY user HAVING COUNT(*) > 1;",
        ),
        (
            "CREATE MATERIALIZED VIEW x AS SELECT * FROM many;",
            "CREATE MATERIALIZED VIEW x AS SELECT user, SUM(n) AS n FROM orders GROUP BY user HAVING COUNT(*) > 3;",
        ),
        (
            "CREATE MATERIALIZED VIEW x AS SELECT id, name FROM named v WHERE n > 1;",
            "CREATE MATERIALIZED VIEW x AS SELECT v_o.id AS id, v_u.name AS name FROM orders v_o"
            " JOIN users v_u ON v_o.user = v_u.id WHERE v_o.n > 1;",
        ),
        (
            "CREATE STREAM x AS SELECT user, s FROM slow WHERE page = 'p' PARTITION BY user;",
            "CREATE STREAM x AS SELECT user, ms / 1000 AS s FROM clicks WHERE ms > 1000 AND page = 'p'"
            " PARTITION BY user;",
        ),
        (
            "CREATE TABLE x AS SELECT user, MAX(s) AS s FROM slow WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY user;",
            "CREATE TABLE x AS SELECT user, MAX(ms / 1000) AS s FROM clicks WINDOW TUMBLING (SIZE 1 HOUR)"
            " WHERE ms > 1000 GROUP BY user;",
        ),
        (
            "CREATE STREAM x AS SELECT s.user AS user, page, a.name AS who FROM slow s JOIN adults a ON s.user = a.id;",
            "CREATE STREAM x AS SELECT s.user AS user, s.page AS page, UCASE(a.name) AS who FROM clicks s"
            " JOIN users a ON s.user = a.id WHERE s.ms > 1000 AND a.age >= 18;",
        ),
        (
            "CREATE TABLE x AS SELECT o.id AS id, name FROM orders o LEFT JOIN everyone e ON o.user = e.id;",
            "CREATE TABLE x AS SELECT o.id AS id, e.name AS name FROM orders o LEFT JOIN users e ON o.user = e.id;",
        ),
        (
            "CREATE TABLE x AS SELECT * FROM orders o JOIN renamed r ON o.user = r.a;",
            "CREATE TABLE x AS SELECT o.id AS o_id, o.user AS o_user, o.n AS o_n, r.id AS r_a, r.name AS r_b"
            " FROM orders o JOIN users r ON o.user = r.id;",
        ),
    ],
)
def test_a_view_is_what_it_reads(with_views: str, without: str) -> None:
    assert planned(with_views) == planned(without)


@pytest.mark.parametrize(
    ("statement", "kind", "message", "detail", "column"),
    [
        ("CREATE TABLE x AS SELECT * FROM sorted;", NotSupported,
         'a continuous query cannot read the view "SORTED" here',
         "Its query has ORDER BY, which a continuous query cannot have.", 33),
        ("CREATE TABLE x AS SELECT * FROM first;", NotSupported,
         'a continuous query cannot read the view "FIRST" here',
         "Its query has LIMIT, which a continuous query cannot have.", 33),
        ("CREATE TABLE x AS SELECT * FROM united;", NotSupported,
         'a continuous query cannot read the view "UNITED" here',
         "Its query has UNION, which a continuous query cannot have.", 33),
        ("CREATE TABLE x AS SELECT * FROM named_so;", NotSupported,
         'a continuous query cannot read the view "NAMED_SO" here',
         "Its query has WITH, which a continuous query cannot have.", 33),
        ("CREATE TABLE x AS SELECT * FROM inside;", NotSupported,
         'a continuous query cannot read the view "INSIDE" here',
         "In its query: a query inside an expression is not supported here yet.", 33),
        ("CREATE TABLE x AS SELECT orders, COUNT(*) AS c FROM per_user GROUP BY orders;", NotSupported,
         'a continuous query cannot read the view "PER_USER" here',
         "It aggregates, and its result would be aggregated again.", 53),
        ("CREATE TABLE x AS SELECT u.id AS id, p.n AS n FROM users u JOIN per_user p ON u.id = p.user;", NotSupported,
         'a continuous query cannot read the view "PER_USER" here',
         "It aggregates, and its result would be joined.", 65),
        ("CREATE TABLE x AS SELECT u.id AS id FROM orders u JOIN named n ON u.id = n.id;", NotSupported,
         'a continuous query cannot read the view "NAMED" here',
         "It contains a join, and can only be the first relation of a query.", 56),
        ("CREATE TABLE x AS SELECT o.id AS id FROM orders o LEFT JOIN adults a ON o.user = a.id;", NotSupported,
         'a continuous query cannot read the view "ADULTS" here',
         "It filters, and the outer join keeps rows without a match in it.", 61),
        ("CREATE TABLE x AS SELECT nothing FROM adults;", UnknownColumn,
         'column "NOTHING" does not exist in "ADULTS"',
         'A view is replaced by its query here: "ADULTS".', 26),
        ("CREATE TABLE x AS SELECT name FROM adults;", BindError,
         None, 'A view is replaced by its query here: "ADULTS".', None),
        ("SELECT * FROM per_user EMIT CHANGES;", NotSupported,
         "GROUP BY is not supported in a push query yet",
         'A view is replaced by its query here: "PER_USER".', None),
    ],
)  # fmt: skip
def test_errors_name_the_view(statement, kind, message, detail, column) -> None:
    with pytest.raises(kind) as raised:
        planned(statement)
    error = raised.value
    assert message in (None, error.message)
    assert (error.detail or "").endswith(detail)
    assert column is None or (error.position is not None and error.position.column == column)
    assert error.hint is not None


def test_a_view_is_followed_by_the_changes_of_what_it_reads() -> None:
    push = bind(parse("SELECT name FROM adults WHERE age < 30 EMIT CHANGES;")[0].statement, CATALOG)
    assert isinstance(push, BoundSelect)
    assert push.relation.name == "USERS"
    subscribed = bind(parse("SUBSCRIBE TO adults;")[0].statement, CATALOG)
    assert isinstance(subscribed, BoundSubscribe)
    assert isinstance(subscribed.select, BoundSelect)
    assert [column.name for column in subscribed.select.columns] == ["ID", "NAME", "AGE"]
    evaluated = bind(parse("SUBSCRIBE TO (SELECT * FROM per_user);")[0].statement, CATALOG)
    assert isinstance(evaluated, BoundSubscribe)
    assert isinstance(evaluated.select, BoundRead)


def test_a_view_of_a_stream_is_checked_when_it_is_made() -> None:
    for text in (
        "CREATE VIEW v AS SELECT nothing FROM clicks;",
        "CREATE VIEW v AS SELECT id FROM clicks WHERE ms;",
        "CREATE VIEW v AS SELECT id FROM clicks ORDER BY id;",
        "CREATE VIEW v (a, b) AS SELECT id FROM clicks;",
    ):
        with pytest.raises(HoldfastError) as raised:
            planned(text)
        assert raised.value.position is not None
