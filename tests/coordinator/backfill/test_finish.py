"""A query that has all rows and cannot be finished at once: its last slice is not run again, and nothing passes it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from holdfast.app import Service
from holdfast.coordinator.backfill.loop import BackfillLoop
from holdfast.errors import StoreError
from tests.coordinator.servers import Servers
from tests.coordinator.service_calls import rows, run, states

SETUP = """
CREATE TABLE t (id STRING PRIMARY KEY, n INT) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC = 's', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE STREAM derived WITH (KAFKA_TOPIC = 'derived') AS SELECT id, n FROM s;
INSERT INTO t (id, n) VALUES ('a', 1);
INSERT INTO t (id, n) VALUES ('b', 1);
INSERT INTO s (id, n) VALUES ('a', 1);
"""
PER_N = "CREATE TABLE per_n AS SELECT n, COUNT(*) AS c FROM t GROUP BY n;"
PER_ID = "CREATE TABLE per_id AS SELECT id, COUNT(*) AS c FROM derived GROUP BY id;"


@contextmanager
def not_finished(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The disk is full once the last slice is committed."""

    def full(*_: Any) -> None:
        raise StoreError("the disk of the data folder is full")

    with monkeypatch.context() as patched:
        patched.setattr(BackfillLoop, "_thaw", full)
        with pytest.raises(StoreError, match="full"):
            yield


def test_the_last_slice_is_not_run_again(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    run(service, SETUP)
    with not_finished(monkeypatch):
        run(service, PER_N)
    service.run_until_idle()
    assert rows(service, "per_n") == {(1, 2)}


def test_pending_rows_are_not_taken_again(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    run(service, SETUP)
    with monkeypatch.context() as patched:
        patched.setattr(service.publishing, "publish_pending", lambda: False)
        run(service, "INSERT INTO s (id, n) VALUES ('a', 2);")
        with not_finished(monkeypatch):
            run(service, PER_ID)
    service.run_until_idle()
    assert rows(service, "per_id") == {("a", 2)}


def test_a_query_that_is_paused_before_it_is_finished_misses_nothing(
    servers: Servers, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(service, SETUP)
    with not_finished(monkeypatch):
        run(service, PER_ID)
    [query] = [query for query, state in states(service).items() if state != "RUNNING"]
    run(service, f"PAUSE {query};")
    run(service, "INSERT INTO s (id, n) VALUES ('a', 3);")
    run(service, f"RESUME {query};")
    assert rows(service, "per_id") == {("a", 2)}
    servers.start()


def test_rows_are_not_inserted_past_a_query_that_is_not_finished(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(service, SETUP)
    with not_finished(monkeypatch):
        run(service, PER_ID)
    with pytest.raises(StoreError, match="cannot be inserted now"):
        run(service, "INSERT INTO derived (id, n) VALUES ('a', 3);")
    service.run_until_idle()
    run(service, "INSERT INTO derived (id, n) VALUES ('a', 3);")
    assert rows(service, "per_id") == {("a", 2)}
