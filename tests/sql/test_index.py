"""The statements about indexes."""

import pytest

from holdfast.catalog.commands import decode_command, encode_command
from holdfast.catalog.fold import apply
from holdfast.catalog.objects import QueryState
from holdfast.catalog.snapshot import EMPTY, Catalog
from holdfast.errors import (
    BadTime,
    BindError,
    DependentObjects,
    DuplicateObject,
    HoldfastError,
    NotSupported,
    UnknownObject,
    UnknownProperty,
    WrongObjectKind,
)
from holdfast.explain.text import explain
from holdfast.planner.commands import commands_for
from holdfast.runtime.plan.codec import decode
from holdfast.sql.bind.index import BoundCreateIndex
from holdfast.sql.bind.nothing import BoundNothing
from holdfast.sql.bind.query_control import BoundTerminate
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import parse

SETUP = """
CREATE TABLE t (id STRING PRIMARY KEY, city STRING, n INT, xs ARRAY<INT>, s STRUCT<a INT>)
  WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE TABLE counts AS SELECT city, COUNT(*) AS c FROM t GROUP BY city;
CREATE STREAM st (id STRING KEY, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);
CREATE VIEW v AS SELECT n + 1 AS m, city FROM t;
CREATE INDEX by_city ON t (city) WITH (RETAIN HISTORY FOR '1h');
"""


def after(text: str, catalog: Catalog = EMPTY) -> Catalog:
    """The catalog after statements, by the bytes of their commands."""
    for number, parsed in enumerate(parse(text)):
        bound = bind(parsed.statement, catalog)
        for command in commands_for(bound, text=parsed.text, number=number):
            catalog = apply(catalog, decode_command(*encode_command(command), offset=number))
    return catalog


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return after(SETUP)


def bound(text: str, catalog: Catalog):
    return bind(parse(text)[0].statement, catalog)


def refused(text: str, catalog: Catalog, kind: type[HoldfastError]) -> HoldfastError:
    with pytest.raises(kind) as caught:
        bound(text, catalog)
    return caught.value


def test_an_index_is_in_the_catalog_with_the_query_that_keeps_it(catalog: Catalog):
    index = catalog.index("BY_CITY")
    assert (index.on, index.by, index.retain_ms) == ("T", ("CITY",), 3_600_000)
    assert index.schema == catalog.table("T").schema
    entry = catalog.queries[index.query]
    assert (entry.state, entry.sources, entry.sink) == (QueryState.RUNNING, ("T",), "BY_CITY")
    assert catalog.indexes_on("T") == (index,)
    assert catalog.index_of(entry.id) == index


def test_the_plan_of_an_index_is_explained(catalog: Catalog):
    plan = decode(catalog.queries[catalog.index("BY_CITY").query].plan)
    assert explain(plan).splitlines()[:8] == [
        "Create Index BY_CITY on T",
        "  Schema: `ID` STRING KEY, `CITY` STRING, `N` INTEGER, `XS` ARRAY<INTEGER>, `S` STRUCT<`A` INTEGER>",
        "  Indexed By: CITY",
        "Query INDEX_BY_CITY_4",
        "  Reads: T",
        "  Writes: BY_CITY",
        "  Topics Read: t",
        "  ->  Table Index  (BY_CITY)",
    ]


@pytest.mark.parametrize(
    ("text", "name", "expressions"),
    [
        ("CREATE INDEX ON t (n)", "T_N_IDX", 1),
        ("CREATE INDEX ON t (city, n)", "T_CITY_N_IDX", 2),
        ("CREATE INDEX ON t (UCASE(city))", "T_UCASE_CITY_IDX", 1),
        ("CREATE INDEX ON t (s->a)", "T_S_A_IDX", 1),
        ("CREATE INDEX ON t (t.n)", "T_N_IDX", 1),
        ("CREATE DEFAULT INDEX ON counts", "COUNTS_PRIMARY_IDX", 0),
        ("CREATE DEFAULT INDEX IF NOT EXISTS `p` ON t", "p", 0),
        ("CREATE INDEX i ON counts (c)", "I", 1),
    ],
)
def test_names(catalog: Catalog, text: str, name: str, expressions: int):
    made = bound(f"{text};", catalog)
    assert isinstance(made, BoundCreateIndex)
    assert (made.name, len(made.expressions)) == (name, expressions)


