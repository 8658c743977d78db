"""Aggregates through their life: partials on Spark, merged in DuckDB, the same whatever the ticks were."""

from datetime import date, datetime
from decimal import Decimal as Number
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from holdfast.errors import TypeMismatch, WrongObjectKind
from holdfast.runtime.compiler.calls import BoundAggregate, bind_aggregate
from holdfast.runtime.expressions import tree
from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.expressions.physical import Dialect, NotRenderable, arrow_type, duckdb_type, spark_type
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.spark.session import Sessions
from holdfast.types import Array, Decimal, Map, Scalar, SqlType, Struct, StructField

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
    "kept integers": (
        Scalar.INTEGER,
        ("COLLECT_LIST(A)", "COLLECT_SET(A)", "COUNT_DISTINCT(A)", "ATTR(A)", "TOPK(A, 2)", "TOPKDISTINCT(A, 2)",
         "LATEST_BY_OFFSET(A)", "LATEST_BY_OFFSET(A, false)", "LATEST_BY_OFFSET(A, 2)", "LATEST_BY_OFFSET(A, 2, false)",
         "EARLIEST_BY_OFFSET(A)", "EARLIEST_BY_OFFSET(A, false)", "EARLIEST_BY_OFFSET(A, 2)",
         "EARLIEST_BY_OFFSET(A, 2, false)"),
        [None, 7, 3, 7, None],
        {"COLLECT_LIST(A)": [None, 7, 3, 7, None], "COLLECT_SET(A)": [None, 7, 3], "COUNT_DISTINCT(A)": 2,
         "ATTR(A)": None, "TOPK(A, 2)": [7, 7], "TOPKDISTINCT(A, 2)": [7, 3], "LATEST_BY_OFFSET(A)": 7,
         "LATEST_BY_OFFSET(A, false)": None,
         "LATEST_BY_OFFSET(A, 2)": [3, 7], "LATEST_BY_OFFSET(A, 2, false)": [7, None], "EARLIEST_BY_OFFSET(A)": 7,
         "EARLIEST_BY_OFFSET(A, false)": None, "EARLIEST_BY_OFFSET(A, 2)": [7, 3],
         "EARLIEST_BY_OFFSET(A, 2, false)": [None, 7]},
    ),
    "kept texts": (
        Scalar.STRING, ("HISTOGRAM(A)", "ATTR(A)", "TOPK(A, 9)", "COLLECT_SET(A)"), ["x", "x"],
        {"HISTOGRAM(A)": {"x": 2}, "ATTR(A)": "x", "TOPK(A, 9)": ["x", "x"], "COLLECT_SET(A)": ["x"]},
    ),
    "kept rows of the greatest": (
        Scalar.INTEGER, ("TOPK(A % 10, A, 3)", "TOPK(A, 'x', A + 1, 1)"), [11, 21, None, 5, 31],
        {"TOPK(A % 10, A, 3)": [{"f0": 5, "f1": 5}, {"f0": 1, "f1": 11}, {"f0": 1, "f1": 21}],
         "TOPK(A, 'x', A + 1, 1)": [{"f0": 31, "f1": "x", "f2": 32}]},
    ),
    "kept maps, whatever the order of their keys": (
        Map(Scalar.STRING, Scalar.BIGINT), ("COLLECT_SET(A)", "COUNT_DISTINCT(A)", "ATTR(A)"),
        [[("b", 1), ("a", 2)], None, [("a", 2), ("b", 1)], [("a", 2)], None],
        {"COLLECT_SET(A)": [{"a": 2, "b": 1}, None, {"a": 2}], "COUNT_DISTINCT(A)": 2, "ATTR(A)": None},
    ),
    "kept maps that are one": (
        Map(Scalar.STRING, Scalar.BIGINT), ("ATTR(A)", "COUNT_DISTINCT(A)"),
        [[("b", 1), ("a", 2)], [("a", 2), ("b", 1)]],
        {"ATTR(A)": {"a": 2, "b": 1}, "COUNT_DISTINCT(A)": 1},
    ),
    "kept lists of structs": (
        Array(Struct((StructField("X", Scalar.INTEGER), StructField("Y", Scalar.STRING)))),
        ("COLLECT_SET(A)", "COUNT_DISTINCT(A)", "ATTR(A)"),
        [[{"f0": 1, "f1": None}], [{"f0": 1, "f1": None}], [], [None], [{"f0": 1, "f1": "y"}], [None]],
        {"COLLECT_SET(A)": [[{"f0": 1, "f1": None}], [], [None], [{"f0": 1, "f1": "y"}]], "COUNT_DISTINCT(A)": 4},
    ),
    "histogram of NULL": (Scalar.STRING, ("HISTOGRAM(A)",), ["a", None, "a"], {"HISTOGRAM(A)": {"a": 2, "null": 1}}),
    "spread": (
        Scalar.DOUBLE, ("STDDEV_SAMP(A)", "STDDEV_SAMPLE(A)", "CORRELATION(A, 2 * A)"), [10.0, 12.0, None, 14.0],
        {"STDDEV_SAMP(A)": 4.0, "STDDEV_SAMPLE(A)": 2.0, "CORRELATION(A, 2 * A)": 1.0},
    ),
    "no spread": (
        Scalar.DOUBLE, ("STDDEV_SAMP(A)", "CORRELATION(A, A)"), [5.0],
        {"STDDEV_SAMP(A)": 0.0, "CORRELATION(A, A)": float("nan")},
    ),
    "lists": (Array(Scalar.BIGINT), ("SUM_LIST(A)",), [[1, 1], None, [100, None], []], {"SUM_LIST(A)": 102}),
    "lists wrap": (Array(Scalar.INTEGER), ("SUM_LIST(A)",), [[2**31 - 1], [1]], {"SUM_LIST(A)": -(2**31)}),
}  # fmt: skip


