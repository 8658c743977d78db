"""A job that takes too long is cancelled, and only the fragment at fault fails.

`tests/e2e/test_runaways.py` has tasks that cannot be cancelled.
"""

from collections.abc import Iterator
from datetime import timedelta
from threading import Event

import pyarrow as pa
import pytest

from holdfast.errors import JobTimeout
from holdfast.runtime.fragment import Fragment, FragmentColumn
from holdfast.runtime.spark import deadlines
from holdfast.runtime.spark.deadlines import JobDeadlines
from holdfast.runtime.spark.engine import Engine, Failure, Round
from holdfast.runtime.spark.session import Sessions, has_exited

NUMBERS = "(SELECT explode(sequence(1, 300000)) AS {})"
IN_DRIVER = f"SELECT count(*) AS n FROM v CROSS JOIN {NUMBERS.format('a')} CROSS JOIN {NUMBERS.format('b')}"
AS_JOB = "SELECT count(*) AS n FROM v CROSS JOIN range(1000000000000)"
QUICK = "SELECT count(*) AS n FROM v"
COLUMNS = (FragmentColumn("n", "BIGINT", pa.int64()),)


@pytest.fixture
def brief(sessions: Sessions) -> Iterator[Engine]:
    """An engine with a short limit."""
    yield Engine(sessions, {}, timedelta(seconds=3))
    sessions.restart()


@pytest.mark.parametrize(("rows", "sql"), [(1, IN_DRIVER), (20_000, AS_JOB)], ids=["in the driver", "as a Spark job"])
def test_a_job_that_takes_too_long_is_cancelled_and_the_others_run(
    brief: Engine, sessions: Sessions, rows: int, sql: str
) -> None:
    inputs = Round({"v": pa.table({"c0": pa.array(range(rows), pa.int64())})}, {})
    spark = sessions.small
    with pytest.raises(JobTimeout, match="longer than 3 s"):
        brief.select(sql, inputs)

    quick, endless = brief.run([Fragment(QUICK, COLUMNS), Fragment(sql, COLUMNS)], inputs)
    assert isinstance(quick, pa.Table)
    assert quick.to_pylist() == [{"n": rows}]
    assert isinstance(endless, Failure)
    assert "query_timeout" in endless.reason
    assert "RESUME" in endless.reason
    assert sessions.small is spark, "the tasks could be cancelled"
    assert not has_exited(sessions.process)
    assert brief.select(QUICK, inputs).to_pylist() == [{"n": rows}]


def test_the_limits_hold_after_spark_could_not_be_ended(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(deadlines, "GRACE_SECONDS", 0.05)
    failed, cancelled = Event(), Event()

    def kill() -> None:
        failed.set()
        raise ProcessLookupError("nobody expected this")

    watch = JobDeadlines(timedelta(seconds=0.05), kill)
    with watch.over(lambda: None):
        assert failed.wait(10)
    with watch.over(cancelled.set):
        assert cancelled.wait(10)
    assert "nobody expected this" in caplog.text
