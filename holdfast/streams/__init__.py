"""Kafka Streams' interface: topologies that are built in Python and run as SQL."""

from holdfast.client.stores import (
    ReadOnlyKeyValueStore,
    ReadOnlySessionStore,
    ReadOnlyWindowStore,
    StoreIterator,
    Window,
    Windowed,
    key_value_store,
    session_store,
    window_store,
)
from holdfast.streams import aggregates
from holdfast.streams.application import Streams
from holdfast.streams.builder import StreamsBuilder
from holdfast.streams.consumed import Consumed, OffsetReset
from holdfast.streams.expressions import Expr, call, col, lit, row_time, sql, when, window_end, window_start
from holdfast.streams.grouped import KGroupedStream, KGroupedTable, SessionWindowedKStream, TimeWindowedKStream
from holdfast.streams.materialized import Materialized
from holdfast.streams.produced import Produced
from holdfast.streams.python_functions import Columnar
from holdfast.streams.serdes import Row, Serde, Serdes, WindowedSerde, WindowedSerdes
from holdfast.streams.stream import KStream
from holdfast.streams.table import KTable
from holdfast.streams.topic_records import TopicRecord
from holdfast.streams.topology import Topology
from holdfast.streams.topology_test_driver import TopologyTestDriver
from holdfast.streams.windows import JoinWindows, SessionWindows, SlidingWindows, Suppressed, TimeWindows

__all__ = [
    "Columnar",
    "Consumed",
    "Expr",
    "JoinWindows",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "Materialized",
    "OffsetReset",
    "Produced",
    "ReadOnlyKeyValueStore",
    "ReadOnlySessionStore",
    "ReadOnlyWindowStore",
    "Row",
    "Serde",
    "Serdes",
    "SessionWindowedKStream",
    "SessionWindows",
    "SlidingWindows",
    "StoreIterator",
    "Streams",
    "StreamsBuilder",
    "Suppressed",
    "TimeWindowedKStream",
    "TimeWindows",
    "TopicRecord",
    "Topology",
    "TopologyTestDriver",
    "Window",
    "Windowed",
    "WindowedSerde",
    "WindowedSerdes",
    "aggregates",
    "call",
    "col",
    "key_value_store",
    "lit",
    "row_time",
    "session_store",
    "sql",
    "when",
    "window_end",
    "window_start",
    "window_store",
]
