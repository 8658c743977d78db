"""Which way a read takes to its rows: by the key, through an index, or through all of them."""

from typing import Any

import pytest
from runtime.driver import Driver, Record

from holdfast.errors import UnreadableTime
from holdfast.names import CollectionId
from holdfast.runtime.progress import Status
from holdfast.serving.pull.explain import explain_paths
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.parse import parse

TABLE = """
CREATE TABLE t (id STRING PRIMARY KEY, city STRING, n INT, d DOUBLE, p DECIMAL(6, 2), b BIGINT, f BOOLEAN)
  WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
CREATE TABLE u (id STRING PRIMARY KEY, m INT) WITH (KAFKA_TOPIC='u', VALUE_FORMAT='JSON');
"""
INDEXES = """
CREATE INDEX by_city ON t (city);
CREATE INDEX by_two ON t (city, n);
CREATE INDEX by_upper ON t (UCASE(city));
CREATE INDEX by_d ON t (d);
CREATE INDEX by_p ON t (p);
CREATE INDEX by_b ON t (b);
CREATE INDEX by_f ON t (f);
CREATE DEFAULT INDEX by_key ON t;
"""
CITIES = ["oslo", "Oslo", "rome", None, "it's"]


def record(i: int) -> Record:
    city = CITIES[i % 5]
    shown = "null" if city is None else f'"{city}"'
    text = (
        f'{{"CITY": {shown}, "N": {i % 3}, "D": {i % 4}.5, "P": {i % 3}.25, "B": {i}, "F": {str(i % 2 == 0).lower()}}}'
    )
    return Record("t", f"k{i}".encode(), text.encode(), i)


