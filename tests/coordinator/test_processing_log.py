"""What the processing log says."""

from holdfast.coordinator import processing_log
from holdfast.runtime.spark.functions import FunctionProblem
from holdfast.runtime.store.schemas import rows_schema


def test_what_a_users_function_could_not_compute_is_told() -> None:
    rows = processing_log.rows([], [FunctionProblem("INVERSE", "ZeroDivisionError: division by zero", 3)], 17)
    assert rows is not None
    assert rows.schema.equals(rows_schema(processing_log.LAYOUT))
    (row,) = rows.to_pylist()
    assert (row["c0"], row["c5"], row["ts"]) == ("INVERSE", 3, 17)
    assert row["c4"] == "the function gave no value, which is NULL then: ZeroDivisionError: division by zero"


def test_a_tick_without_problems_is_not_logged() -> None:
    assert processing_log.rows([], [], 17) is None
