"""Users' functions in Python, through the real engine: values, errors, versions, aggregates."""

from pathlib import Path

import pytest
from runtime.driver import Driver, Record

from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.spark.session import PYTHON, Sessions

SOURCE = "CREATE STREAM s (id STRING KEY, name STRING, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');"
INITIAL = """
CREATE FUNCTION initial(name STRING, n INT) RETURNS STRING LANGUAGE PYTHON AS '
import pyarrow.compute as pc

def initial(name, n):
    "The beginning of a name."
    return pc.utf8_slice_codeunits(pc.utf8_upper(name), 0, 1)
';
"""
INVERSE = """
CREATE FUNCTION inverse(n INT) RETURNS DOUBLE LANGUAGE PYTHON AS '
def inverse(n):
    return [None if v is None else 1 / v for v in n.to_pylist()]
';
"""
SPAN = """
CREATE FUNCTION span(n INT) RETURNS INT LANGUAGE PYTHON AS '
import pyarrow.compute as pc

class Span:
    def partial(self, n):
        found = pc.min_max(n).as_py()
        return [found["min"], found["max"]] if found["min"] is not None else None

    def merge(self, one, other):
        if one is None or other is None:
            return one or other
        return [min(one[0], other[0]), max(one[1], other[1])]

    def result(self, state):
        return None if state is None else state[1] - state[0]
';
"""


def record(key: str, name: str | None, n: int | None) -> Record:
    text = "null" if name is None else f'"{name}"'
    return Record("s", key.encode(), f'{{"NAME": {text}, "N": {"null" if n is None else n}}}'.encode())


@pytest.fixture
def driver(engine: Engine, tmp_path):
    made = Driver(engine, SOURCE, folder=tmp_path)
    yield made
    made.close()


def values(driver: Driver, name: str) -> list[bytes | None]:
    return [sent.value for sent in driver.sent(name)]


def test_a_function_is_computed_for_all_rows_and_again(driver: Driver) -> None:
    driver.execute(
        INITIAL + "CREATE STREAM p AS SELECT id, INITIAL(name, n) AS i FROM s WHERE initial(name, n) <> 'C';"
    )
    driver.tick([record("a", "ann", 1), record("b", None, 2), record("c", "cid", 3)])
    driver.tick([record("d", "dora", 1)])
    assert values(driver, "P") == [b'{"I":"A"}', b'{"I":"D"}']


def test_a_row_for_which_it_raises_is_null_and_logged(driver: Driver) -> None:
    driver.execute(INVERSE + "CREATE STREAM p AS SELECT id, INVERSE(n) AS i FROM s;")
    outcome = driver.tick([record("a", "x", 2), record("b", "x", 0), record("c", "x", 4), record("d", "x", None)])
    assert values(driver, "P") == [b'{"I":0.5}', b'{"I":null}', b'{"I":0.25}', b'{"I":null}']
    assert not outcome.failed
    assert [(p.function, p.reason, p.rows) for p in outcome.problems] == [
        ("INVERSE", "ZeroDivisionError: division by zero", 1)
    ]
    assert driver.tick([record("a", "x", 2)]).problems == []


def test_wrong_types_and_lengths_are_logged(driver: Driver) -> None:
    driver.execute(
        "CREATE FUNCTION odd(n INT) RETURNS INT LANGUAGE PYTHON AS 'def odd(n):\n    return [\"x\"] * len(n)';"
        "CREATE FUNCTION short(n INT) RETURNS INT LANGUAGE PYTHON AS 'def short(n):\n    return []';"
        "CREATE STREAM p AS SELECT id, ODD(n) AS o, SHORT(n) AS s FROM s;"
    )
    outcome = driver.tick([record("a", "x", 2)])
    assert values(driver, "P") == [b'{"O":null,"S":null}']
    reasons = {p.function: p.reason for p in outcome.problems}
    assert "x" in reasons["ODD"]
    assert reasons["SHORT"] == "ValueError: returned 0 values for 1 rows"


