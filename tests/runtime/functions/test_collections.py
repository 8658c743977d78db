"""What functions of arrays, maps and lambdas give for values that are easily got wrong."""

from decimal import Decimal as Number
from typing import Any

import pytest
from pyspark.sql import SparkSession

from holdfast.errors import BindError, TypeMismatch
from holdfast.runtime.compiler.inference import type_of
from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.types import Array, Map, Scalar

from .engines import unequal

NO_ARRAY = "CAST(NULL AS ARRAY<INT>)"
NO_MAP = "CAST(NULL AS MAP<STRING, INT>)"
NO_INT = "CAST(NULL AS INT)"
MAPS = "ARRAY[MAP('a' := 1, 'b' := 2), MAP('b' := 2, 'a' := 1), MAP('a' := 3)]"

ARRAYS: list[tuple[str, Any]] = [
    ("ARRAY_LENGTH(ARRAY[1, NULL])", 2),
    (f"ARRAY_LENGTH({NO_ARRAY})", None),
    ("ARRAY_LENGTH(FILTER(ARRAY[1], x => x > 1))", 0),
    ("ARRAY_CONTAINS(ARRAY[1, NULL], 2)", False),
    ("ARRAY_CONTAINS(ARRAY[1, NULL], NULL)", True),
    (f"ARRAY_CONTAINS({NO_ARRAY}, 1)", False),
    ("ARRAY_CONTAINS(ARRAY[1, 2], 2147483648)", False),
    ("ARRAY_CONTAINS(ARRAY[ARRAY[1], NULL], ARRAY[1])", True),
    (f"ARRAY_CONTAINS({MAPS}, MAP('b' := 2, 'a' := 1))", True),
    (f"ARRAY_CONTAINS({MAPS}, MAP('b' := 2))", False),
    (f"ARRAY_CONCAT({NO_ARRAY}, ARRAY[1])", [1]),
    (f"ARRAY_CONCAT(ARRAY[1], {NO_ARRAY})", [1]),
    (f"ARRAY_CONCAT({NO_ARRAY}, {NO_ARRAY})", None),
    ("ARRAY_CONCAT(ARRAY[1], ARRAY[2147483648])", [1, 2**31]),
    ("ARRAY_DISTINCT(ARRAY[ARRAY['a', NULL], ARRAY['a', NULL], NULL])", [["a", None], None]),
    (f"ARRAY_DISTINCT({MAPS})", [[("a", 1), ("b", 2)], [("a", 3)]]),
    (f"ARRAY_DISTINCT({NO_ARRAY})", None),
    ("ARRAY_DISTINCT(ARRAY[MAP('a' := MAP('x' := 1)), MAP('a' := MAP('x' := 1))])", [[("a", [("x", 1)])]]),
    (f"ARRAY_UNION({NO_ARRAY}, ARRAY[1])", None),
    (f"ARRAY_UNION({MAPS}, ARRAY[MAP('a' := 3), MAP('z' := 0)])", [[("a", 1), ("b", 2)], [("a", 3)], [("z", 0)]]),
    ("ARRAY_INTERSECT(ARRAY[1, NULL, 1], ARRAY[NULL, 1])", [1, None]),
    (f"ARRAY_INTERSECT({MAPS}, ARRAY[MAP('a' := 3)])", [[("a", 3)]]),
    (f"ARRAY_INTERSECT(ARRAY[1], {NO_ARRAY})", None),
    (f"ARRAY_EXCEPT({MAPS}, ARRAY[MAP('a' := 3)])", [[("a", 1), ("b", 2)]]),
    (f"ARRAY_EXCEPT(ARRAY[1], {NO_ARRAY})", None),
    ("ARRAY_EXCEPT(ARRAY[1, NULL], ARRAY[1])", [None]),
    (f"ARRAY_REMOVE(ARRAY[1, NULL, 2], {NO_INT})", [1, 2]),
    (f"ARRAY_REMOVE({NO_ARRAY}, 1)", None),
    (f"ARRAY_REMOVE({MAPS}, MAP('b' := 2, 'a' := 1))", [[("a", 3)]]),
    ("ARRAY_JOIN(ARRAY[true, NULL, false], '')", "truenullfalse"),
    ("ARRAY_JOIN(ARRAY[1.23E0, -23.42E0, 0E0], NULL)", "1.23-23.420.0"),
    ("ARRAY_JOIN(ARRAY[123.45, 987.65])", "123.45,987.65"),
    ("ARRAY_JOIN(ARRAY['a', ''], ';')", "a;"),
    (f"ARRAY_JOIN({NO_ARRAY})", None),
    ("ARRAY_MAX(ARRAY['a', NULL, 'é'])", "é"),
    (f"ARRAY_MAX(ARRAY[{NO_INT}])", None),
    ("ARRAY_MIN(ARRAY[true, false])", False),
    ("ARRAY_MIN(ARRAY[1.5, -2.5])", Number("-2.5")),
    (f"ARRAY_MIN({NO_ARRAY})", None),
    ("ARRAY_SORT(ARRAY['b', NULL, 'a'], 'ascending')", ["a", "b", None]),
    ("ARRAY_SORT(ARRAY[1, NULL, 3], 'Desc')", [3, 1, None]),
    ("ARRAY_SORT(ARRAY[1], 'sideways')", None),
    ("ARRAY_SORT(ARRAY[1], NULL)", None),
    (f"ARRAY_SORT({NO_ARRAY})", None),
    ("SLICE(ARRAY[1, 2, 3], NULL, 2)", [1, 2]),
    ("SLICE(ARRAY[1, 2, 3], 2, NULL)", [2, 3]),
    ("SLICE(ARRAY[1, 2, 3], 0, 2)", None),
    ("SLICE(ARRAY[1, 2, 3], 2, 4)", None),
    ("SLICE(ARRAY[1, 2, 3], 3, 2)", []),
    ("SLICE(ARRAY[1, 2, 3], 3, 1)", None),
    (f"SLICE({NO_ARRAY}, 1, 2)", None),
    ("GENERATE_SERIES(0, 3)", [0, 1, 2, 3]),
    ("GENERATE_SERIES(2, 2)", [2]),
    ("GENERATE_SERIES(3, 0, -2)", [3, 1]),
    ("GENERATE_SERIES(0, 3, 0)", None),
    ("GENERATE_SERIES(0, 3, -1)", None),
    ("GENERATE_SERIES(2147483648, 2147483649)", [2**31, 2**31 + 1]),
    ("GENERATE_SERIES(0, 2147483647)", None),
    (f"GENERATE_SERIES({NO_INT}, 3)", None),
]

