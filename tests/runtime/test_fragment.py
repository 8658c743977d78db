"""Many fragments as one query."""

import pyarrow as pa
import pytest

from holdfast.errors import KafkaError
from holdfast.runtime.fragment import TS, Fragment, column, union
from holdfast.runtime.spark.engine import Failure, Round
from holdfast.types import Decimal, Scalar

VIEW = {"v": pa.table({"a": pa.array([1, 2], pa.int32()), "t": pa.array(["x", None], pa.string())})}
NUMBERS = Fragment(
    "SELECT a AS k0, a * 2 AS c0, 5L AS ts FROM v", (column("k0", Scalar.INTEGER), column("c0", Scalar.INTEGER), TS)
)
TEXTS = Fragment(
    "SELECT t AS c0, CAST(1.5 AS DECIMAL(5,2)) AS c1 FROM v",
    (column("c0", Scalar.STRING), column("c1", Decimal(5, 2))),
)
NOTHING = Fragment("SELECT a AS k0 FROM v WHERE false", (column("k0", Scalar.INTEGER),))
BROKEN = Fragment("SELECT b AS k0 FROM v", (column("k0", Scalar.INTEGER),))


def test_each_fragment_gets_its_own_rows_names_and_types(engine):
    numbers, texts, nothing = engine.run([NUMBERS, TEXTS, NOTHING], Round(VIEW, {}))
    assert numbers.to_pylist() == [{"k0": 1, "c0": 2, "ts": 5}, {"k0": 2, "c0": 4, "ts": 5}]
    assert texts.column("c0").to_pylist() == ["x", None]
    assert nothing.num_rows == 0
    assert [t.schema for t in (numbers, texts, nothing)] == [f.schema for f in (NUMBERS, TEXTS, NOTHING)]


def test_columns_of_one_type_share_slots():
    whole = union([NUMBERS, TEXTS, NOTHING])
    assert whole.slots[0]["k0"] == whole.slots[2]["k0"]
    assert len({slot for slots in whole.slots for slot in slots.values()}) == 5


def test_a_fragment_that_fails_takes_no_other_with_it(engine):
    numbers, broken, texts = engine.run([NUMBERS, BROKEN, TEXTS], Round(VIEW, {}))
    assert numbers.num_rows == texts.num_rows == 2
    assert isinstance(broken, Failure)
    assert "`b`" in broken.reason
    assert "\n" not in broken.reason


@pytest.mark.parametrize(
    "problem",
    [
        "org.apache.kafka.common.errors.TimeoutException: ",
        "java.util.concurrent.TimeoutException: Cannot fetch record for offset 7 in 512 milliseconds",
    ],
)
def test_kafka_that_does_not_answer_is_no_fault_of_a_fragment(engine, problem):
    slow = f"concat('{problem}', t)"
    waiting = Fragment(f"SELECT CAST(raise_error({slow}) AS INT) AS k0 FROM v", (column("k0", Scalar.INTEGER),))
    with pytest.raises(KafkaError, match="Kafka did not answer Spark"):
        engine.run([NUMBERS, waiting], Round(VIEW, {}))


def test_a_round_leaves_no_view_behind(engine, spark):
    engine.run([NUMBERS], Round(VIEW, {}))
    engine.run([BROKEN], Round(VIEW, {}))
    assert not spark.catalog.tableExists("v")


def test_derived_views_are_selects_over_the_inputs(engine):
    rows = engine.select("SELECT sum(n) AS n FROM w", Round(VIEW, {"w": "SELECT a * 10 AS n FROM v"}))
    assert rows.to_pylist() == [{"n": 30}]
