"""/ksql about materialized views and views: what is listed, described, explained and refused."""

import httpx
import pytest

from holdfast.client.entities import Grid, Pairs, blocks

from .fake import FakeService
from .test_statements import one, run

DEFINITION = (
    "CREATE MATERIALIZED VIEW mv WITH (RETAIN HISTORY FOR '1h') AS SELECT id, total FROM totals WHERE total > 1;"
)


@pytest.fixture
def made(http: httpx.Client) -> httpx.Client:
    created = one(http, DEFINITION)
    assert created["commandId"] == "materialized_view/`MV`/create"
    assert created["commandStatus"]["queryId"].startswith("CMVAS_MV_")
    one(http, "CREATE VIEW v AS SELECT id, total * 2 AS twice FROM mv;")
    one(http, "CREATE VIEW of_stream AS SELECT id, amount FROM orders WHERE amount > 3;")
    return http


def test_a_materialized_view_is_listed_apart_from_tables(made: httpx.Client, service: FakeService) -> None:
    (listed,) = one(made, "SHOW MATERIALIZED VIEWS;")["materializedViews"]
    query = service.catalog.materialized_views[0].query
    assert listed == {
        "name": "MV",
        "reads": ["TOTALS"],
        "queryId": query,
        "isWindowed": False,
        "definition": DEFINITION.rstrip(";"),
    }
    assert [table["name"] for table in one(made, "SHOW TABLES;")["tables"]] == ["TOTALS"]
    assert [q["sinkKafkaTopics"] for q in one(made, "SHOW QUERIES;")["queries"] if q["id"] == query] == [[]]
    (grid,) = blocks(one(made, "SHOW MATERIALIZED VIEWS;"))
    assert isinstance(grid, Grid)
    assert list(grid.rows) == [["MV", "TOTALS", query, DEFINITION.rstrip(";")]]


def test_descriptions_have_no_topic(made: httpx.Client) -> None:
    told = one(made, "DESCRIBE mv;")
    described = told["sourceDescription"]
    assert (described["type"], described["topic"], described["keyFormat"]) == ("MATERIALIZED VIEW", "", "")
    assert [(f["name"], f["schema"]["type"], f.get("type")) for f in described["fields"]] == [
        ("ID", "STRING", "KEY"),
        ("TOTAL", "INTEGER", None),
    ]
    assert next(iter(blocks(told))) == Pairs({"Name": "MV", "Kind": "MATERIALIZED VIEW"})
    view = one(made, "DESCRIBE v;")["sourceDescription"]
    assert (view["type"], [f["name"] for f in view["fields"]]) == ("VIEW", ["ID", "TWICE"])
    stream = one(made, "DESCRIBE of_stream EXTENDED;")["sourceDescription"]
    assert [f["name"] for f in stream["fields"]] == ["ID", "AMOUNT"]
    assert stream["statement"] == "CREATE VIEW of_stream AS SELECT id, amount FROM orders WHERE amount > 3"
    described_all = one(made, "SHOW MATERIALIZED VIEWS EXTENDED;")["sourceDescriptions"]
    assert [each["name"] for each in described_all] == ["MV"]


@pytest.mark.parametrize(("format_", "has"), [("TEXT", "->  Table Keep"), ("JSON", '"tableKeepV1"'), ("DOT", "MV")])
def test_a_materialized_view_is_explained(made: httpx.Client, format_: str, has: str) -> None:
    text = f"EXPLAIN FORMAT {format_} CREATE MATERIALIZED VIEW x AS SELECT id, total FROM mv;"
    plan = one(made, text)["queryDescription"]["executionPlan"]
    assert has in plan
    assert "Topics Written" not in plan


@pytest.mark.parametrize(
    ("statement", "begins"),
    [
        ("DROP TABLE mv;", '"MV" is a materialized view, not a table'),
        ("DROP MATERIALIZED VIEW totals;", '"TOTALS" is a table, not a materialized view'),
        ("DROP MATERIALIZED VIEW mv;", 'cannot drop materialized view "MV" because views depend on it'),
        ("DROP TABLE totals;", 'cannot drop table "TOTALS" because queries depend on it'),
        ("INSERT INTO mv (id, total) VALUES ('a', 1);", 'cannot insert into "MV", which is a materialized view'),
        ("INSERT INTO mv SELECT id, amount FROM orders;", 'cannot insert into "MV", which is a materialized view'),
        ("CREATE MATERIALIZED VIEW mv AS SELECT id, total FROM totals;", 'materialized view "MV" already exists'),
        ("CREATE MATERIALIZED VIEW x AS SELECT id, amount FROM orders;", "the result of this query is a stream"),
        ("CREATE MATERIALIZED VIEW x WITH (KAFKA_TOPIC = 'x') AS SELECT id, total FROM totals;",
         "a materialized view has no KAFKA_TOPIC"),
        ("CREATE MATERIALIZED VIEW x AS SELECT id, total FROM totals ORDER BY id;", "ORDER BY is not supported yet"),
        ("CREATE MATERIALIZED VIEW x AS SELECT DISTINCT id FROM totals;", "DISTINCT is not supported yet"),
        ("ALTER TABLE mv SET (RETAIN HISTORY FOR '1h');", '"MV" is a materialized view, not a table'),
        ("ALTER MATERIALIZED VIEW mv SET (RETAIN HISTORY FOR 'soon');", "'soon' cannot be read as a duration"),
    ],
)  # fmt: skip
def test_what_is_refused(made: httpx.Client, statement: str, begins: str) -> None:
    answer = run(made, statement)
    assert answer.status_code == 400
    assert answer.json()["message"].startswith(begins)


def test_what_need_not_be_said_twice(made: httpx.Client) -> None:
    again = one(made, "CREATE MATERIALIZED VIEW IF NOT EXISTS mv AS SELECT id, total FROM totals;")
    assert again["warnings"] == [{"message": 'materialized view "MV" already exists'}]
    gone = one(made, "DROP MATERIALIZED VIEW IF EXISTS nothing;")
    assert gone["warnings"] == [{"message": 'materialized view "NOTHING" does not exist'}]
    one(made, "DROP VIEW v;")
    assert one(made, "DROP MATERIALIZED VIEW mv;")["commandId"] == "materialized_view/`MV`/drop"
