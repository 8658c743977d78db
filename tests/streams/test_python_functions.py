"""Python functions as functions of SQL: their source, their types, and what cannot be sent."""

import math
import string as text_module
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

import pytest

from holdfast.errors import NotSupported, TopologyError, TypeMismatch
from holdfast.streams import Columnar, Materialized, Serdes, StreamsBuilder
from holdfast.streams.consumed import Consumed
from holdfast.streams.python_functions import aggregate_function, reduce_function, row_function
from tests.streams.topologies import LONGS, ORDERS, builder, planned, texts

RATE = 1.19


def taxed(amount: float) -> float:
    """With tax."""
    return math.floor(amount * RATE)


def greeting(customer: str, city: str) -> str:
    return f"{customer} from {city}, {text_module.digits}"


def doubled(amount: Columnar[float]) -> Columnar[float]:
    import pyarrow.compute as pc

    return pc.multiply(amount, 2)  # type: ignore[no-any-return]


def add(one: int, other: int) -> int:
    return one + other


class Longest:
    """The longest text."""

    def partial(self, city: Columnar[str]) -> Any:
        return max((each for each in city.to_pylist() if each), key=len, default=None)  # type: ignore[attr-defined]

    def merge(self, one: Any, other: Any) -> Any:
        return max((each for each in (one, other) if each), key=len, default=None)

    def result(self, state: Any) -> str:
        return state  # type: ignore[no-any-return]


def is_planned(built: StreamsBuilder) -> bool:
    return bool(planned([(each.text, each.properties) for each in built.build().statements])[0])


def run(source: str, name: str) -> Any:
    names: dict[str, Any] = {}
    exec(source, names)
    return names[name]


class Values(list[Any]):
    def to_pylist(self) -> list[Any]:
        return list(self)


def test_a_function_of_values_is_sent_with_the_constants_and_imports_that_it_uses() -> None:
    function = row_function(taxed)
    assert function.statement.startswith(
        f"CREATE FUNCTION IF NOT EXISTS {function.name}(`amount` DOUBLE) RETURNS DOUBLE "
    )
    assert "RATE = 1.19" in function.definition.source
    assert run(function.definition.source, function.name.lower())(Values([100.0, 10.0])) == [119, 11]


def test_arguments_are_columns_by_name() -> None:
    built = builder()
    orders = built.stream("orders", ORDERS.named("orders"))
    orders.map_values({"hello": greeting, "double": doubled}).to("out")
    *functions, _, query = texts(built)
    assert len(functions) == 2
    hello, double = (function.partition("(")[0].rpartition(" ")[2] for function in functions)
    assert f"{hello}(`customer`, `city`) AS `hello`, {double}(`amount`) AS `double`" in query
    assert is_planned(built)
    with pytest.raises(TopologyError, match=r"argument one of ADD_\w+ is not a column"):
        orders.map_values(add)
    with pytest.raises(TypeMismatch, match="is BIGINT, but the column is STRING"):
        orders.map_values({"n": wrong})


def wrong(city: int) -> int:
    return city


def test_a_single_value_is_passed_whatever_the_argument_is_called() -> None:
    built = builder()
    built.stream("prices", Consumed.with_(Serdes.string(), Serdes.double())).map_values(taxed).to("out")
    assert "(`value`) AS `value`" in texts(built)[-1]
    assert is_planned(built)


def test_a_function_of_columns_is_sent_as_it_is() -> None:
    source = row_function(doubled).definition.source
    assert "to_pylist" not in source
    assert "Columnar" not in source


def test_a_changed_function_has_another_name() -> None:
    def one(amount: float) -> float:
        return amount + 1

    first = row_function(one)

    def one(amount: float) -> float:  # type: ignore[no-redef]
        return amount + 2

    assert row_function(one).name != first.name
    assert first.name.startswith("ONE_")


def test_a_reducer_and_an_aggregate() -> None:
    function = reduce_function(add)
    reducer = run(function.definition.source, function.name.lower())()
    assert reducer.partial(Values([1, 2, None, 3])) == 6
    assert (reducer.merge(6, 4), reducer.merge(None, 4), reducer.merge(6, None)) == (10, 4, 6)
    for nothing in (0, 0.0, "", False):
        assert reducer.merge(nothing, None) == reducer.merge(None, nothing) == nothing
        assert reducer.merge(nothing, None) is not None is not reducer.merge(None, nothing)
    assert reducer.merge(None, None) is None
    longest = aggregate_function(Longest)
    assert [str(column) for column in longest.parameters] == ["`city` STRING"]
    built = builder()
    built.stream("longs", LONGS.named("longs")).group_by_key().reduce(add, Materialized.as_("sums"))
    built.stream("orders", ORDERS.named("orders")).group_by_key().aggregate(Longest, Materialized.as_("longest"))
    assert is_planned(built)
    assert f"{longest.name}(`city`) AS `value`" in texts(built)[-1]


def closure() -> Callable[..., Any]:
    rate = 2.0

    def scaled(amount: float) -> float:
        return amount * rate

    return scaled


def helped(amount: float) -> float:
    return taxed(amount)


def untyped(amount, rate: float) -> float:
    return amount * rate  # type: ignore[no-any-return]


def decimal(amount: Decimal) -> float:
    return float(amount)


def starred(*amount: float) -> float:
    return sum(amount)


@pytest.mark.parametrize(
    ("function", "error", "reason"),
    [
        (closure(), NotSupported, "It uses variables of the function around it: rate."),
        (helped, NotSupported, "It uses taxed, which exists only in this program."),
        (untyped, TopologyError, "the argument amount of untyped has no type"),
        (decimal, TypeMismatch, "Decimal is not the type of a column"),
        (starred, TopologyError, "function starred cannot have the argument *amount: float"),
    ],
    ids=["closure", "own function", "untyped", "type", "starred"],
)
def test_what_cannot_be_sent_is_refused(function: Any, error: type[Exception], reason: str) -> None:
    with pytest.raises(error) as caught:
        row_function(function)
    assert reason in str(caught.value)


def test_a_type_can_be_written_in_sql() -> None:
    def exact(amount: Annotated[Decimal, "DECIMAL(10, 2)"]) -> Annotated[int, "INTEGER"]:
        return int(amount)

    assert "(`amount` DECIMAL(10, 2)) RETURNS INTEGER" in row_function(exact).statement


def test_a_class_without_the_methods_of_an_aggregate() -> None:
    class Half:
        def partial(self, amount: float) -> float:
            return amount

    with pytest.raises(TopologyError, match="it has no merge, result"):
        aggregate_function(Half)
