"""Aggregates through their life: partials on Spark, merged in DuckDB, the same whatever the ticks were."""

from datetime import date, datetime
from decimal import Decimal as Number
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from holdfast.errors import WrongObjectKind
from holdfast.runtime.expressions import tree
from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.expressions.physical import Dialect, arrow_type, duckdb_type, spark_type
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.functions.bound import BoundAggregate, bind_aggregate
from holdfast.types import Decimal, Scalar, SqlType

from .engines import same

NUMBERS = ("COUNT(*)", "COUNT(A)", "SUM(A)", "AVG(A)", "MIN(A)", "MAX(A)")
ORDERED = ("COUNT(A)", "MIN(A)", "MAX(A)")

CASES: dict[str, tuple[SqlType, tuple[str, ...], list[Any], dict[str, Any]]] = {
    "integers wrap": (
        Scalar.INTEGER, NUMBERS, [2**31 - 1, None, 1, -5],
        {"COUNT(*)": 4, "COUNT(A)": 3, "SUM(A)": 2**31 - 5, "MIN(A)": -5, "MAX(A)": 2**31 - 1},
    ),
    "integers wrap for good": (Scalar.INTEGER, NUMBERS, [2**31 - 1, 1], {"SUM(A)": -(2**31)}),
    "bigints wrap": (
        Scalar.BIGINT, NUMBERS, [2**63 - 1, 2, None], {"SUM(A)": -(2**63) + 1, "AVG(A)": (-(2**63) + 1) / 2}
    ),
    "doubles": (Scalar.DOUBLE, NUMBERS, [1.5, None, -0.25, 4.0], {"SUM(A)": 5.25, "AVG(A)": 1.75, "MIN(A)": -0.25}),
    "odd doubles": (Scalar.DOUBLE, NUMBERS, [1.0, float("inf"), float("nan")], {"MAX(A)": float("nan"), "MIN(A)": 1.0}),
    "decimals": (
        Decimal(4, 2), ("SUM(A)", "MIN(A)", "MAX(A)", "COUNT(A)"), [Number("1.50"), None, Number("-0.25")],
        {"SUM(A)": Number("1.25"), "MIN(A)": Number("-0.25")},
    ),
    "decimals too large": (Decimal(4, 2), ("SUM(A)",), [Number("99.99"), Number("0.01")], {"SUM(A)": None}),
    "decimals of 38 digits": (Decimal(38, 0), ("SUM(A)",), [Number("9" * 38), Number(1), Number(-1)], {"SUM(A)": None}),
    "only nulls": (
        Scalar.BIGINT, NUMBERS, [None, None],
        {"COUNT(*)": 2, "COUNT(A)": 0, "SUM(A)": 0, "AVG(A)": 0.0, "MIN(A)": None, "MAX(A)": None},
    ),
    "texts": (Scalar.STRING, ORDERED, ["b", None, "", "😀", "é"], {"MIN(A)": "", "MAX(A)": "😀"}),
    "bytes": (Scalar.BYTES, ORDERED, [b"b", b"\xff", None, b""], {"MIN(A)": b"", "MAX(A)": b"\xff"}),
    "dates": (Scalar.DATE, ORDERED, [date(2024, 1, 1), date(1969, 1, 1)], {"MIN(A)": date(1969, 1, 1)}),
    "times": (Scalar.TIME, ORDERED, [5, 3, None], {"MIN(A)": 3, "MAX(A)": 5}),
    "timestamps": (Scalar.TIMESTAMP, ORDERED, [datetime(2024, 1, 1), None], {"MAX(A)": datetime(2024, 1, 1)}),
}  # fmt: skip


