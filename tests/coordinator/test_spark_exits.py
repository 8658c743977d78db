"""Spark's process ends several times in a row: reads shrink and queries run alone, until an attempt succeeds."""

from pathlib import Path
from typing import Any

import pytest

from holdfast.config import load
from holdfast.coordinator.read_limits import SHRINK_FACTOR, ReadLimits
from holdfast.coordinator.spark_exits import MAX_EXITS, SparkExits
from holdfast.errors import KafkaError, SparkRestarted

POLLED = 5_000


def exits_in(tmp_path: Path) -> tuple[SparkExits, ReadLimits]:
    ranges: Any = None
    settings = load({"data_dir": tmp_path, "small_tick_records": POLLED}, environment={})
    limits = ReadLimits(settings, ranges)
    return SparkExits(limits), limits


def fail(exits: SparkExits, error: Exception) -> None:
    with pytest.raises(type(error)), exits.counted():
        raise error


def test_reads_shrink_and_queries_run_alone_after_exits_in_a_row(tmp_path: Path) -> None:
    exits, limits = exits_in(tmp_path)
    before = limits.rows_at_once, limits.returned_bytes
    for _ in range(MAX_EXITS):
        assert not exits.isolate
        assert limits.polled == POLLED
        fail(exits, SparkRestarted())
    assert exits.isolate
    assert limits.polled == POLLED // SHRINK_FACTOR
    assert (limits.rows_at_once, limits.returned_bytes) == tuple(limit // SHRINK_FACTOR for limit in before)

    with exits.counted():
        pass
    assert not exits.isolate
    assert limits.polled == POLLED * 2 // SHRINK_FACTOR
    for _ in range(SHRINK_FACTOR):
        with exits.counted():
            pass
    assert limits.polled == POLLED


def test_exits_beside_reads_of_clients_are_not_counted(tmp_path: Path) -> None:
    exits, limits = exits_in(tmp_path)
    for _ in range(2 * MAX_EXITS):
        fail(exits, SparkRestarted(beside_read=True))
    assert not exits.isolate
    assert limits.polled == POLLED


def test_other_failures_are_no_exits_and_limits_never_reach_zero(tmp_path: Path) -> None:
    exits, limits = exits_in(tmp_path)
    for _ in range(2 * MAX_EXITS):
        fail(exits, KafkaError("Kafka is away"))
    assert not exits.isolate
    for _ in range(20):
        fail(exits, SparkRestarted())
    assert limits.polled >= 1
    assert limits.returned_bytes >= 1
