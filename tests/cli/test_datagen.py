"""`holdfast datagen` into a real broker."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holdfast.cli.feed import MAX_BATCH, Pace
from holdfast.cli.main import app
from holdfast.config import Settings
from holdfast.kafka.librdkafka.admin import Admin
from holdfast.kafka.librdkafka.consumer import RangeReader
from holdfast.names import TopicName


def test_a_pace_is_kept_over_time() -> None:
    pace = Pace(rate=100, count=250)
    assert pace.due(0, 0.0) == 1
    assert pace.due(1, 0.5) == 50
    assert pace.due(51, 0.5) == 0
    assert pace.due(240, 60) == 10
    assert pace.due(250, 99) == 0
    assert Pace().due(10**9, 0) == MAX_BATCH


def test_times_of_their_own() -> None:
    assert Pace(rate=4, start_ms=1000).timestamps(2, 3, 99).to_pylist() == [1500, 1750, 2000]
    assert Pace(rate=4).timestamps(2, 2, 99).to_pylist() == [99, 99]


def test_records_are_written_to_a_topic_that_is_made(settings: Settings, admin: Admin, ranges: RangeReader) -> None:
    topic = TopicName(f"made-{settings.service_id}")
    arguments = ["datagen", "orders", "--topic", topic, "--partitions", "3", "--rate", "0", "--count", "500"]
    arguments += ["--kafka", str(settings.kafka), "--start", "2024-01-01T00:00:00", "--seed", "9"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Sent 500 records in ")
    assert f"WITH (KAFKA_TOPIC = '{topic}'" in result.stderr
    assert admin.describe([topic])[topic].partitions == 3
    ends = admin.written([(topic, p) for p in range(3)])
    assert sum(ends.values()) == 500
    found = ranges.read({partition: (0, end) for partition, end in ends.items()}).to_pylist()
    assert {record["key"] for record in found} == {f"order-{i:06}".encode() for i in range(1, 501)}
    assert {"customer", "region", "item", "quantity", "amount"} == set(json.loads(found[0]["value"]))
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 0, "a topic that is there is used"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["order"], 'unknown sample "order"\nHINT: Did you mean "orders"?'),
        (["orders", "--start", "noon"], '"noon" is not a valid time'),
        (["orders"], "no Kafka cluster to write to"),
    ],
)
def test_wrong_arguments_are_reported(arguments: list[str], says: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["datagen", *arguments, "--data-dir", str(tmp_path)])
    assert result.exit_code == 1
    assert says in result.stderr


def test_the_declaration_alone() -> None:
    result = CliRunner().invoke(app, ["datagen", "trades", "--declare", "--topic", "t1"])
    assert result.stdout.startswith("CREATE STREAM trades (symbol STRING KEY, ")
    assert "KAFKA_TOPIC = 't1'" in result.stdout
