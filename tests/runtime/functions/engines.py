"""Runs one list of expressions over one list of rows on both engines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.sql import SparkSession

from holdfast.runtime.compiler.inference import type_of
from holdfast.runtime.compiler.sql import render, renderable
from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.expressions.physical import Dialect, arrow_type, duckdb_type, spark_type
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.types import Scalar, SqlType


@dataclass(frozen=True)
class Relation:
    """Named and typed columns with rows."""

    columns: tuple[tuple[str, SqlType], ...]
    rows: Sequence[tuple[Any, ...]]

    @property
    def scope(self) -> Scope:
        columns = (ScopeColumn(name, type_, f"c{i}") for i, (name, type_) in enumerate(self.columns))
        return Scope.of(columns, relation="T")

    def arrow(self) -> pa.Table:
        arrays = [
            pa.array([row[i] for row in self.rows], arrow_type(type_)) for i, (_, type_) in enumerate(self.columns)
        ]
        names = [f"c{i}" for i in range(len(self.columns))]
        return pa.table([pa.array(range(len(self.rows)), pa.int64()), *arrays], names=["n", *names])


def on_spark(
    spark: SparkSession, relation: Relation, texts: Sequence[str], types: Sequence[SqlType]
) -> list[list[Any]]:
    spark.createDataFrame(relation.arrow()).createOrReplaceTempView("given")
    inner = ", ".join(f"CAST(c{i} AS {spark_type(t)}) AS c{i}" for i, (_, t) in enumerate(relation.columns))
    outer = ", ".join(f"{text} AS r{i}" for i, text in enumerate(texts))
    frame = spark.sql(f"SELECT n, {outer} FROM (SELECT n, {inner} FROM given)")
    written = [field.dataType.simpleString().upper() for field in frame.schema.fields[1:]]
    assert written == [spark_type(t).upper() for t in types], list(zip(texts, written, strict=True))
    table = frame.toArrow().sort_by("n")
    return [table.column(f"r{i}").to_pylist() for i in range(len(texts))]


def evaluated(spark: SparkSession, relation: Relation, expressions: Sequence[str]) -> list[list[Any]]:
    """The results of expressions on Spark for every row, in one job."""
    trees = [parse_expression(text) for text in expressions]
    texts = [render(tree, relation.scope, Dialect.SPARK) for tree in trees]
    return on_spark(spark, relation, texts, [type_of(tree, relation.scope) for tree in trees])


def on_duckdb(relation: Relation, texts: Sequence[str], types: Sequence[SqlType]) -> list[list[Any]]:
    connection = duckdb.connect()
    connection.register("given", relation.arrow())
    results = []
    for text, type_ in zip(texts, types, strict=True):
        shown = connection.execute(f"SELECT {text} AS r, n FROM given ORDER BY n")
        assert shown.description is not None
        assert str(shown.description[0][1]) == duckdb_type(type_), (text, shown.description[0][1])
        results.append([row[0] for row in shown.fetchall()])
    return results


def compare(spark: SparkSession, relation: Relation, expressions: Sequence[str]) -> list[str]:
    """The differences between the engines, as text; expressions without a DuckDB form run only on Spark."""
    trees = [parse_expression(text) for text in expressions]
    scope = relation.scope
    types = [type_of(tree, scope) for tree in trees]
    sparks = on_spark(spark, relation, [render(tree, scope, Dialect.SPARK) for tree in trees], types)
    both = [i for i, tree in enumerate(trees) if renderable(tree, scope, Dialect.DUCKDB)]
    ducks = on_duckdb(relation, [render(trees[i], scope, Dialect.DUCKDB) for i in both], [types[i] for i in both])
    problems = []
    for i, duck in zip(both, ducks, strict=True):
        for row, a, b in zip(relation.rows, sparks[i], duck, strict=True):
            if not same(a, b):
                problems.append(f"{expressions[i]} over {row}: Spark {a!r}, DuckDB {b!r}")
    return problems


def same(a: Any, b: Any) -> bool:
    """Equal, with NaN equal to itself and bytes of any type."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (bytes, bytearray)) and isinstance(b, (bytes, bytearray)):
        return bytes(a) == bytes(b)
    return type(a) is type(b) and bool(a == b)


def unequal(spark: SparkSession, calls: Sequence[tuple[str, Any]]) -> list[str]:
    """The calls over constants that do not return the expected values, as text; in one job."""
    scope = Scope(())
    trees = [parse_expression(call) for call, _ in calls]
    types = [type_of(tree, scope) for tree in trees]
    texts = [render(tree, scope, Dialect.SPARK) for tree in trees]
    results = on_spark(spark, Relation((("A", Scalar.INTEGER),), [(1,)]), texts, types)
    return [
        f"{call} gives {found[0]!r}, not {expected!r}"
        for (call, expected), found in zip(calls, results, strict=True)
        if not same(found[0], expected)
    ]
