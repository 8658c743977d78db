"""The figures of a server that works."""

import json

import pyarrow as pa
import pytest

from holdfast.app import Service
from holdfast.kafka.records import Outgoing
from holdfast.metrics import REGISTRY
from holdfast.names import QueryId, TopicName
from holdfast.runtime.spark.skips import Skip
from holdfast.server.http.metrics import ServiceCollector

from .service_calls import records, run


def figure(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"holdfast_{name}", labels) or 0.0


def write(service: Service, topic: str, *values: bytes) -> None:
    rows = {"key": [b"k"] * len(values), "value": list(values), "timestamp": [1] * len(values)}
    service._writer.write(Outgoing(TopicName(topic), pa.table(rows)))
    service.run_until_idle()


def test_figures_follow_what_happens(service: Service) -> None:
    topic = f"{service.settings.service_id}_in"
    sink = f"{service.settings.service_id.upper()}_BIG"
    run(
        service,
        f"CREATE STREAM s (k STRING KEY, n INT) WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='JSON', PARTITIONS=1);"
        f"CREATE STREAM {sink} AS SELECT k, n FROM s WHERE n > 1;",
    )
    ticks, timed = figure("ticks_total", kind="tick"), figure("tick_seconds_count", kind="tick")
    commits, jobs = (
        figure("commit_seconds_count"),
        sum(figure("spark_job_seconds_count", plan=plan) for plan in ("prepared", "small", "large")),
    )
    write(service, topic, b'{"n": 1}', b'{"n": 2}', b"nonsense", b'{"n": 3}')
    assert figure("records_read_total", topic=topic) == 4
    assert figure("records_published_total", topic=sink) == 2
    assert figure("undecodable_records_total", object=sink) == 1
    assert figure("ticks_total", kind="tick") > ticks
    assert figure("tick_seconds_count", kind="tick") - timed == figure("ticks_total", kind="tick") - ticks
    assert figure("commit_seconds_count") > commits
    assert sum(figure("spark_job_seconds_count", plan=p) for p in ("prepared", "small", "large")) > jobs
    assert figure("compaction_seconds_count") > 0
    assert service.store_bytes()["data"] + service.store_bytes()["log"] > 0
    (query,) = service.catalog.queries
    ((lag,),) = [service.lags()[QueryId(query)]]
    assert (lag.topic, lag.current, lag.end) == (topic, 4, 4)


def test_late_records_and_skipped_rows_are_counted_and_logged(service: Service) -> None:
    prefix = service.settings.service_id
    topic, table = f"{prefix}_late", f"{prefix.upper()}_PER_TEN"
    run(
        service,
        f"CREATE STREAM visits (k STRING KEY, page STRING, ms BIGINT) "
        f"WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='JSON', PARTITIONS=1, TIMESTAMP='ms');"
        f"CREATE TABLE {table} AS SELECT page, COUNT(*) AS c FROM visits "
        "WINDOW TUMBLING (SIZE 10 MILLISECONDS, GRACE PERIOD 0 MILLISECONDS) GROUP BY page;",
    )
    values = ['{"page": "a", "ms": 95}', '{"page": "a", "ms": 3}', '{"ms": 96}', '{"page": "a", "ms": -1}']
    write(service, topic, *(value.encode() for value in values))
    assert figure("late_records_total", object=table) == 1
    assert figure("skipped_rows_total", object=table) == 2
    log = f"_holdfast_{prefix}_processing_log"
    logged = [json.loads(value) for _, value in records(service, log) if value is not None]
    assert {(row["OBJECT"], row["PARTITION"], row["MESSAGE"], row["TOTAL"]) for row in logged} == {
        (table, 0, "records came too late: the stream time was 95", 1),
        (table, None, f"rows were skipped: {Skip.NO_GROUP.reason}", 1),
        (table, None, f"rows were skipped: {Skip.NO_TIMESTAMP.reason}", 1),
    }


def test_inserts_that_cannot_be_acknowledged_are_a_problem_of_their_part(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "inserts" not in service.health().problems
    monkeypatch.setattr(service._writer, "problem", "reports of inserted rows cannot be read")
    assert service.health().problems == {"inserts": "reports of inserted rows cannot be read"}
    [health] = [family for family in ServiceCollector(service).collect() if family.name == "holdfast_healthy"]
    assert {sample.labels["part"] for sample in health.samples if not sample.value} == {"inserts"}