MAPPINGS: list[tuple[str, Any]] = [
    ("AS_MAP(ARRAY['a', 'b'], ARRAY[1, 2, 3])", [("a", 1), ("b", 2)]),
    ("AS_MAP(ARRAY['a', 'b', 'a'], ARRAY[1, NULL, 3])", [("a", 3), ("b", None)]),
    ("AS_MAP(ARRAY['a', NULL], ARRAY[1, 2])", [("a", 1), ("null", 2)]),
    (f"AS_MAP(ARRAY['a'], {NO_ARRAY})", None),
    ("ENTRIES(MAP('b' := 2, 'a' := NULL), TRUE)", [{"f0": "a", "f1": None}, {"f0": "b", "f1": 2}]),
    (f"ENTRIES({NO_MAP}, FALSE)", None),
    ("ENTRIES(MAP('a' := 1), FALSE)", [{"f0": "a", "f1": 1}]),
    ("ENTRIES(MAP('a' := 1), NULL)", None),
    (f"MAP_KEYS({NO_MAP})", None),
    ("MAP_VALUES(MAP('a' := NULL, 'b' := 1))", [None, 1]),
    ("MAP_UNION(MAP('a' := 1), MAP('a' := 2, 'b' := 3))", [("a", 2), ("b", 3)]),
    (f"MAP_UNION({NO_MAP}, MAP('a' := 1))", [("a", 1)]),
    (f"MAP_UNION({NO_MAP}, {NO_MAP})", None),
    ("MAP(CONCAT('a', 'b') := 1, CAST(NULL AS STRING) := 2)", [("ab", 1), ("null", 2)]),
    ("MAP('a' := 1, CONCAT('', 'a') := 2)", [("a", 2)]),
    ("MAP(1 := 'x', 2 := 'y')", [(1, "x"), (2, "y")]),
    (f"MAP(1 := 'x', {NO_INT} := 'y')", None),
    (f"{MAPS} = {MAPS}", True),
]

