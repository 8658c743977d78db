"""Every operator, cast and function on both engines, over awkward values."""

from datetime import date, datetime
from decimal import Decimal as Number
from itertools import product
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from holdfast.runtime.compiler.calls import bind_aggregate, bind_table_function
from holdfast.runtime.compiler.inference import type_of
from holdfast.runtime.compiler.sql import render, renderable
from holdfast.runtime.expressions import tree
from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.expressions.physical import Dialect, arrow_type, spark_type
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.functions.declaration import AggregateFunction, ScalarFunction, TableFunction
from holdfast.runtime.functions.registry import functions
from holdfast.types import Array, Decimal, Map, Scalar, SqlType, Struct, StructField

from .engines import Relation, compare, on_duckdb, on_spark, same

INTEGERS = [None, 0, 1, -1, 7, -7, 3, 2**31 - 1, -(2**31)]
BIGINTS = [None, 0, 1, -1, 7, -7, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]
DOUBLES = [
    None, 0.0, -0.0, 1.5, -1.5, 2.5, 0.1, 0.49999999999999994, 4503599627370497.0, 1e10, -1e-7, 1e19, 1e300,
    float("inf"), float("-inf"), float("nan"),
]  # fmt: skip
DECIMALS = [
    None,
    *map(Number, ("0.00", "0.01", "-0.01", "1.50", "-1.50", "2.49", "-2.51", "99999999.99", "-99999999.99")),
]
TEXTS = [
    None,
    "",
    " ",
    "a",
    "abc",
    "Abc",
    "\t a b \n",
    "😀a😀",
    "naïve",
    "é",
    "a%b",
    "a_b",
    "a\\b",
    "ab\x00c",
    "'",
    "$x",
]
NUMBER_TEXTS = [
    None, "", "1", "-1", "+1", " 7 ", "1.5", "-1.005", "1e2", "1E400", "2147483648", "9223372036854775808", "abc", "1a",
    "NaN", "-Infinity", "true", "YES", "t", "tru e", ".5", "5.", "1_000", "0x10", "--1", "١",
]  # fmt: skip
BYTES = [None, b"", b"\x00", b"abc", b"\xff\xfe", b"hello world"]
DATES = [None, date(1970, 1, 1), date(2024, 2, 29), date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31)]
MOMENTS = [
    None,
    datetime(1970, 1, 1),
    datetime(1969, 12, 31, 23, 59, 59, 999000),
    datetime(2024, 2, 29, 12, 34, 56, 789000),
    datetime(2024, 2, 29),
]
TIMES = [None, 0, 1, 1000, 60_000, 3_600_000, 86_399_999, 45_296_000]

ARITHMETIC = ("A + B", "A - B", "A * B", "A / B", "A % B", "-A")
COMPARISONS = (
    "A = B", "A <> B", "A < B", "A <= B", "A > B", "A >= B", "A IS DISTINCT FROM B", "A IS NOT DISTINCT FROM B",
    "A BETWEEN B AND A", "A NOT BETWEEN B AND B", "A IN (B, A)", "A NOT IN (B)", "A IS NULL", "A IS NOT NULL",
    "NOT (A = B)", "(A = B) AND (A IS NULL)", "(A < B) OR (B IS NULL)",
    "CASE WHEN A < B THEN A ELSE B END", "CASE A WHEN B THEN 'same' END", "COALESCE(A, B)", "IFNULL(A, B)",
    "AS_VALUE(A)", "NULLIF(A, B)", "GREATEST(A, B)", "LEAST(A, B, A)",
)  # fmt: skip
NUMBER_CASTS = tuple(
    f"CAST(A AS {t})"
    for t in ("INT", "BIGINT", "DOUBLE", "DECIMAL(10, 2)", "DECIMAL(4, 1)", "DECIMAL(38, 18)", "STRING")
)
NUMBER_FUNCTIONS = (
    "TRUNC(A)",
    "ABS(A)",
    "FLOOR(A)",
    "CEIL(A)",
    "ROUND(A)",
    "SQRT(A)",
    "SIGN(A)",
    "GREATEST(A)",
    "LEAST(A)",
)


def pairs(values: list) -> list[tuple]:
    return list(product(values, values))


def relation(type_, values) -> Relation:
    return Relation((("A", type_), ("B", type_)), pairs(values))


