"""What the processing log says."""

import pyarrow as pa

from holdfast.coordinator import processing_log
from holdfast.coordinator.log_outbox import LogOutbox
from holdfast.names import ObjectName, TopicName
from holdfast.runtime.outcome import Late, Outcome, Undecodable
from holdfast.runtime.spark.functions import FunctionProblem
from holdfast.runtime.spark.skips import Skip
from holdfast.runtime.store.memory.store import MemoryStore
from holdfast.runtime.store.port import Time
from holdfast.runtime.store.schemas import rows_schema

ORDERS, PER_DAY = ObjectName("ORDERS"), ObjectName("PER_DAY")


def test_failures_of_user_functions_are_logged() -> None:
    outcome = Outcome(problems=[FunctionProblem("INVERSE", "ZeroDivisionError: division by zero", 3)])
    rows = processing_log.rows(outcome, 17)
    assert rows is not None
    assert rows.schema.equals(rows_schema(processing_log.LAYOUT))
    (row,) = rows.to_pylist()
    assert (row["c0"], row["c5"], row["ts"]) == ("INVERSE", 3, 17)
    assert row["c4"] == "the function gave no value, which is NULL then: ZeroDivisionError: division by zero"


def test_a_record_that_cannot_be_decoded_is_logged_with_its_reason_place_and_bytes() -> None:
    place = {"part": pa.array([2], pa.int32()), "off": pa.array([5], pa.int64()), "ts": pa.array([0], pa.int64())}
    record = {"key": pa.array([b"k"]), "value": pa.array([b"{"]), "reason": ["the value is not a JSON object"]}
    rows = processing_log.rows(
        Outcome(undecodable=[Undecodable(TopicName("t"), ORDERS, pa.table({**place, **record}), 4_000)]), 17
    )
    assert rows is not None
    assert rows.schema.equals(rows_schema(processing_log.LAYOUT))
    assert [tuple(row.values()) for row in rows.to_pylist()] == [
        ("ORDERS", "t", 2, 5, "the record was skipped: the value is not a JSON object", 4_000, b"k", b"{", 17)
    ]


def test_late_records_and_skipped_rows_are_logged_with_their_number() -> None:
    outcome = Outcome(late={(PER_DAY, 3): Late(2, 90_000)}, skipped={(ORDERS, Skip.NO_GROUP): 7})
    rows = processing_log.rows(outcome, 17)
    assert rows is not None
    assert rows.schema.equals(rows_schema(processing_log.LAYOUT))
    assert [(row["c0"], row["c2"], row["c4"], row["c5"]) for row in rows.to_pylist()] == [
        ("PER_DAY", 3, "records came too late: the stream time was 90000", 2),
        ("ORDERS", None, f"rows were skipped: {Skip.NO_GROUP.reason}", 7),
    ]


def test_a_tick_without_problems_is_not_logged() -> None:
    assert processing_log.rows(Outcome(), 17) is None


def bad_records(count: int) -> Outcome:
    numbers = range(count)
    records = {
        "part": pa.array([0] * count, pa.int32()),
        "off": pa.array(numbers, pa.int64()),
        "ts": pa.array([0] * count, pa.int64()),
        "key": pa.array([b"k"] * count),
        "value": pa.array([b"x" * 1_000] * count),
        "reason": ["the value is not a JSON object"] * count,
    }
    return Outcome(undecodable=[Undecodable(TopicName("t"), ORDERS, pa.table(records), count)])


def test_a_log_that_cannot_be_published_counts_bad_records_without_having_them() -> None:
    store = MemoryStore()
    store.create_outbox(processing_log.QUERY, processing_log.LAYOUT)
    log = LogOutbox(store, 50_000)
    for time in range(1, 31):
        stage, rows = store.stage(), log.rows(bad_records(10), 17)
        assert rows is not None
        stage.enqueue(processing_log.QUERY, rows)
        stage.commit(Time(time))
    assert store.pending_bytes(processing_log.QUERY) < 75_000
    rows = log.rows(bad_records(10), 17)
    assert rows is not None
    assert rows.schema.equals(rows_schema(processing_log.LAYOUT))
    assert [tuple(row.values()) for row in rows.to_pylist()] == [
        ("ORDERS", None, None, None, 'records of topic "t" were skipped', 10, None, None, 17)
    ]
    assert (log.notice or "").startswith("PROCESSING_LOG counts bad records and leaves them out")
    store.mark_published({processing_log.QUERY: Time(30)})
    log.measure()
    assert log.notice is None
    assert log.rows(Outcome(), 17) is None
    rows = log.rows(bad_records(10), 17)
    assert rows is not None
    assert rows.num_rows == 10
