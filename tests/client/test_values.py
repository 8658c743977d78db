"""Values on their way from the server to Python and back."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from math import isnan
from typing import Any

import pyarrow as pa
import pytest

from holdfast.client.values import arrow_column, arrow_type, nullable, plain
from holdfast.runtime.expressions.parse import parse_type

MOMENT = datetime(2020, 2, 29, 10, 11, 12, 345000, UTC)
CASES: list[tuple[str, Any, Any]] = [
    ("BOOLEAN", True, True),
    ("INTEGER", -5, -5),
    ("BIGINT", 2**62, 2**62),
    ("DOUBLE", 1, 1.0),
    ("DOUBLE", "-Infinity", float("-inf")),
    ("DECIMAL(6, 2)", Decimal("12.30"), Decimal("12.30")),
    ("STRING", "é\n", "é\n"),
    ("BYTES", "AAH/", b"\x00\x01\xff"),
    ("DATE", "2020-02-29", date(2020, 2, 29)),
    ("TIME", "10:11:12.345", time(10, 11, 12, 345000)),
    ("TIMESTAMP", "2020-02-29T10:11:12.345", MOMENT),
    ("ARRAY<TIMESTAMP>", ["2020-02-29T10:11:12.345", None], [MOMENT, None]),
    ("MAP<BIGINT, BYTES>", {"7": "AAH/"}, {7: b"\x00\x01\xff"}),
    ("STRUCT<`a` DATE, `B` INTEGER>", {"a": "2020-02-29", "B": None}, {"a": date(2020, 2, 29), "B": None}),
]


@pytest.mark.parametrize(("type_", "sent", "value"), CASES, ids=[f"{case[0]} {case[1]}" for case in CASES])
def test_a_value_from_json_and_back(type_: str, sent: Any, value: Any) -> None:
    read = nullable(parse_type(type_))
    assert read(sent) == value
    assert type(read(sent)) is type(value)
    assert read(None) is None
    assert plain(value) == sent


@pytest.mark.parametrize(("type_", "sent", "value"), CASES, ids=[f"{case[0]} {case[1]}" for case in CASES])
def test_a_value_in_arrow(type_: str, sent: Any, value: Any) -> None:
    del sent
    sql = parse_type(type_)
    column = arrow_column([value, None], sql)
    assert column.type == arrow_type(sql)
    found = column.to_pylist()
    assert found == [list(value.items()) if type_.startswith("MAP") else value, None]


def test_not_a_number() -> None:
    assert isnan(nullable(parse_type("DOUBLE"))("NaN"))
    assert plain([float("nan"), float("inf")]) == ["NaN", "Infinity"]


def test_years_that_python_does_not_have_stay_text_and_are_right_in_arrow() -> None:
    read = nullable(parse_type("DATE"))
    values = [read("12345-01-02"), read("2020-02-29"), None]
    assert values[0] == "12345-01-02"
    # The calendar repeats after 400 years, which are 146,097 days.
    days = (date(2345, 1, 2) - date(1970, 1, 1)).days + 25 * 146_097
    column = arrow_column(values, parse_type("DATE"))
    assert column.type == pa.date32()
    assert column.cast(pa.int32()).to_pylist() == [days, 18321, None]
    moments = arrow_column(["12345-01-02T00:00:00.001"], parse_type("TIMESTAMP"))
    assert moments.cast(pa.int64()).to_pylist() == [days * 86_400_000 + 1]
