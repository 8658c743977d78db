"""Sample rows: right by their columns, the same from the same seed, and as skewed as the world."""

import json
from collections import Counter

import pytest

from holdfast.catalog.snapshot import EMPTY
from holdfast.samples.catalog import SAMPLES
from holdfast.samples.sample import BLOCK_ROWS, Sample, SampleKind, Supply
from holdfast.samples.users import USERS
from holdfast.sql.bind.create_source import BoundCreateSource
from holdfast.sql.bind.statement import bind
from holdfast.sql.syntax.parse import parse

PYTHON = {"STRING": str, "INT": int, "BIGINT": int, "DOUBLE": (int, float)}
samples = pytest.mark.parametrize("sample", SAMPLES.values(), ids=list(SAMPLES))


def rows(sample: Sample, count: int, seed: int = 1) -> list[tuple[str, dict[str, object]]]:
    taken = Supply(sample, seed).take(count).to_pylist()
    return [(row["key"].decode(), json.loads(row["value"])) for row in taken]


@samples
def test_rows_have_the_columns_that_are_declared(sample: Sample) -> None:
    names = list(sample.columns)
    for key, value in rows(sample, 500):
        assert key
        assert list(value) == names[1:]
        assert all(isinstance(value[name], PYTHON[sample.columns[name]]) for name in names[1:])


@samples
def test_the_statement_declares_the_topic(sample: Sample) -> None:
    (parsed,) = parse(sample.statement("some-topic"))
    bound = bind(parsed.statement, EMPTY, {})
    assert isinstance(bound, BoundCreateSource)
    assert bound.target.topic == "some-topic"
    assert [column.name.lower() for column in bound.target.schema.columns] == list(sample.columns)
    assert bound.target.kind.upper() == sample.kind


@samples
def test_a_seed_gives_the_same_rows_however_they_are_taken(sample: Sample) -> None:
    whole = Supply(sample, 5).take(BLOCK_ROWS + 700)
    supply = Supply(sample, 5)
    parts = [supply.take(count) for count in (1, 0, 699, BLOCK_ROWS)]
    assert [row for part in parts for row in part.to_pylist()] == whole.to_pylist()
    assert Supply(sample, 6).take(50).to_pylist() != whole.slice(0, 50).to_pylist()


def test_every_user_is_introduced_before_any_changes() -> None:
    found = rows(SAMPLES["users"], 3 * USERS)
    assert len({key for key, _ in found[:USERS]}) == USERS
    assert {key for key, _ in found[USERS:]} <= {key for key, _ in found[:USERS]}
    names = {(key, value["first_name"]) for key, value in found}
    assert len(names) == USERS, "a name does not change, a city may"
    assert SAMPLES["users"].kind is SampleKind.TABLE


def test_customers_and_visitors_are_users_and_some_come_more_often() -> None:
    users = {key for key, _ in rows(SAMPLES["users"], USERS)}
    customers = Counter(str(value["customer"]) for _, value in rows(SAMPLES["orders"], 5000))
    visitors = Counter(key for key, _ in rows(SAMPLES["pageviews"], 5000))
    assert set(customers) | set(visitors) <= users
    for found in (customers, visitors):
        assert found.most_common(1)[0][1] > 20 * 5000 / USERS


def test_amounts_are_price_times_quantity() -> None:
    from holdfast.samples.orders import ITEMS

    for _, value in rows(SAMPLES["orders"], 500):
        assert value["amount"] == pytest.approx(ITEMS[str(value["item"])] * float(str(value["quantity"])))


def test_prices_walk_on_from_trade_to_trade() -> None:
    last: dict[str, float] = {}
    for key, value in rows(SAMPLES["trades"], 3 * BLOCK_ROWS):
        price = float(str(value["price"]))
        assert price > 0
        if key in last:
            assert abs(price / last[key] - 1) < 0.01
        last[key] = price
    assert len(last) == 8
