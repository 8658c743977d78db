"""Spark's process ends during a job: it is started again, and the fragment at fault is found."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from holdfast.errors import ReadError, SparkRestarted
from holdfast.runtime.fragment import Fragment, FragmentColumn
from holdfast.runtime.spark.client_reads import MAX_EXITS, REFUSED_SECONDS, ClientReads
from holdfast.runtime.spark.engine import ENDS_SPARK, Engine, Round
from holdfast.runtime.spark.session import Sessions

COLUMNS = (FragmentColumn("n", "STRING", pa.string()),)
QUICK = Fragment("SELECT CAST(count(*) AS STRING) AS n FROM v", COLUMNS)
ENDING = Fragment("SELECT reflect('java.lang.System', 'exit', 3) AS n FROM v", COLUMNS)
INPUTS = Round({"v": pa.table({"c0": pa.array([1, 2], pa.int64())})}, {})


@pytest.fixture
def engine(sessions: Sessions) -> Iterator[Engine]:
    yield Engine(sessions, {})
    sessions.restart()


def test_a_job_that_ends_spark_says_so_and_the_next_one_runs(engine: Engine, sessions: Sessions) -> None:
    process = sessions.process
    with pytest.raises(SparkRestarted):
        engine.run([QUICK, ENDING], INPUTS)
    [rows] = engine.run([QUICK], INPUTS)
    assert isinstance(rows, pa.Table)
    assert rows.to_pylist() == [{"n": "2"}]
    assert sessions.process is not process
    with pytest.raises(SparkRestarted):
        engine.select(ENDING.sql, INPUTS)
    assert engine.select(QUICK.sql, INPUTS).to_pylist() == [{"n": "2"}]


def test_a_read_that_ends_spark_is_not_mistaken_for_the_tick_beside_it(
    engine: Engine, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice; then reads are refused for a while, and exits are those of the ticks again."""
    reading, now = Engine(sessions.isolated(), {}), [0.0]
    monkeypatch.setattr(sessions, "reads", ClientReads(lambda: now[0]))
    monkeypatch.setattr(reading.sessions, "reads", sessions.reads)
    for _ in range(MAX_EXITS):
        assert engine.run([QUICK], INPUTS)
        with pytest.raises(SparkRestarted):
            reading.read(ENDING.sql, INPUTS)
        with pytest.raises(SparkRestarted) as raised:
            engine._raise_if_ended(OSError("the connection is closed"))
        assert raised.value.beside_read
        with monkeypatch.context() as patched:
            patched.setattr(engine, "run", lambda *_: engine._raise_if_ended(OSError()))
            with pytest.raises(SparkRestarted):
                engine.run_isolated([QUICK], INPUTS)
    with pytest.raises(ReadError, match="refused for a moment") as refused:
        reading.read(QUICK.sql, INPUTS)
    assert "Try again in 60 s" in (refused.value.hint or "")
    assert engine.run_isolated([ENDING], INPUTS) == [ENDS_SPARK]
    now[0] += REFUSED_SECONDS
    assert reading.read(QUICK.sql, INPUTS).to_pylist() == [{"n": "2"}]


def test_of_fragments_that_run_alone_only_the_one_that_ends_spark_fails(engine: Engine) -> None:
    before, ending, after = engine.run_isolated([QUICK, ENDING, QUICK], INPUTS)
    assert ending is ENDS_SPARK
    for rows in (before, after):
        assert isinstance(rows, pa.Table)
        assert rows.to_pylist() == [{"n": "2"}]