def test_made_names_are_numbered(catalog: Catalog):
    more = after("CREATE INDEX ON t (n); CREATE INDEX ON t (n); CREATE INDEX ON t (n);", catalog)
    assert [index.name for index in more.indexes_on("T")] == ["BY_CITY", "T_N_IDX", "T_N_IDX2", "T_N_IDX3"]


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("CREATE INDEX ON nowhere (n)", UnknownObject, 'stream or table "NOWHERE" does not exist'),
        ("CREATE INDEX ON st (n)", WrongObjectKind, 'an index cannot be on "ST", which is a stream'),
        (
            "CREATE INDEX ON mz_tables (name)",
            WrongObjectKind,
            'an index cannot be on "mz_catalog.mz_tables", which is a system table',
        ),
        ("CREATE INDEX ON t", BindError, "CREATE INDEX needs at least one expression"),
        ("CREATE DEFAULT INDEX ON t (n)", BindError, "a DEFAULT INDEX is on the key and cannot have expressions"),
        ("CREATE INDEX ON t (n, n)", BindError, "index expression N is listed twice"),
        ("CREATE INDEX ON t (5)", BindError, "an index expression must depend on the row"),
        ("CREATE INDEX ON t (xs)", NotSupported, "an index expression cannot be of type ARRAY<INTEGER>"),
        ("CREATE INDEX ON t (CONCAT(city, UUID()))", NotSupported, "an index expression cannot use UUID"),
        ("CREATE INDEX ON t (COUNT(n))", BindError, "an index expression cannot contain the aggregate COUNT"),
        ("CREATE INDEX ON t (ROWOFFSET)", NotSupported, "an index expression cannot use ROWOFFSET"),
        ("CREATE INDEX by_city ON t (n)", DuplicateObject, 'index "BY_CITY" already exists'),
        ("CREATE INDEX t ON t (n)", DuplicateObject, 'table "T" already exists'),
        ("CREATE VIEW by_city AS SELECT id FROM t", DuplicateObject, 'index "BY_CITY" already exists'),
        ("CREATE INDEX ON t (n) WITH (RETAIN HISTORY FOR 'long')", BadTime, "'long' is not a valid duration"),
        ("CREATE INDEX ON t (n) WITH (KAFKA_TOPIC = 'x')", UnknownProperty, 'property "KAFKA_TOPIC" does not exist'),
        ("DROP INDEX nowhere", UnknownObject, 'index "NOWHERE" does not exist'),
        ("ALTER INDEX nowhere RESET (RETAIN HISTORY)", UnknownObject, 'index "NOWHERE" does not exist'),
        ("SHOW INDEXES ON nowhere", UnknownObject, 'stream or table "NOWHERE" does not exist'),
        ("TERMINATE INDEX_BY_CITY_4", DependentObjects, 'query INDEX_BY_CITY_4 maintains index "BY_CITY"'),
    ],
)
def test_what_is_refused(catalog: Catalog, text: str, kind: type[HoldfastError], message: str):
    assert refused(f"{text};", catalog, kind).message == message


def test_what_there_is_already(catalog: Catalog):
    again = bound("CREATE INDEX IF NOT EXISTS by_city ON t (n);", catalog)
    assert again == BoundNothing('index "BY_CITY" already exists')
    assert bound("DROP INDEX IF EXISTS nowhere;", catalog) == BoundNothing('index "NOWHERE" does not exist')


def test_an_index_keeps_its_object(catalog: Catalog):
    error = refused("DROP TABLE t;", after("DROP TABLE counts; DROP VIEW v;", catalog), DependentObjects)
    assert error.message == 'cannot drop table "T" because indexes depend on it'
    assert error.detail == "It is indexed by BY_CITY."
    assert error.hint == "Write CASCADE to drop the indexes too, or drop them first: DROP INDEX BY_CITY;"


def test_cascade_drops_indexes_and_the_holds_on_them(catalog: Catalog):
    held = after("DROP TABLE counts; DROP VIEW v; CREATE HOLD h ON by_city;", catalog)
    assert held.hold("H").on == ("BY_CITY",)
    gone = after("DROP TABLE t CASCADE;", held)
    assert not gone.indexes
    assert not gone.holds
    assert not gone.queries