class Ticks:
    """Partials of three ways to cut the records of a case into ticks: each alone, all at once, none at all."""

    def __init__(self, spark: SparkSession) -> None:
        self.partials: dict[str, dict[str, list[dict[str, Any]]]] = {}
        self.bound: dict[str, list[BoundAggregate]] = {}
        scopes = {case: Scope((ScopeColumn("A", type_, "c0"),), "T") for case, (type_, *_) in CASES.items()}
        for case, (type_, calls, values, _) in CASES.items():
            self.bound[case] = [_bind(call, scopes[case]) for call in calls]
            rows = [*((f"tick{i}", value) for i, value in enumerate(values)), *(("whole", value) for value in values)]
            given = pa.table({"tick": [r[0] for r in rows], "c0": pa.array([r[1] for r in rows], arrow_type(type_))})
            spark.createDataFrame(given).createOrReplaceTempView("given")
            texts = [
                f"{text} AS p{a}_{s}"
                for a, bound in enumerate(self.bound[case])
                for s, text in enumerate(bound.partial())
            ]
            inner = f"SELECT tick, CAST(c0 AS {spark_type(type_)}) AS c0 FROM given"
            grouped = spark.sql(f"SELECT tick, {', '.join(texts)} FROM ({inner}) GROUP BY tick")
            found = grouped.toArrow().to_pylist()
            self.partials[case] = {
                "ticks": [r for r in found if r["tick"] != "whole"],
                "whole": [r for r in found if r["tick"] == "whole"],
            }


def _bind(call: str, scope: Scope) -> BoundAggregate:
    parsed = parse_expression(call)
    assert isinstance(parsed, tree.Call)
    return bind_aggregate(parsed, scope)


@pytest.fixture(scope="module")
def ticks(spark: SparkSession) -> Ticks:
    return Ticks(spark)


def run(bound: BoundAggregate, partials: list[list[Any]], undone: list[list[Any]] = []) -> Any:  # noqa: B006
    """The result after merging some partials into the initial state and undoing others."""
    connection = duckdb.connect()
    columns = [f"s{i}" for i in range(len(bound.state))]
    given = [f"p{i}" for i in range(len(bound.state))]
    types = [duckdb_type(t) for t in bound.state]
    declared = ", ".join(f"{c} {t}" for c, t in zip(columns, types, strict=True))
    connection.execute(f"CREATE TABLE state ({declared})")
    connection.execute(f"INSERT INTO state VALUES ({', '.join(bound.initial())})")
    for texts, rows in ((bound.merge(columns, given), partials), (undone and bound.undo(columns, given), undone)):
        for row in rows:
            sets = ", ".join(f"{c} = {text}" for c, text in zip(columns, texts, strict=True))
            casts = ", ".join(f"CAST(? AS {t}) AS {p}" for p, t in zip(given, types, strict=True))
            connection.execute(f"UPDATE state SET {sets} FROM (SELECT {casts}) AS partial", row)
    found = connection.execute(f"SELECT {bound.result(columns, Dialect.DUCKDB)} FROM state").fetchone()
    assert found is not None
    return found[0]


@pytest.mark.parametrize("case", CASES)
def test_ticks_of_one_record_equal_one_tick_of_all(ticks: Ticks, case: str) -> None:
    _, calls, _, expected = CASES[case]
    for a, (call, bound) in enumerate(zip(calls, ticks.bound[case], strict=True)):

        def partials(rows: list[dict[str, Any]]) -> list[list[Any]]:
            return [[row[f"p{a}_{s}"] for s in range(len(bound.state))] for row in rows]  # noqa: B023

        apart, whole = (partials(ticks.partials[case][cut]) for cut in ("ticks", "whole"))
        found = run(bound, apart)
        assert same(found, run(bound, whole)), call
        if call in expected:
            assert same(found, expected[call]), call
        if bound.reversible and "odd" not in case and "38" not in case:
            assert same(run(bound, [*apart, *whole], whole), found), call
            assert same(run(bound, apart, whole), run(bound, [])), call


def test_results_are_the_same_on_spark(ticks: Ticks, spark: SparkSession) -> None:
    for case, bounds in ticks.bound.items():
        row = ticks.partials[case]["whole"][0]
        for a, bound in enumerate(bounds):
            state = [row[f"p{a}_{s}"] for s in range(len(bound.state))]
            names = [f"s{i}" for i in range(len(state))]
            given = pa.table(
                {n: pa.array([v], arrow_type(t)) for n, v, t in zip(names, state, bound.state, strict=True)}
            )
            if case not in ("doubles", "bigints wrap", "decimals too large"):
                continue
            spark.createDataFrame(given).createOrReplaceTempView("state")
            found = (
                spark.sql(f"SELECT {bound.result(names, Dialect.SPARK)} AS r FROM state").toArrow().to_pylist()[0]["r"]
            )
            assert same(found, run(bound, [state]))


def test_a_scalar_function_is_no_aggregate() -> None:
    with pytest.raises(WrongObjectKind, match="function LEN is not an aggregate"):
        _bind("LEN('x')", Scope(()))
