"""/ksql about materialized views and views: what is listed, described, explained and refused."""

from collections.abc import Iterator

import httpx
import pytest

from holdfast.client.entities import Grid, Pairs, blocks
from holdfast.runtime.spark.engine_pair import EnginePair
from tests.server.local import LocalService, SharedServer
from tests.server.test_statements import one, run

DEFINITION = (
    "CREATE MATERIALIZED VIEW mv WITH (RETAIN HISTORY FOR '1h') AS SELECT id, total FROM totals WHERE total > 1;"
)


VIEWS = """
CREATE VIEW v AS SELECT id, total * 2 AS twice FROM mv;
CREATE VIEW of_stream AS SELECT id, amount FROM orders WHERE amount > 3;
"""


@pytest.fixture(scope="module")
def shared(engines: EnginePair) -> Iterator[SharedServer]:
    server = SharedServer(engines, DEFINITION + VIEWS)
    yield server
    server.close()


def test_a_materialized_view_is_made(http: httpx.Client) -> None:
    created = one(http, DEFINITION.replace(" mv ", " another "))
    assert created["commandId"] == "materialized_view/`ANOTHER`/create"
    assert created["commandStatus"]["queryId"].startswith("CMVAS_ANOTHER_")


def test_a_materialized_view_is_listed_apart_from_tables(http: httpx.Client, service: LocalService) -> None:
    (listed,) = one(http, "SHOW MATERIALIZED VIEWS;")["materializedViews"]
    query = service.catalog.materialized_views[0].query
    assert listed == {
        "name": "MV",
        "reads": ["TOTALS"],
        "queryId": query,
        "isWindowed": False,
        "definition": DEFINITION.rstrip(";"),
    }
    assert [table["name"] for table in one(http, "SHOW TABLES;")["tables"]] == ["TOTALS"]
    assert [q["sinkKafkaTopics"] for q in one(http, "SHOW QUERIES;")["queries"] if q["id"] == query] == [[]]
    (grid,) = blocks(one(http, "SHOW MATERIALIZED VIEWS;"))
    assert isinstance(grid, Grid)
    assert list(grid.rows) == [["MV", "TOTALS", query, DEFINITION.rstrip(";")]]


def test_descriptions_have_no_topic(http: httpx.Client) -> None:
    shown = one(http, "DESCRIBE mv;")
    described = shown["sourceDescription"]
    assert (described["type"], described["topic"], described["keyFormat"]) == ("MATERIALIZED VIEW", "", "")
    assert [(f["name"], f["schema"]["type"], f.get("type")) for f in described["fields"]] == [
        ("ID", "STRING", "KEY"),
        ("TOTAL", "INTEGER", None),
    ]
    assert next(iter(blocks(shown))) == Pairs({"Name": "MV", "Kind": "MATERIALIZED VIEW"})
    view = one(http, "DESCRIBE v;")["sourceDescription"]
    assert (view["type"], [f["name"] for f in view["fields"]]) == ("VIEW", ["ID", "TWICE"])
    stream = one(http, "DESCRIBE of_stream EXTENDED;")["sourceDescription"]
    assert [f["name"] for f in stream["fields"]] == ["ID", "AMOUNT"]
    assert stream["statement"] == "CREATE VIEW of_stream AS SELECT id, amount FROM orders WHERE amount > 3"
    described_all = one(http, "SHOW MATERIALIZED VIEWS EXTENDED;")["sourceDescriptions"]
    assert [each["name"] for each in described_all] == ["MV"]


@pytest.mark.parametrize(("format_", "has"), [("TEXT", "->  Table Keep"), ("JSON", '"tableKeepV1"'), ("DOT", "MV")])
def test_a_materialized_view_is_explained(http: httpx.Client, format_: str, has: str) -> None:
    text = f"EXPLAIN FORMAT {format_} CREATE MATERIALIZED VIEW x AS SELECT id, total FROM mv;"
    plan = one(http, text)["queryDescription"]["executionPlan"]
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
        ("ALTER MATERIALIZED VIEW mv SET (RETAIN HISTORY FOR 'soon');", "'soon' is not a valid duration"),
    ],
)  # fmt: skip
def test_what_is_refused(http: httpx.Client, statement: str, begins: str) -> None:
    answer = run(http, statement)
    assert answer.status_code == 400
    assert answer.json()["message"].startswith(begins)


def test_what_need_not_be_said_twice(http: httpx.Client) -> None:
    again = one(http, "CREATE MATERIALIZED VIEW IF NOT EXISTS mv AS SELECT id, total FROM totals;")
    assert again["warnings"] == [{"message": 'materialized view "MV" already exists'}]
    gone = one(http, "DROP MATERIALIZED VIEW IF EXISTS nothing;")
    assert gone["warnings"] == [{"message": 'materialized view "NOTHING" does not exist'}]
    one(http, "DROP VIEW v;")
    assert one(http, "DROP MATERIALIZED VIEW mv;")["commandId"] == "materialized_view/`MV`/drop"