class Reads:
    """Queries over what a driver keeps."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    def bound(self, text: str) -> BoundSelect | BoundRead:
        bound = bind(parse(f"{text};")[0].statement, self.driver.catalog)
        assert isinstance(bound, BoundSelect | BoundRead)
        return bound

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        rows = self.driver.service.pull(self.bound(text)).rows.to_pylist()
        return sorted((tuple(row.values()) for row in rows), key=repr)

    def path(self, text: str) -> str:
        return self.explained(text)[0].removeprefix("  Path: ")

    def explained(self, text: str) -> list[str]:
        return explain_paths(self.bound(text), self.driver.store, self.driver.service._times).splitlines()[2:]


@pytest.fixture(scope="module")
def pair(engine):
    """The same rows with indexes and without."""
    both = [Driver(engine, TABLE + more) for more in (INDEXES, "")]
    for driver in both:
        driver.tick([*map(record, range(20)), Record("u", b"k1", b'{"M": 1}')])
        driver.tick([*map(record, range(20, 30)), Record("t", b"k3", None), Record("t", b"k5", b'{"CITY": "oslo"}')])
    yield tuple(map(Reads, both))
    for driver in both:
        driver.close()


CASES = [
    ("SELECT * FROM t WHERE city = 'oslo'", 'index "BY_CITY" on "T", looked up by CITY'),
    ("SELECT id FROM t WHERE 'rome' = city AND n > 0", 'index "BY_CITY" on "T", looked up by CITY'),
    ("SELECT id FROM t WHERE city IN ('oslo', 'it''s', 'nowhere')", 'index "BY_CITY" on "T", looked up by CITY'),
    ("SELECT id FROM t WHERE city = 'oslo' AND n = 1", 'index "BY_TWO" on "T", looked up by CITY, N'),
    ("SELECT id FROM t WHERE n IN (0, 1) AND city IN ('oslo', 'rome')", 'index "BY_TWO" on "T", looked up by CITY, N'),
    ("SELECT id FROM t WHERE UCASE(city) = 'OSLO'", 'index "BY_UPPER" on "T", looked up by UCASE(CITY)'),
    ("SELECT id FROM t WHERE d = 1.5", 'index "BY_D" on "T", looked up by D'),
    ("SELECT id FROM t WHERE p = 1.25", 'index "BY_P" on "T", looked up by P'),
    ("SELECT id FROM t WHERE p = 1.2501", 'index "BY_P" on "T", looked up by P'),
    ("SELECT id FROM t WHERE b = 7", 'index "BY_B" on "T", looked up by B'),
    ("SELECT id FROM t WHERE b = 2 + 5", 'index "BY_B" on "T", looked up by B'),
    ("SELECT id FROM t WHERE f = TRUE AND n = 1", 'index "BY_F" on "T", looked up by F'),
    ("SELECT * FROM t WHERE id = 'k1'", 'by the key of table "T"'),
    ("SELECT * FROM t WHERE id = 'k1' AND city = 'Oslo'", 'by the key of table "T"'),
    ("SELECT id FROM t WHERE city = 'oslo' OR n = 1", 'all rows of table "T"'),
    ("SELECT id FROM t WHERE city > 'oslo'", 'all rows of table "T"'),
    ("SELECT id FROM t WHERE NOT city = 'oslo'", 'all rows of table "T"'),
    ("SELECT id FROM t WHERE city = id", 'all rows of table "T"'),
    ("SELECT id FROM t WHERE b = 7.0E0", 'all rows of table "T"'),
    ("SELECT * FROM t", 'all rows of table "T"'),
    ("SELECT COUNT(*) AS c FROM t WHERE city = 'oslo'", 'index "BY_CITY" on "T", looked up by CITY'),
    ("SELECT n, COUNT(*) AS c FROM t WHERE city = 'oslo' GROUP BY n", 'index "BY_CITY" on "T", looked up by CITY'),
    ("SELECT id FROM t WHERE city = 'oslo' ORDER BY b DESC LIMIT 2", 'index "BY_CITY" on "T", looked up by CITY'),
    ("SELECT x.id FROM t x JOIN u ON x.id = u.id WHERE x.city = 'Oslo'", 'index "BY_CITY" on "T", looked up by CITY'),
    ("SELECT x.id, y.id AS o FROM t x JOIN t y ON x.n = y.n WHERE x.city = 'Oslo' AND y.b = 7",
     'index "BY_CITY" on "T", looked up by CITY'),
    ("SELECT u.id, x.n FROM u LEFT JOIN t x ON x.n = u.m WHERE COALESCE(x.city, 'oslo') = 'oslo'",
     'all rows of table "U"'),
    ("SELECT id FROM (SELECT id, city FROM t WHERE city = 'rome') q", 'index "BY_CITY" on "T", looked up by CITY'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "path"), CASES)
def test_the_path_is_chosen_and_the_answer_the_same(pair, text: str, path: str):
    indexed, plain = pair
    assert indexed.path(text) == path
    assert indexed.ask(text) == plain.ask(text)
    assert indexed.ask(f"{text} AS OF {indexed.driver.time - 1}") == plain.ask(f"{text} AS OF {plain.driver.time - 1}")


def test_an_explanation_says_why_an_index_is_not_used(pair):
    lines = pair[0].explained("SELECT id FROM t WHERE city = 'oslo' AND b = 7.0E0")
    assert lines == [
        '  Path: index "BY_CITY" on "T", looked up by CITY',
        '  Not used: index "BY_TWO", the WHERE does not compare N with constants',
        '  Not used: index "BY_UPPER", the WHERE does not compare UCASE(CITY) with constants',
        '  Not used: index "BY_D", the WHERE does not compare D with constants',
        '  Not used: index "BY_P", the WHERE does not compare P with constants',
        '  Not used: index "BY_B", B is BIGINT and compared with DOUBLE, which it cannot look up',
        '  Not used: index "BY_F", the WHERE does not compare F with constants',
        '  Not used: index "BY_KEY", the WHERE does not name the key by constants',
    ]


@pytest.fixture
def reads(engine):
    driver = Driver(engine, TABLE + "CREATE INDEX by_city ON t (city); CREATE DEFAULT INDEX by_key ON t;")
    driver.tick([Record("t", b"a", b'{"CITY": "oslo", "N": 1}')])
    driver.tick([Record("t", b"a", b'{"CITY": "rome", "N": 2}')])
    yield Reads(driver)
    driver.close()


def test_an_index_reads_a_time_that_its_table_no_longer_has(reads: Reads):
    driver = reads.driver
    first = driver.time - 1
    driver.store.advance_since(CollectionId("T"), driver.time)
    assert reads.ask(f"SELECT id, n FROM t WHERE city = 'oslo' AS OF {first}") == [("a", 1)]
    assert reads.ask(f"SELECT id, n FROM t AS OF {first}") == [("a", 1)]
    assert reads.ask(f"SELECT id, n FROM t WHERE id = 'a' AS OF {first}") == [("a", 1)]
    assert reads.ask(f"SELECT SUM(n) AS s FROM t AS OF {first}") == [(1,)]
    whole = f"SELECT id FROM t AS OF {first}"
    assert reads.path(whole) == 'all rows of index "BY_KEY" on "T", which goes further back than the table'
    assert reads.path(f"SELECT id FROM t WHERE id = 'a' AS OF {first}") == 'index "BY_KEY" on "T", looked up by ID'
    driver.store.advance_since(CollectionId("BY_KEY"), driver.time)
    assert reads.path(whole) == 'all rows of index "BY_CITY" on "T", which goes further back than the table'
    assert reads.ask(whole) == [("a",)]
    driver.store.advance_since(CollectionId("BY_CITY"), driver.time)
    with pytest.raises(UnreadableTime):
        reads.ask(whole)
    assert reads.ask("SELECT id FROM t") == [("a",)]


def test_an_index_whose_since_is_later_is_not_used(reads: Reads):
    driver = reads.driver
    first, text = driver.time - 1, "SELECT n FROM t WHERE city = 'oslo'"
    driver.store.advance_since(CollectionId("BY_CITY"), driver.time)
    assert reads.ask(f"{text} AS OF {first}") == [(1,)]
    lines = reads.explained(f"{text} AS OF {first}")
    assert lines[0] == '  Path: all rows of table "T"'
    assert '  Not used: index "BY_CITY", it is not readable at the time of the query' in lines
    assert reads.path(text) == 'index "BY_CITY" on "T", looked up by CITY'
    assert reads.ask(text) == []


def test_an_index_that_is_not_kept_current_answers_only_for_the_past(reads: Reads):
    driver = reads.driver
    stopped = driver.catalog.index("BY_CITY").query
    last = driver.time
    driver.service.query_registry.set(stopped, Status.ERROR, reason="it broke")
    driver.tick([Record("t", b"a", b'{"CITY": "oslo", "N": 3}')])
    assert reads.ask("SELECT n FROM t WHERE city = 'oslo'") == [(3,)]
    assert reads.path("SELECT n FROM t WHERE city = 'oslo'") == 'all rows of table "T"'
    assert reads.path(f"SELECT n FROM t WHERE city = 'rome' AS OF {last}").startswith('index "BY_CITY"')
    assert reads.ask(f"SELECT n FROM t WHERE city = 'rome' AS OF {last}") == [(2,)]


def test_an_index_without_later_columns_is_not_used(reads: Reads):
    reads.driver.execute("ALTER TABLE t ADD COLUMN later INT;")
    lines = reads.explained("SELECT id FROM t WHERE city = 'rome'")
    assert '  Not used: index "BY_CITY", it lacks columns of the table; drop it and create it again' in lines


def test_a_time_in_the_future_is_not_readable_by_an_index_either(reads: Reads):
    bound = reads.bound(f"SELECT id FROM t WHERE city = 'rome' AS OF {reads.driver.time + 5}")
    assert reads.driver.service.left_ms(bound) == 5