def test_a_held_index_is_not_dropped(catalog: Catalog):
    held = after("CREATE HOLD h ON by_city, t;", catalog)
    error = refused("DROP INDEX by_city;", held, DependentObjects)
    assert error.message == 'cannot drop index "BY_CITY" because holds depend on it'
    gone = after("DROP INDEX by_city CASCADE;", held)
    assert not gone.indexes
    assert not gone.holds
    assert "INDEX_BY_CITY_4" not in gone.queries


@pytest.mark.parametrize(
    ("query", "schema"),
    [
        ("SELECT n, id FROM t WHERE n > 1", "`ID` STRING KEY, `N` INTEGER"),
        ("SELECT n + 1 AS m, city FROM t", "`VIEW_KEY` STRING KEY, `M` INTEGER, `CITY` STRING"),
        ("SELECT n + 1 AS view_key FROM t", "`VIEW_KEY1` STRING KEY, `VIEW_KEY` INTEGER"),
        ("SELECT COUNT(*) AS c, city FROM t GROUP BY city", "`CITY` STRING KEY, `C` BIGINT"),
        ("SELECT SUM(n) AS m FROM t GROUP BY city", "`VIEW_KEY` STRING KEY, `M` INTEGER"),
        ("SELECT COUNT(*) AS c FROM st GROUP BY n", "`VIEW_KEY` INTEGER KEY, `C` BIGINT"),
        ("SELECT m, city FROM v WHERE m > 2", "`VIEW_KEY` STRING KEY, `M` INTEGER, `CITY` STRING"),
        ("SELECT t.id AS id, c FROM t JOIN counts ON t.city = counts.city", "`ID` STRING KEY, `C` BIGINT"),
    ],
)
def test_an_index_on_a_view_has_a_key_that_the_view_may_not_show(catalog: Catalog, query: str, schema: str):
    more = after(f"CREATE VIEW w AS {query}; CREATE DEFAULT INDEX i ON w;", catalog)
    assert (more.index("I").on, str(more.index("I").schema)) == ("W", schema)
    assert "W" not in more.queries[more.index("I").query].sources


@pytest.mark.parametrize(
    ("query", "kind", "message", "detail"),
    [
        (
            "SELECT n FROM t ORDER BY n",
            NotSupported,
            'a continuous query cannot read the view "W" here',
            "Its query has ORDER BY, which a continuous query cannot have.",
        ),
        (
            "SELECT id, n FROM st",
            WrongObjectKind,
            'an index cannot be on "W", which is a view of a stream',
            "A stream without GROUP BY has no current rows.",
        ),
        (
            "SELECT MIN(n) AS m, city FROM t GROUP BY city",
            HoldfastError,
            "the aggregate MIN is not supported over a table",
            'A view is replaced by its query here: "W".',
        ),
    ],
)
def test_what_no_steps_serve_is_refused(
    catalog: Catalog, query: str, kind: type[HoldfastError], message: str, detail: str
):
    error = refused("CREATE INDEX ON w (n);", after(f"CREATE VIEW w AS {query};", catalog), kind)
    assert error.message == message
    assert detail in (error.detail or "")


def test_an_index_keeps_its_view(catalog: Catalog):
    indexed = after("CREATE INDEX i ON v (m); CREATE HOLD h ON i;", catalog)
    error = refused("DROP VIEW v;", indexed, DependentObjects)
    assert error.message == 'cannot drop view "V" because indexes depend on it'
    gone = after("DROP VIEW v CASCADE;", indexed)
    assert (sorted(gone.indexes), dict(gone.holds), dict(gone.views)) == (["BY_CITY"], {}, {})
    assert sorted(gone.queries) == sorted(catalog.queries)


def test_history_is_altered(catalog: Catalog):
    assert after("ALTER INDEX by_city SET (RETAIN HISTORY FOR '2h');", catalog).index("BY_CITY").retain_ms == 7_200_000
    assert after("ALTER INDEX by_city RESET (RETAIN HISTORY);", catalog).index("BY_CITY").retain_ms is None


def test_terminate_all_leaves_indexes_alone(catalog: Catalog):
    ended = bound("TERMINATE ALL;", catalog)
    assert isinstance(ended, BoundTerminate)
    assert [query.id for query in ended.queries] == ["CTAS_COUNTS_1"]
