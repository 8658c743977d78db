"""What programs look like: stages, what rides along, which rounds they run in."""

import pytest
from runtime.driver import Driver

from holdfast.errors import PlanError
from holdfast.names import QueryId
from holdfast.runtime.plan.codec import decode
from holdfast.runtime.program import Append, MergeInto, ObjectInput, SavedRows, TopicInput, Upsert
from holdfast.runtime.spark.build import build_query

SQL = """
CREATE STREAM s (id STRING KEY, city STRING, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
CREATE STREAM p AS SELECT id, n FROM s;
CREATE TABLE along AS SELECT city, COUNT(*) AS c, SUM(n) AS s FROM s GROUP BY city HAVING SUM(n) > 5;
CREATE TABLE back AS SELECT city, COUNT(*) + 1 AS c FROM s GROUP BY city;
CREATE TABLE after_p AS SELECT id, SUM(n) AS s FROM p GROUP BY id;
CREATE TABLE after_back AS SELECT city, c FROM back;
CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
CREATE TABLE after_t AS SELECT id, n FROM t;
"""


@pytest.fixture
def driver(engine):
    opened = Driver(engine, SQL)
    yield opened
    opened.close()


def test_a_stream_is_one_stage_that_appends(driver):
    (stage,) = driver.program("P").stages
    assert isinstance(stage.inputs[0], TopicInput)
    assert stage.action == Append()


def test_a_projection_of_plain_columns_rides_along_with_the_merge(driver):
    (stage,) = driver.program("ALONG").stages
    assert isinstance(stage.action, MergeInto)
    assert stage.action.projection is not None
    assert stage.action.projection.having is not None


def test_a_computed_projection_goes_back_to_spark(driver):
    first, second = driver.program("BACK").stages
    assert isinstance(first.action, MergeInto)
    assert first.action.projection is None
    assert isinstance(second.inputs[0], SavedRows)
    assert second.inputs[0].stage == 0
    assert isinstance(second.action, Upsert)


def test_queries_of_objects_read_what_their_queries_gave(driver):
    for name, source in (("AFTER_P", "P"), ("AFTER_BACK", "BACK"), ("AFTER_T", "T")):
        found = driver.program(name).sources[0]
        assert isinstance(found, ObjectInput)
        assert found.name == source


def test_upstream_runs_before_downstream_and_all_of_a_depth_at_once(driver):
    rounds = [
        sorted((program.object, index) for program, index in planned)
        for planned in driver.dataflow.rounds(driver.dataflow.programs)
    ]
    assert rounds == [
        [("ALONG", 0), ("BACK", 0), ("P", 0), ("T", 0)],
        [("AFTER_P", 0), ("AFTER_T", 0), ("BACK", 1)],
        [("AFTER_BACK", 0)],
    ]


def test_readers_of_one_topic_that_read_it_alike_share_its_decoding(driver):
    views = {driver.program(name).sources[0].view for name in ("P", "ALONG", "BACK")}
    assert len(views) == 1


def test_a_table_that_nobody_keeps_cannot_be_read(driver):
    plan = decode(driver.catalog.queries[driver.program("AFTER_T").query].plan).query
    assert plan.sources == ("T",)
    driver.dataflow.remove(QueryId("TABLE_T"))
    with pytest.raises(PlanError, match='reads topic "t" as a table that does not exist'):
        build_query(plan, driver.dataflow)