def test_what_is_not_a_column_makes_all_rows_null(driver: Driver) -> None:
    """A batch is not halved until one value happens to be enough for one row."""
    driver.execute(
        "CREATE FUNCTION mean(n INT) RETURNS DOUBLE LANGUAGE PYTHON AS "
        "'def mean(n):\n    return [sum(n.to_pylist()) / len(n)]';"
        "CREATE FUNCTION word(n INT) RETURNS STRING LANGUAGE PYTHON AS 'def word(n):\n    return \"x\" * len(n)';"
        "CREATE FUNCTION sum_of(n INT) RETURNS INT LANGUAGE PYTHON AS 'def sum_of(n):\n    return 6';"
        "CREATE STREAM p AS SELECT id, MEAN(n) AS m, WORD(n) AS w, SUM_OF(n) AS s FROM s;"
    )
    outcome = driver.tick([record("a", "x", 1), record("b", "x", 2), record("c", "x", 3)])
    assert values(driver, "P") == [b'{"M":null,"W":null,"S":null}'] * 3
    assert {(p.function, p.reason, p.rows) for p in outcome.problems} == {
        ("MEAN", "ValueError: returned 1 values for 3 rows", 3),
        ("WORD", "TypeError: returned a str, not a column", 3),
        ("SUM_OF", "TypeError: returned a int, not a column", 3),
    }


def test_fractions_are_not_cut_off(driver: Driver) -> None:
    driver.execute(
        "CREATE FUNCTION listed(n INT) RETURNS INT LANGUAGE PYTHON AS "
        "'def listed(n):\n    return [v / 2 for v in n.to_pylist()]';"
        "CREATE FUNCTION arrow(n INT) RETURNS INT LANGUAGE PYTHON AS "
        "'import pyarrow.compute as pc\n\ndef arrow(n):\n    return pc.divide(pc.cast(n, \"double\"), 2.0)';"
        "CREATE STREAM p AS SELECT id, LISTED(n) AS l, ARROW(n) AS a FROM s;"
    )
    outcome = driver.tick([record("a", "x", 2), record("b", "x", 3)])
    assert values(driver, "P") == [b'{"L":1,"A":1}', b'{"L":null,"A":null}']
    assert {p.function for p in outcome.problems} == {"LISTED", "ARROW"}


