"""How Spark is started."""

from pathlib import Path

import pytest

from holdfast.runtime.spark.session import Sessions, java_options


def test_options_of_the_user_stay_and_ours_are_there_once():
    ours = "-XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=40"
    end = "-XX:+ExitOnOutOfMemoryError -Dlog4j2.configurationFile="
    first = java_options("-Xss4m -XX:TieredStopAtLevel=1", Path("/a/log4j2.properties"))
    assert first == f"-Xss4m -XX:TieredStopAtLevel=1 {ours} {end}/a/log4j2.properties"
    assert java_options(first, Path("/b")) == f"-Xss4m -XX:TieredStopAtLevel=1 {ours} {end}/b"
    assert java_options("-XX:MinHeapFreeRatio=60", Path("/b")) == f"-XX:MinHeapFreeRatio=60 {end}/b"


def test_code_that_was_generated_is_there_when_it_is_needed_again(sessions: Sessions):
    session = sessions.large
    made = session.sparkContext._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()

    def run() -> int:
        before = made.getCount()
        for i in range(55):  # More classes than Spark's usual cache has room for.
            session.sql(f"SELECT id + {i} AS n FROM range(1)").collect()
        return made.getCount() - before

    assert run() > 100
    assert run() < 10


def test_a_regular_expression_that_goes_too_deep_fails_its_job_alone(sessions: Sessions):
    for session in (sessions.small, sessions.large):
        deep = "SELECT regexp_extract(repeat('ab', 100000 + id), '(a|b)*', 0) AS t FROM range(1)"
        with pytest.raises(Exception, match="StackOverflowError"):
            session.sql(deep).collect()
        assert session.sql("SELECT id + 1 AS n FROM range(1)").collect() == [(1,)]
