"""PreparedStatements that are planned once, from many threads, and the time that a read may take."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pyarrow as pa
import pytest

from holdfast.errors import ReadError
from holdfast.runtime.store.duckdb import open_store
from holdfast.runtime.store.duckdb import statements as statements_
from holdfast.runtime.store.duckdb.statements import Deadlines, PreparedStatements


@pytest.fixture
def statements():
    database = duckdb.connect(":memory:")
    found = PreparedStatements(database)
    yield found
    found.close()
    database.close()


def test_a_statement_scans_what_it_is_given_each_time(statements):
    sql = "SELECT a * 2 AS b FROM t JOIN u USING (a) ORDER BY a"
    for rows in ([1, 2, 3], [], [5]):
        tables = {"t": pa.table({"a": pa.array(rows, pa.int64())}), "u": pa.table({"a": pa.array([1, 3, 5])})}
        assert statements.run(sql, tables).column("b").to_pylist() == [2 * a for a in rows if a in (1, 3, 5)]


def test_the_same_text_over_other_columns_is_another_statement(statements):
    for column, expected in ((pa.array([1]), 2), (pa.array([1.5]), 2.5)):
        assert statements.run("SELECT a + 1 AS b FROM t", {"t": pa.table({"a": column})}).to_pylist() == [
            {"b": expected}
        ]


def test_threads_do_not_see_each_others_rows(statements):
    def run(i):
        table = pa.table({"a": pa.array([i] * 10, pa.int64())})
        return set(statements.run("SELECT a + 1 AS b FROM t", {"t": table}).column("b").to_pylist()) == {i + 1}

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(200)))


def test_a_statement_that_failed_can_run_again_and_old_ones_are_closed(statements, monkeypatch):
    monkeypatch.setattr(statements_, "STATEMENTS", 3)
    for text, expected in (("1", 1), ("x", None), ("2", 2)):
        table = {"t": pa.table({"a": [text]})}
        if expected is None:
            with pytest.raises(duckdb.ConversionException):
                statements.run("SELECT a::INTEGER AS b FROM t", table)
        else:
            assert statements.run("SELECT a::INTEGER AS b FROM t", table).to_pylist() == [{"b": expected}]
    for i in range(10):
        assert statements.run(f"SELECT a || '{i}' AS b FROM t", {"t": pa.table({"a": ["x"]})}).num_rows == 1
    assert len(statements._idle) == 3


@pytest.mark.parametrize("sql", ["DELETE FROM t", "SELECT 1; SELECT 2", "SET threads = 1"])
def test_only_a_select_can_be_prepared(statements, sql):
    with pytest.raises(ReadError, match="only one SELECT"):
        statements.run(sql, {"t": pa.table({"a": [1]})})


def test_deadlines_stop_what_takes_too_long_and_nothing_else():
    deadlines, stopped = Deadlines(0.2), threading.Event()
    with deadlines.over(lambda: pytest.fail("it did not take too long")):
        pass
    with deadlines.over(stopped.set):
        assert stopped.wait(10)
    stopped.clear()
    with deadlines.over(lambda: pytest.fail("it did not take too long")):
        pass
    time.sleep(0.3)
    with deadlines.over(stopped.set):
        assert stopped.wait(10)
    deadlines.close()


def test_deadlines_hold_after_one_that_failed(caplog: pytest.LogCaptureFixture) -> None:
    deadlines, failed, stopped = Deadlines(0.05), threading.Event(), threading.Event()

    def fail() -> None:
        failed.set()
        raise RuntimeError("nobody expected this")

    with deadlines.over(fail):
        assert failed.wait(10)
    with deadlines.over(stopped.set):
        assert stopped.wait(10)
    assert "nobody expected this" in caplog.text
    deadlines.close()


def test_an_expression_over_few_rows_is_stopped_after_its_time(tmp_path):
    store = open_store(tmp_path, read_timeout=0.3)
    table = {"t": pa.table({"a": [1]})}
    with pytest.raises(ReadError, match=r"longer than 0\.3 seconds"):
        store.evaluate_over("SELECT sum(a) FROM t, range(1000000000) x, range(1000000000) y", table)
    assert store.evaluate_over("SELECT a FROM t", table).num_rows == 1
    store.close()