def test_code_that_leaves_or_does_not_load_stops_nothing(driver: Driver, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    driver.execute(
        "CREATE FUNCTION leaves(n INT) RETURNS INT LANGUAGE PYTHON AS 'def leaves(n):\n    raise SystemExit(3)';"
        f'CREATE FUNCTION lacks(n INT) RETURNS INT LANGUAGE PYTHON AS \'open("{seen}", "a").write("x")\n'
        "import a_module_that_nobody_has\n\ndef lacks(n):\n    return n';"
        "CREATE STREAM p AS SELECT id, LEAVES(n) AS l, LACKS(n) AS m FROM s;"
    )
    outcome = driver.tick([record(str(n), "x", n) for n in range(100)])
    assert values(driver, "P") == [b'{"L":null,"M":null}'] * 100
    reasons = {p.function: (p.reason, p.rows) for p in outcome.problems}
    assert reasons["LEAVES"] == ("SystemExit: 3", 100)
    assert reasons["LACKS"] == ("ModuleNotFoundError: No module named 'a_module_that_nobody_has'", 100)
    assert len(seen.read_text()) <= 4, "the code is run again for each task, not for each row"


def test_a_running_query_keeps_its_version(driver: Driver) -> None:
    driver.execute(INVERSE + "CREATE STREAM old AS SELECT id, INVERSE(n) AS i FROM s;")
    driver.execute(INVERSE.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION").replace("1 / v", "100 / v"))
    driver.execute("CREATE STREAM new AS SELECT id, INVERSE(n) AS i FROM s;")
    driver.tick([record("a", "x", 2)])
    assert (values(driver, "OLD"), values(driver, "NEW")) == ([b'{"I":0.5}'], [b'{"I":50.0}'])
    driver.execute("DROP FUNCTION inverse;")
    again = driver.restart()
    again.tick([record("a", "x", 4)])
    assert (values(again, "OLD")[1:], values(again, "NEW")[1:]) == ([b'{"I":0.25}'], [b'{"I":25.0}'])
    again.close()


def test_an_aggregate_is_merged_with_what_was_there(driver: Driver) -> None:
    driver.execute(
        SPAN + "CREATE TABLE t AS SELECT id, SPAN(n) AS s, COUNT(*) AS c FROM s GROUP BY id;"
        "CREATE TABLE wide AS SELECT id, SPAN(n) + 1 AS s FROM s GROUP BY id HAVING SPAN(n) > 3;"
    )
    driver.tick([record("a", "x", 5), record("a", "x", 2), record("b", "x", None)])
    driver.tick([record("a", "x", 9), record("b", "x", 1)])
    again = driver.restart()
    again.tick([record("b", "x", 4)])
    assert [row[:-1] for row in again.rows("T")] == [("a", 7, 3), ("b", 3, 3)]
    assert [row[:-1] for row in again.rows("WIDE")] == [("a", 8)]
    again.close()


def test_an_aggregate_sees_a_groups_records_in_the_order_of_time(driver: Driver) -> None:
    driver.execute(
        """
        CREATE FUNCTION listed(n INT) RETURNS STRING LANGUAGE PYTHON AS '
class Listed:
    def partial(self, n):
        return n.to_pylist()

    def merge(self, one, other):
        return one + other

    def result(self, state):
        return str(state)
';
        CREATE TABLE t AS SELECT name, listed(n) AS every FROM s GROUP BY name;
        """
    )
    places = [(1, 5), (0, 7), (1, 9), (1, 2), (0, 11)]
    records = [Record("s", b"k", b'{"NAME": "x", "N": %d}' % n, ts, part) for n, (part, ts) in enumerate(places)]
    assert not driver.tick(records).failed
    assert [row[:2] for row in driver.rows("T")] == [("x", "[0, 1, 2, 3, 4]")]


def test_an_aggregate_over_windows(driver: Driver) -> None:
    driver.execute(SPAN + "CREATE TABLE t AS SELECT id, SPAN(n) AS s FROM s WINDOW TUMBLING (SIZE 1 DAY) GROUP BY id;")
    driver.ticks([record("a", "x", 5), record("a", "x", 1)])
    assert [row[-2] for row in driver.rows("T")] == [4]


def test_an_aggregate_that_raises_keeps_its_state(driver: Driver) -> None:
    driver.execute(
        "CREATE FUNCTION total(n INT) RETURNS INT LANGUAGE PYTHON AS '"
        "class total:\n"
        "    def partial(self, n):\n        return sum(n.to_pylist())\n"
        "    def merge(self, one, other):\n        return one + other if other < 10 else 1 // 0\n"
        "    def result(self, state):\n        return state\n';"
        "CREATE TABLE t AS SELECT id, TOTAL(n) AS s FROM s GROUP BY id;"
    )
    outcomes = driver.ticks([record("a", "x", 5), record("a", "x", 50), record("a", "x", 2)])
    assert [row[:-1] for row in driver.rows("T")] == [("a", 7)]
    assert [len(outcome.problems) for outcome in outcomes] == [0, 1, 0]


def test_a_function_that_does_not_come_back_fails_its_query_alone(driver: Driver, sessions: Sessions) -> None:
    driver.execute(
        "CREATE FUNCTION stuck(n INT) RETURNS INT LANGUAGE PYTHON AS '"
        "import time\n\ndef stuck(n):\n    time.sleep(3600)\n';"
        "CREATE STREAM p AS SELECT id, STUCK(n) AS o FROM s;"
        "CREATE STREAM q AS SELECT id, n FROM s;"
    )
    timeout = f"{PYTHON}.idleTimeoutSeconds"
    before = sessions.small.conf.get(timeout)
    sessions.small.conf.set(timeout, "3")
    try:
        outcome = driver.tick([record("a", "x", 2)])
    finally:
        sessions.small.conf.set(timeout, before)
    assert list(outcome.failed) == [driver.program("P").query]
    assert values(driver, "Q") == [b'{"N":2}']
