"""What mypy knows about topologies: checked, and never run, by `test_typed.py`."""

from dataclasses import dataclass
from datetime import timedelta
from typing import assert_type

from holdfast.client import Client
from holdfast.streams import (
    Consumed,
    KGroupedStream,
    KStream,
    KTable,
    Materialized,
    ReadOnlySessionStore,
    ReadOnlyWindowStore,
    Row,
    Serdes,
    SessionWindows,
    StoreIterator,
    Streams,
    StreamsBuilder,
    TimeWindows,
    Windowed,
    WindowedSerdes,
    aggregates,
    col,
    lit,
    session_store,
    window_store,
)


@dataclass
class Order:
    customer: str
    amount: float


def size_of(amount: float) -> str:
    return "large" if amount > 100 else "small"


SIZE = timedelta(minutes=5)
builder = StreamsBuilder()
consumed = Consumed.with_(Serdes.string(), Serdes.long())
materialized = Materialized.with_(Serdes.string(), Serdes.long())

# The eight signatures
assert_type(builder.windowed_table("t", SIZE), KTable[Windowed[str], str])
assert_type(builder.windowed_table("t", SIZE, consumed), KTable[Windowed[str], int])
assert_type(builder.windowed_table("t", SIZE, materialized), KTable[Windowed[str], int])
assert_type(builder.windowed_table("t", SIZE, consumed, materialized), KTable[Windowed[str], int])
assert_type(builder.sessioned_table("t"), KTable[Windowed[str], str])
assert_type(builder.sessioned_table("t", consumed), KTable[Windowed[str], int])
assert_type(builder.sessioned_table("t", materialized), KTable[Windowed[str], int])
assert_type(builder.sessioned_table("t", consumed, materialized), KTable[Windowed[str], int])
builder.windowed_table("t")  # type: ignore[call-overload]
builder.windowed_table("t", 300_000)  # type: ignore[call-overload]

# Streams and tables
orders = builder.stream("orders", Consumed.with_(Serdes.integer(), Serdes.json(Order)))
assert_type(orders, KStream[int, Order])
assert_type(builder.stream("words"), KStream[str, str])
assert_type(builder.table("users", Consumed.with_(Serdes.string(), Serdes.json("name STRING"))), KTable[str, Row])
windowed = Consumed.with_(WindowedSerdes.time_windowed(Serdes.string(), SIZE), Serdes.double())
assert_type(builder.stream("w", windowed), KStream[Windowed[str], float])
assert_type(orders.filter(col("amount") > 5), KStream[int, Order])
assert_type(orders.map_values({"double": col("amount") * 2}), KStream[int, Row])
assert_type(orders.map_values(col("amount").cast(int)), KStream[int, int])
assert_type(orders.map_values(lit("x")), KStream[int, str])
assert_type(orders.map_values(size_of), KStream[int, str])

# Aggregates
grouped = orders.group_by_key()
assert_type(grouped, KGroupedStream[int, Order])
assert_type(grouped.count(), KTable[int, int])
assert_type(grouped.windowed_by(TimeWindows.of(SIZE)).count(), KTable[Windowed[int], int])
assert_type(grouped.windowed_by(SessionWindows.with_gap(SIZE)).count(), KTable[Windowed[int], int])
assert_type(grouped.aggregate(aggregates.avg("amount")), KTable[int, float])
assert_type(grouped.aggregate({"n": aggregates.count()}), KTable[int, Row])
assert_type(builder.stream("longs", consumed).group_by_key().reduce(max), KTable[str, int])

# Stores
streams = Streams(builder)
store = streams.store("counts", window_store(str, int))
assert_type(store, ReadOnlyWindowStore[str, int])
assert_type(store.fetch("a", 0), int | None)
assert_type(store.fetch("a", 0, 5), StoreIterator[tuple[int, int]])
assert_type(store.all(), StoreIterator[tuple[Windowed[str], int]])
store.fetch(5, 0)  # type: ignore[call-overload]
sessions = Client().store("VISITS", session_store(str, Order))
assert_type(sessions, ReadOnlySessionStore[str, Order])
assert_type(sessions.fetch_session("a", 0, 5), Order | None)