LAMBDAS: list[tuple[str, Any]] = [
    ("TRANSFORM(ARRAY[1, NULL], x => x + 1)", [2, None]),
    ("TRANSFORM(ARRAY['a', 'b'], x => CONCAT(x, '!'))", ["a!", "b!"]),
    ("TRANSFORM(ARRAY[ARRAY[1, 2], ARRAY[3]], x => TRANSFORM(x, y => y * ARRAY_LENGTH(x)))", [[2, 4], [3]]),
    ("TRANSFORM(ARRAY[1, 2], x => TRANSFORM(ARRAY[10], x => x + 1))", [[11], [11]]),
    (f"TRANSFORM({NO_ARRAY}, x => x)", None),
    ("TRANSFORM(ARRAY[4, 0], x => 8 / x)", [2, None]),
    ("TRANSFORM(MAP('a' := 1, 'b' := 2), (k, v) => CONCAT(k, CAST(v AS STRING)), (k, v) => LEN(k) + v)",
     [("a1", 2), ("b2", 3)]),
    ("TRANSFORM(MAP('a' := 1, 'b' := 2), (k, v) => 'x', (k, v) => v)", [("x", 2)]),
    ("TRANSFORM(MAP('a' := 1), (k, v) => CAST(NULL AS STRING), (k, v) => v)", [("null", 1)]),
    ("TRANSFORM(MAP('a' := 1), (k, v) => v, (k, v) => k)", [(1, "a")]),
    (f"TRANSFORM(MAP('a' := {NO_INT}), (k, v) => v, (k, v) => k)", None),
    (f"TRANSFORM({NO_MAP}, (k, v) => k, (k, v) => v)", None),
    ("FILTER(ARRAY[3, 6, NULL, 10], x => x > 5)", [6, 10]),
    ("FILTER(ARRAY[5, NULL], x => x IS NULL)", [None]),
    (f"FILTER({NO_ARRAY}, x => true)", None),
    ("FILTER(MAP('a' := 1, 'bb' := NULL), (k, v) => LEN(k) = 2 AND v IS NULL)", [("bb", None)]),
    (f"FILTER({NO_MAP}, (k, v) => true)", None),
    ("REDUCE(ARRAY[1, 2], CAST(NULL AS BIGINT), (s, x) => s + x)", None),
    (f"REDUCE({NO_ARRAY}, 5, (s, x) => s + x)", 5),
    ("REDUCE(ARRAY[2147483647, 1], 0, (s, x) => s + x)", -(2**31)),
    ("REDUCE(ARRAY[2147483648], 0, (s, x) => s + x)", 2**31),
    ("REDUCE(ARRAY[1.5, 2.25], 0.00, (s, x) => x)", Number("2.25")),
    ("REDUCE(ARRAY['a', 'b'], '', (s, x) => CONCAT(x, s))", "ba"),
    ("REDUCE(MAP('123' := 3, '12' := 7, '1234' := 2), 0, (s, k, v) => CASE WHEN LEN(k) > 3 THEN s + v ELSE s - v END)",
     -8),
    ("REDUCE(MAP('1' := 1, 'x' := NULL), 0, (s, k, v) => s + v)", None),
    (f"REDUCE({NO_MAP}, 0, (s, k, v) => s + v)", 0),
    ("REDUCE(ARRAY[MAP('aa' := 1), MAP('b' := 2)], 5, (s, m) => s + REDUCE(m, 0, (t, k, v) => t + v * LEN(k) * s))",
     45),
    ("REDUCE(ARRAY[1, 2], ARRAY[0], (s, x) => ARRAY_CONCAT(s, ARRAY[x]))", [0, 1, 2]),
]  # fmt: skip


def test_collections(spark: SparkSession) -> None:
    wrong = unequal(spark, [*ARRAYS, *MAPPINGS, *LAMBDAS])
    assert not wrong, "\n".join(wrong)


SCOPE = Scope.of(
    [
        ScopeColumn("A", Array(Scalar.INTEGER), "c0"),
        ScopeColumn("M", Map(Scalar.STRING, Scalar.INTEGER), "c1"),
        ScopeColumn("X", Scalar.STRING, "c2"),
    ]
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("TRANSFORM(A, (x, y) => x)", "function TRANSFORM does not take (ARRAY<INTEGER>, LAMBDA of 2)"),
        ("FILTER(A, x => x)", "function FILTER does not take (ARRAY<INTEGER>, LAMBDA of 1)"),
        ("TRANSFORM(A, x => x + LEN(z))", 'column "Z" does not exist in ""'),
        ("TRANSFORM(A, x => LEN(x))", "function LEN does not take (INTEGER)"),
        ("ARRAY_MAX(ARRAY[M])", "function ARRAY_MAX does not take (ARRAY<MAP<STRING, INTEGER>>)"),
        ("LEN(x => x)", "function LEN does not take (LAMBDA of 1)"),
        ("REDUCE(A, 0, (s, x) => 'a')", "function REDUCE does not take (ARRAY<INTEGER>, INTEGER, LAMBDA of 2)"),
    ],
)
def test_what_lambdas_must_be(text: str, message: str) -> None:
    with pytest.raises(BindError) as error:
        type_of(parse_expression(text), SCOPE)
    assert error.value.message == message


def test_a_parameter_hides_a_column() -> None:
    assert type_of(parse_expression("TRANSFORM(A, x => x + 1)"), SCOPE) == Array(Scalar.INTEGER)
    with pytest.raises(TypeMismatch):
        type_of(parse_expression("TRANSFORM(A, y => x + 1)"), SCOPE)
