"""Rows that are handed over to a task arrive as they are, whatever they hold, and again in each run."""

import datetime
import decimal
import math

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from holdfast.runtime.expressions.physical import arrow_type
from holdfast.runtime.spark.driver_task import DriverTasks
from holdfast.types import Array, Decimal, Map, Scalar, Struct, StructField

VALUES = {
    Scalar.BOOLEAN: [True, False],
    Scalar.INTEGER: [-(2**31), 2**31 - 1],
    Scalar.BIGINT: [-(2**63), 2**63 - 1],
    Scalar.DOUBLE: [0.1 + 0.2, 5e-324, math.inf, -1.7976931348623157e308],
    Decimal(38, 18): [decimal.Decimal("-12345678901234567890.123456789012345678"), decimal.Decimal("0E-18")],
    Scalar.STRING: ['é\x00"\\\n😀', "", "null", '{"a": 1}', "[1.50]"],
    Scalar.BYTES: [b"\x00\xff", b""],
    Scalar.TIME: [0, 86_399_999],
    Scalar.DATE: [datetime.date(1, 1, 1), datetime.date(1969, 12, 31)],
    Scalar.TIMESTAMP: [
        datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 1),
    ],
}


def struct(*types):
    return Struct(tuple(StructField(f"F{i}", type_) for i, type_ in enumerate(types)))


ROW = struct(*VALUES)
DEEP = Array(Map(Scalar.STRING, struct(Array(Scalar.DOUBLE), Map(Scalar.STRING, Scalar.BYTES))))
TYPES = [*VALUES, *map(Array, VALUES), *(Map(Scalar.STRING, type_) for type_ in VALUES), ROW, Array(ROW), DEEP]
TYPES += [Map(Scalar.BIGINT, Scalar.DATE), Array(Array(Scalar.STRING)), struct(struct(Scalar.STRING))]


def samples(type_):
    """Values of a type, with nulls where there can be some."""
    match type_:
        case Array(element):
            return [[], [None], [*samples(element), None], *([value] for value in samples(element))]
        case Map(key, value):
            keys = samples(key)
            return [[], [(keys[0], None)], list(zip(keys, samples(value), strict=False))]
        case Struct(fields):
            rows = max(len(samples(field.type)) for field in fields)
            found = [{f"f{i}": None for i in range(len(fields))}]
            for n in range(rows):
                found.append({f"f{i}": _nth(samples(field.type), n) for i, field in enumerate(fields)})
            return found
        case _:
            return VALUES[type_]


def _nth(values, n):
    return values[n] if n < len(values) else None


COLUMNS = {f"c{i}": samples(type_) for i, type_ in enumerate(TYPES)}
SCHEMA = pa.schema([(f"c{i}", arrow_type(type_)) for i, type_ in enumerate(TYPES)])
COUNT = max(map(len, COLUMNS.values())) + 1
TABLE = pa.table({name: [_nth(values, n) for n in range(COUNT)] for name, values in COLUMNS.items()}, schema=SCHEMA)


@pytest.fixture(scope="module")
def tasks(sessions):
    return DriverTasks(sessions.small)


@pytest.fixture
def hand_over(tasks):
    def over(table: pa.Table) -> pa.Table:
        task = tasks.task()
        task.result(task.input(table.schema))
        return task.run([table]).cast(table.schema)

    return over


@pytest.mark.parametrize(
    "table",
    [TABLE, TABLE.slice(1, 3), pa.concat_tables([TABLE.slice(2, 2), TABLE.slice(0, 1)]), TABLE.slice(0, 0)],
    ids=["all", "a part", "in chunks", "none"],
)
def test_every_value_of_every_type_arrives_as_it_is(table, hand_over):
    found, given = hand_over(table), table
    assert {name: found.column(name).to_pylist() for name in given.column_names} == {
        name: given.column(name).to_pylist() for name in given.column_names
    }


def test_nan_arrives(hand_over):
    table = pa.table({"a": pa.array([[math.nan]], pa.list_(pa.float64()))})
    assert math.isnan(hand_over(table).column("a")[0][0].as_py())


def test_a_frame_that_is_kept_is_computed_once_a_run(tasks):
    task = tasks.task()
    drawn = task.share(task.input(pa.schema([("n", pa.int64())])).selectExpr("n", "rand() AS r"))
    task.result(drawn.union(drawn).coalesce(1))
    runs = [task.run([pa.table({"n": [n]})]).to_pydict() for n in range(3)]
    assert [run["n"] for run in runs] == [[0, 0], [1, 1], [2, 2]]
    assert all(len(set(run["r"])) == 1 for run in runs)


def test_rows_of_a_run_that_failed_are_not_seen_by_the_next(tasks):
    task = tasks.task()
    task.result(task.input(pa.schema([("n", pa.int64())])).selectExpr("IF(n < 0, raise_error('below'), n) AS n"))
    with pytest.raises(PySparkException, match="below"):
        task.run([pa.table({"n": [1, -1]})])
    assert task.run([pa.table({"n": [2]})]).to_pydict() == {"n": [2]}