class Ticks:
    """Partials of three ways to cut the records of a case into ticks: each alone, all at once, none at all."""

    def __init__(self, spark: SparkSession) -> None:
        self.partials: dict[str, dict[str, list[dict[str, Any]]]] = {}
        self.bound: dict[str, list[BoundAggregate]] = {}
        scopes = {case: Scope((ScopeColumn("A", type_, "c0"),), "T") for case, (type_, *_) in CASES.items()}
        for case, (type_, calls, values, _) in CASES.items():
            self.bound[case] = [_bind(call, scopes[case]) for call in calls]
            numbered = list(enumerate(values))
            # Offsets decide, not the order in which rows come.
            whole = reversed(numbered) if "kept" in case else numbered
            rows = [*((f"tick{i:02}", i, v) for i, v in numbered), *(("whole", i, v) for i, v in whole)]
            given = pa.table(
                {
                    "tick": [r[0] for r in rows],
                    "part": pa.array([0] * len(rows), pa.int32()),
                    "off": pa.array([r[1] for r in rows], pa.int64()),
                    "c0": pa.array([r[2] for r in rows], arrow_type(type_)),
                }
            )
            spark.createDataFrame(given).createOrReplaceTempView("given")
            texts = [
                f"{text} AS p{a}_{s}"
                for a, bound in enumerate(self.bound[case])
                for s, text in enumerate(bound.partial())
            ]
            inner = f"SELECT tick, part, off, CAST(c0 AS {spark_type(type_)}) AS c0 FROM given"
            grouped = spark.sql(f"SELECT tick, {', '.join(texts)} FROM ({inner}) GROUP BY tick ORDER BY tick")
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
def ticks(sessions: Sessions) -> Ticks:
    return Ticks(sessions.small)


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
            arrays = [pa.array([value], arrow_type(t)) for value, t in zip(row, bound.state, strict=True)]
            connection.register("partial", pa.table(arrays, names=given))
            connection.execute(f"UPDATE state SET {sets} FROM partial")
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
        if bound.form.undo is not None and "odd" not in case and "38" not in case:
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


def test_what_is_kept_is_decided_by_literals() -> None:
    scope = Scope((ScopeColumn("A", Scalar.INTEGER, "c0"),), "T")
    with pytest.raises(TypeMismatch, match="argument 2 of EARLIEST_BY_OFFSET must be a literal"):
        _bind("EARLIEST_BY_OFFSET(A, A)", scope)


@pytest.mark.parametrize("call", ["COLLECT_LIST(A)", "COLLECT_SET(A)"])
def test_a_limit_keeps_what_came_first(call: str) -> None:
    parsed = parse_expression(call)
    assert isinstance(parsed, tree.Call)
    bound = bind_aggregate(parsed, Scope((ScopeColumn("A", Scalar.INTEGER, "c0"),), "T"), limit=2)
    assert run(bound, [[[7]], [[3, 5]], [[9]]]) == [7, 3]


def test_a_histogram_counts_the_first_texts() -> None:
    bound = _bind("HISTOGRAM(A)", Scope((ScopeColumn("A", Scalar.STRING, "c0"),), "T"))
    first = [[(str(n), 1) for n in range(999)]]
    found = run(bound, [first, [[("x", 1), ("y", 1)]], [[("y", 5), ("7", 1), ("x", 1)]]])
    assert len(found) == 1_000
    assert (found["x"], found["7"], found.get("y")) == (2, 2, None)


@pytest.mark.parametrize(("type_", "reads"), [(Decimal(28, 2), True), (Decimal(29, 2), False)])
def test_a_sum_that_could_leave_its_digits_is_not_read_by_duckdb(type_: Decimal, reads: bool) -> None:
    """DuckDB would raise where the tables that are kept have NULL."""
    bound = _bind("SUM(A)", Scope((ScopeColumn("A", type_, "c0"),), "T"))
    if reads:
        assert "SUM(" in bound.read(Dialect.DUCKDB)
    else:
        with pytest.raises(NotRenderable):
            bound.read(Dialect.DUCKDB)


def test_a_sum_of_too_many_digits_is_read_as_null(spark: SparkSession) -> None:
    bound = _bind("SUM(A)", Scope((ScopeColumn("A", Decimal(38, 0), "c0"),), "T"))
    given = pa.table({"c0": pa.array([Number("9" * 38), Number(1)], pa.decimal128(38, 0))})
    spark.createDataFrame(given).createOrReplaceTempView("given")
    assert spark.sql(f"SELECT {bound.read(Dialect.SPARK)} AS r FROM given").collect()[0]["r"] is None