CASES = {
    "integers": (
        relation(Scalar.INTEGER, INTEGERS),
        (*ARITHMETIC, *COMPARISONS, *NUMBER_CASTS, *NUMBER_FUNCTIONS, "A + 2147483648", "A * 1.5", "A IN (1, 7, NULL)",
         "A = 2.50", "A IN ('7', 2.0)", "A / 2 * 2", "- -A", "A + 1e0", "PI()", "A BETWEEN -1 AND 7", "ROUND(A, 1)"),
    ),
    "bigints": (
        relation(Scalar.BIGINT, BIGINTS),
        (*ARITHMETIC, *COMPARISONS, *NUMBER_CASTS, *NUMBER_FUNCTIONS, "A + 1", "A * 1.5", "A - 9223372036854775807"),
    ),
    "doubles": (
        relation(Scalar.DOUBLE, DOUBLES),
        (*ARITHMETIC, *COMPARISONS, *NUMBER_CASTS, *NUMBER_FUNCTIONS, "ROUND(A, 2)", "A = 1.5", "A + 1", "A > 0"),
    ),
    "decimals": (
        relation(Decimal(10, 2), DECIMALS),
        (*ARITHMETIC, *COMPARISONS, *NUMBER_CASTS, *NUMBER_FUNCTIONS, "ROUND(A, 1)", "ROUND(A, 5)", "A + 1", "A * 2",
         "A > 1", "A + CAST(1 AS BIGINT)", "CAST(A AS DECIMAL(3, 2))", "CAST(A AS DECIMAL(12, 7))"),
    ),
    "mixed numbers": (
        Relation(
            (("A", Scalar.INTEGER), ("B", Scalar.BIGINT), ("C", Scalar.DOUBLE), ("D", Decimal(10, 2))),
            list(product((None, 3, -(2**31)), (None, 3, 2**40), (None, 3.0, 0.1), (None, Number(3), Number("0.1")))),
        ),
        (*(f"{x} {op} {y}" for x, y in (("A", "B"), ("A", "C"), ("A", "D"), ("B", "C"), ("B", "D"), ("C", "D"))
           for op in ("+", "-", "*", "/", "%", "=", "<", ">=", "IS DISTINCT FROM")),
           "COALESCE(A, B)", "COALESCE(A, D)", "GREATEST(A, B, C)", "CASE WHEN A > 0 THEN A ELSE D END",
           "A IN (B, C, D)", "C BETWEEN A AND B", "A BETWEEN C AND D", "ARRAY[A, B][1]",
           "ARRAY[A, B][-1]", "ARRAY[A, 1][3]"),
    ),
    "texts": (
        relation(Scalar.STRING, TEXTS),
        (*COMPARISONS, "A + B", "A || B", "A || '-' || B", "LEN(A)", "UCASE(A)", "LCASE(A)", "TRIM(A)",
         "CONCAT(A, B, 'x')", "CONCAT_WS(A, B, 'x', A)", "CONCAT_WS('-', A, B)", "ELT(LEN(A), B, A, B)",
         "FIELD(A, B, 'a', '')", "FIELD(A, 'abc', B)", "LPAD(A, 4, B)", "LPAD(A, LEN(B) - 2, 'xé')", "RPAD(A, 4, B)",
         "RPAD(A, LEN(B) - 2, 'xé')", "MD5(A)",
         "REPLACE(A, 'a', B)", "REPLACE(A, B, '-')", "INSTR(A, B)", "INSTR(A, B, 2)", "INSTR(A, B, -1)",
         "INSTR(A, B, 1, 2)", "INSTR(A, B, 0)", "INSTR(A, B, -2)", "INSTR(A, B, 1, -1)", "INSTR(A, B, -1, LEN(B))",
         "REPLACE(A, '', B)", "CONCAT(A)", "CONCAT_WS(A)", "ELT(LEN(A))", "FIELD(A)",
         "A LIKE 'a%'", "A LIKE '_'", "A LIKE '%😀'", "A LIKE '_a_'", "A NOT LIKE '%b%'", "A LIKE 'a!%b' ESCAPE '!'",
         "A LIKE 'a\\b'", "A LIKE 'a\\%' ", "A LIKE B", "A LIKE '%' || B || '%'", "A IN ('a', 'abc', NULL)",
         "A = '$x'", "A = '''' OR A = 'a\\b'", "A IN (true, 10, '1.5', 10.30)", "CAST(A AS BOOLEAN)"),
    ),
    "substrings": (
        Relation(
            (("S", Scalar.STRING), ("P", Scalar.INTEGER), ("L", Scalar.INTEGER)),
            list(product((None, "", "abc", "😀b😀d"), (None, 0, 1, 2, 4, 9, -1, -3, -9, 2**31 - 1, -(2**31)),
                         (None, 0, 1, 2, 99, -1, 2**31 - 1))),
        ),
        ("SUBSTRING(S, P)", "SUBSTRING(S, P, L)", "SUBSTRING(S, 2)", "SUBSTRING(S, 0, 2)", "SUBSTRING(S, -2, -1)",
         "SUBSTRING(S, NULL)", "INSTR(S, 'b', P)"),
    ),
    "byte strings": (
        Relation(
            (("A", Scalar.BYTES), ("B", Scalar.BYTES), ("P", Scalar.INTEGER), ("L", Scalar.INTEGER)),
            list(product(BYTES, BYTES, (None, 0, 2, -2, 99), (None, 0, 1, -1, 99))),
        ),
        (*(c for c in COMPARISONS if "IN" not in c.split()), "LEN(A)", "CONCAT(A, B)", "SUBSTRING(A, P)",
         "SUBSTRING(A, P, L)", "SUBSTRING(A, 2, 1)", "SUBSTRING(A, -2)"),
    ),
    "number texts": (
        Relation((("A", Scalar.STRING),), [(t,) for t in NUMBER_TEXTS]),
        ("CAST(A AS INT)", "CAST(A AS BIGINT)", "CAST(A AS DOUBLE)", "CAST(A AS DECIMAL(5, 2))", "CAST(A AS BOOLEAN)",
         "CAST(A AS DECIMAL(38, 0))"),
    ),
    "booleans": (
        relation(Scalar.BOOLEAN, [None, True, False]),
        ("A AND B", "A OR B", "NOT A", "A = B", "A <> B", "A IS DISTINCT FROM B", "CAST(A AS STRING)", "COALESCE(A, B)",
         "CASE WHEN A THEN 1 WHEN B THEN 2 ELSE 3 END", "A AND NULL", "A OR NULL", "CASE WHEN A AND NOT B THEN 1 END"),
    ),
    "dates": (
        relation(Scalar.DATE, DATES),
        (*COMPARISONS, "CAST(A AS STRING)", "CAST(A AS TIMESTAMP)", "A > '2000-01-01'", "A = DATE '2024-02-29'",
         "UNIX_DATE(DATEADD(DAYS, 3, A))", "UNIX_DATE(DATEADD(HOURS, -49, A))", "UNIX_DATE(A)",
         "UNIX_DATE(DATESUB(MILLISECOND, 1, A))", "UNIX_DATE(DATESUB(DAY, 2147483647, A))",
         "UNIX_DATE(FROM_DAYS(UNIX_DATE(A) - 1))"),
    ),
    "timestamps": (
        relation(Scalar.TIMESTAMP, MOMENTS),
        (*COMPARISONS, "CAST(A AS STRING)", "CAST(A AS DATE)", "CAST(A AS TIME)", "A > '2000-01-01T00:00:00'",
         "A = '2024-02-29T12:34:56.789'", "A = '2024-02-29T14:34:56.789+02:00'",
         "A >= CAST('2024-02-29' AS DATE)", "UNIX_TIMESTAMP(A)"),
    ),
    "times": (relation(Scalar.TIME, TIMES), (*COMPARISONS, "CAST(A AS STRING)", "A > '00:01'", "TIMEADD(HOURS, 25, A)",
                                         "TIMEADD(SECONDS, -1, A)", "TIMESUB(MINUTES, 1, A)")),
    "nested": (
        Relation(
            (
                ("A", Array(Scalar.INTEGER)),
                ("M", Map(Scalar.STRING, Scalar.INTEGER)),
                ("S", Struct((StructField("x", Scalar.INTEGER), StructField("X", Scalar.STRING)))),
                ("I", Scalar.INTEGER),
            ),
            list(product((None, [], [1, None, 3]), (None, [("a", 1), ("b", None)]), (None, {"f0": 1, "f1": "s"}),
                         (None, 0, 1, 3, 4, -1, -3, -4))),
        ),
        ("A[I]", "A[1]", "A[-1]", "M['a']", "M['z']", "S->`x`", "S->X", "ARRAY[I, 2]", "MAP('k':=I)['k']",
         "STRUCT(a:=I, b:='t')->B", "CAST(A AS ARRAY<BIGINT>)", "CAST(A AS ARRAY<STRING>)", "COALESCE(A, ARRAY[9])",
         "A = ARRAY[1, NULL, 3]", "M = MAP('a':=1)", "CAST(M AS MAP<STRING, STRING>)",
         "CAST(S AS STRUCT<X STRING, Y INT>)->X", "ARRAY_LENGTH(A)", "MAP_KEYS(M)",
         "MAP_VALUES(M)", "A IS NULL", "S IS NOT NULL"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_both_engines_agree(spark: SparkSession, name: str) -> None:
    given, expressions = CASES[name]
    problems = compare(spark, given, expressions)
    assert not problems, f"{len(problems)} differences\n" + "\n".join(problems[:40])


def test_every_function_is_compared() -> None:
    texts = " ".join(text for _, expressions in CASES.values() for text in expressions)
    scalars = [last for *_, last in functions().values() if isinstance(last, ScalarFunction)]
    both = [f.name for f in scalars if any(form.duckdb is not None for form in f.forms)]
    assert [name for name in both if f"{name}(" not in texts] == []


def test_every_function_is_shown() -> None:
    """With documentation and an example; the next tests run the examples."""
    bare = [last.name for *_, last in functions().values() if not (last.doc.endswith(".") and last.category)]
    assert bare == []
    assert [last.name for *_, last in functions().values() if not last.examples] == []


def test_examples_give_what_they_say(spark: SparkSession) -> None:
    scope = Scope(())
    examples = [e for *_, last in functions().values() if isinstance(last, ScalarFunction) for e in last.examples]
    one = Relation((("A", Scalar.INTEGER),), [(1,)])
    trees = [(parse_expression(e.call), parse_expression(e.gives)) for e in examples]
    types = [type_of(call, scope) for call, _ in trees]
    for dialect in Dialect:
        kept = [i for i, (call, _) in enumerate(trees) if renderable(call, scope, dialect)]
        texts = [render(trees[i][0], scope, dialect) for i in kept]
        wanted = [render(trees[i][1], scope, Dialect.SPARK) for i in kept]
        kinds = [types[i] for i in kept]
        found = on_spark(spark, one, texts, kinds) if dialect is Dialect.SPARK else on_duckdb(one, texts, kinds)
        expected = on_spark(spark, one, wanted, [type_of(trees[i][1], scope) for i in kept])
        wrong = [
            (examples[i].call, f, e) for i, f, e in zip(kept, found, expected, strict=True) if not same(f[0], e[0])
        ]
        assert not wrong


def constant(spark: SparkSession, text: str) -> tuple[SqlType, Any]:
    """A constant's type and its value, as Spark gives it."""
    parsed = parse_expression(text)
    type_ = type_of(parsed, Scope(()))
    one = Relation((("A", Scalar.INTEGER),), [(1,)])
    return type_, on_spark(spark, one, [render(parsed, Scope(()), Dialect.SPARK)], [type_])[0][0]


def test_examples_of_aggregates_give_what_they_say(spark: SparkSession) -> None:
    for *_, last in functions().values():
        for example in last.examples if isinstance(last, AggregateFunction) else ():
            over, values = constant(spark, example.over)
            type_, expected = constant(spark, example.gives)
            assert isinstance(over, Array)
            scope = Scope((ScopeColumn("X", over.element, "c0"),), "T")
            bound = bind_aggregate(cast(tree.Call, parse_expression(example.call)), scope)
            rows = pa.table(
                {"n": pa.array(range(len(values)), pa.int64()), "c0": pa.array(values, arrow_type(over.element))}
            )
            spark.createDataFrame(rows).createOrReplaceTempView("given")
            inner = f"SELECT 0 AS part, n AS off, CAST(c0 AS {spark_type(over.element)}) AS c0 FROM given"
            sql = f"SELECT CAST({bound.read(Dialect.SPARK)} AS {spark_type(type_)}) AS r FROM ({inner})"
            (found,) = spark.sql(sql).toArrow().column("r").to_pylist()
            assert bound.returns == type_, example
            assert same(found, expected), (example, found)


def test_examples_of_table_functions_give_what_they_say(spark: SparkSession) -> None:
    one = Relation((("A", Scalar.INTEGER),), [(1,)])
    for *_, last in functions().values():
        for example in last.examples if isinstance(last, TableFunction) else ():
            type_, expected = constant(spark, example.gives)
            bound = bind_table_function(cast(tree.Call, parse_expression(example.call)), Scope(()))
            assert Array(bound.returns) == type_
            assert on_spark(spark, one, [bound.rows], [type_]) == [[expected]], example


def test_too_many_choices_of_elements_make_no_rows(spark: SparkSession) -> None:
    relation = Relation((("A", Array(Scalar.INTEGER)),), [(list(range(40)),), ([None] * 40 + [1],)])
    bound = bind_table_function(cast(tree.Call, parse_expression("CUBE_EXPLODE(A)")), relation.scope)
    (rows,) = on_spark(spark, relation, [bound.rows], [Array(bound.returns)])
    assert rows[0] is None
    assert rows[1] == [[None] * 41, [None] * 40 + [1]]
