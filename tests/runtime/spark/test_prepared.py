"""Prepared jobs: planned once, run over other rows each time."""

import datetime
import decimal
import math

import pyarrow as pa
import pytest

from holdfast.runtime.spark.prepared import CACHED_JOBS, Job, NotRepeatable, PreparedJobs

ROWS = pa.schema([("k", pa.string()), ("n", pa.int64())])


def rows(*pairs):
    return pa.Table.from_pylist([{"k": k, "n": n} for k, n in pairs], schema=ROWS)


@pytest.fixture(scope="module")
def prepared(sessions):
    return PreparedJobs(sessions.small)


def test_each_run_sees_its_own_rows(prepared):
    job = Job("SELECT k, count(*) AS c, max(n) AS m FROM t GROUP BY k", (), (("t", ROWS),))
    assert prepared.run(job, {"t": rows(("a", 7), ("a", 3))}).to_pylist() == [{"k": "a", "c": 2, "m": 7}]
    assert prepared.run(job, {"t": rows(("b", 1))}).to_pylist() == [{"k": "b", "c": 1, "m": 1}]
    assert prepared.run(job, {"t": rows()}).num_rows == 0


def test_a_view_that_several_branches_read_is_computed_once_in_each_run(prepared):
    derived = (("d", "SELECT k, n * 2 AS n, rand() AS r FROM t"),)
    job = Job(
        "SELECT 0 AS tag, n, r FROM d UNION ALL SELECT 1, max(n), max(r) FROM d GROUP BY k", derived, (("t", ROWS),)
    )
    for n in (9, 4):
        got = prepared.run(job, {"t": rows(("a", n))}).sort_by("tag").to_pydict()
        assert (got["tag"], got["n"]) == ([0, 1], [2 * n, 2 * n])
        assert got["r"][0] == got["r"][1]


def test_a_plan_that_keeps_rows_between_runs_is_refused(prepared):
    job = Job("SELECT /*+ REPARTITION(2, k) */ k FROM t", (), (("t", ROWS),))
    for _ in range(2):
        with pytest.raises(NotRepeatable):
            prepared.run(job, {"t": rows(("a", 1))})


def test_values_of_every_type_arrive_as_they_are(prepared):
    schema = pa.schema(
        [
            ("b", pa.bool_()),
            ("i", pa.int32()),
            ("l", pa.int64()),
            ("d", pa.float64()),
            ("s", pa.string()),
            ("x", pa.binary()),
            ("e", pa.decimal128(38, 18)),
            ("a", pa.date32()),
            ("t", pa.timestamp("us")),
        ]
    )
    values = [
        dict.fromkeys(schema.names),
        {
            "b": True,
            "i": -(2**31),
            "l": 2**63 - 1,
            "d": 0.1 + 0.2,
            "s": 'é\x00"\\\n😀',
            "x": b"\x00\xff",
            "e": decimal.Decimal("-12345678901234567890.123456789012345678"),
            "a": datetime.date(1, 1, 1),
            "t": datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
        },
        {
            "b": False,
            "i": 0,
            "l": -(2**63),
            "d": math.inf,
            "s": "",
            "x": b"",
            "e": decimal.Decimal("0E-18"),
            "a": datetime.date(1969, 12, 31),
            "t": datetime.datetime(1969, 12, 31, 23, 59, 59, 1),
        },
        {**dict.fromkeys(schema.names), "d": 5e-324},
    ]
    table = pa.Table.from_pylist(values, schema=schema)
    job = Job("SELECT * FROM t", (), (("t", schema),))
    assert prepared.run(job, {"t": table}).cast(schema).to_pylist() == values
    nan = pa.Table.from_pylist([{**values[0], "d": math.nan}], schema=schema)
    assert math.isnan(prepared.run(job, {"t": nan}).column("d")[0].as_py())


def test_each_run_gets_its_own_nested_values(prepared):
    schema = pa.schema([("l", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.struct([("f0", pa.string())])))])
    job = Job("SELECT *, size(l) AS n FROM t", (), (("t", schema),))
    for row in ({"l": [1, None], "m": [("k", {"f0": "v"}), ("", None)]}, {"l": [], "m": None}, {"l": None, "m": []}):
        table = pa.Table.from_pylist([row], schema=schema)
        found = prepared.run(job, {"t": table})
        assert found.drop_columns(["n"]).cast(schema).to_pylist() == [row]


def test_only_few_rows_are_taken(prepared):
    assert prepared.accepts({"t": rows(("a", 1))})
    assert not prepared.accepts({})
    assert not prepared.accepts({"t": rows(*[("a", 1)] * 1_001)})
    assert not prepared.accepts({"t": rows(("a" * 5_000_000, 1))})
    assert prepared.accepts({"t": pa.table({"l": [[1]]})})


def test_jobs_that_ran_longest_ago_are_forgotten_with_their_rows(sessions):
    prepared = PreparedJobs(sessions.small)
    jobs = [Job(f"SELECT {i} AS i FROM t", (), (("t", ROWS),)) for i in range(CACHED_JOBS + 1)]
    for job in jobs:
        prepared.run(job, {"t": rows(("a", 1))})
    assert len(prepared._jobs) == CACHED_JOBS
    assert jobs[0] not in prepared._jobs


def test_a_run_that_fails_leaves_nothing_behind(prepared):
    job = Job("SELECT k, IF(n < 0, raise_error('below'), n) AS n FROM t", (), (("t", ROWS),))
    for _ in range(2):
        with pytest.raises(Exception, match="below"):
            prepared.run(job, {"t": rows(("a", -1))})
        assert prepared.run(job, {"t": rows(("a", 1))}).to_pylist() == [{"k": "a", "n": 1}]


def test_what_a_run_took_of_spark_s_memory_is_given_back(prepared, sessions):
    sessions.warming.join()
    memory = sessions.small.sparkContext._jvm.org.apache.spark.SparkEnv.get().memoryManager()
    job = Job("SELECT k, collect_list(n) AS n FROM t GROUP BY k ORDER BY k", (), (("t", ROWS),))
    joined = Job("SELECT a.k, b.n FROM t a JOIN t b ON a.k = b.k", (), (("t", ROWS),))
    for n in range(3):
        assert prepared.run(job, {"t": rows(("a", n))}).num_rows == 1
        assert prepared.run(joined, {"t": rows(("a", n))}).num_rows == 1
    assert memory.executionMemoryUsed() == 0
