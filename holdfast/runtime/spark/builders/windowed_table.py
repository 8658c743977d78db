"""Tables over windowed topics: what the table stores to retain its windows as a window store of Kafka Streams does."""

from holdfast.names import CollectionId, QueryId, StateId
from holdfast.runtime import physical_columns as col
from holdfast.runtime.plan.windows import WindowInfo, WindowStoreSettings, WindowTopic, WindowType
from holdfast.runtime.program import UpsertWindows
from holdfast.runtime.serdes.window import WindowedKeySql
from holdfast.runtime.spark.builders.window import STREAM_TIME, STREAM_TIME_MERGE
from holdfast.runtime.store.port import Layout
from holdfast.types import Column, Scalar

WINDOW_COLUMNS = {
    Column("ROWPARTITION", Scalar.INTEGER): "max_by(part, struct(part, off))",
    Column("FIRST_OFFSET", Scalar.BIGINT): "min(off)",
    Column("LAST_OFFSET", Scalar.BIGINT): "max(off)",
}
"""The value columns after those of the table, with the partition and the offsets of a window's records, and their
SQL."""


def retain_windows(
    query: QueryId, collection: CollectionId, layout: Layout, window: WindowInfo, store: WindowStoreSettings
) -> tuple[UpsertWindows, tuple[tuple[StateId, Layout], ...]]:
    """The action that writes the table's rows, and the states that it needs."""
    windows, clock = StateId(f"{query}/Windows"), StateId(f"{query}/ObservedTime")
    start, end = col.keys(len(layout.key))[-2:]
    action = UpsertWindows(
        collection,
        layout,
        windows,
        clock,
        STREAM_TIME_MERGE,
        time=end if window.type is WindowType.SESSION else start,
        partition=col.value(len(layout.value)),
        first=col.value(len(layout.value) + 1),
        last=col.value(len(layout.value) + 2),
        retention=store.retention.millis,
        wrong_layout=_wrong_layout(WindowedKeySql(window, store.topic)),
        layout_hint=_layout_hint(window, store.topic),
    )
    return action, ((windows, Layout(layout.key, (Scalar.INTEGER,))), (clock, STREAM_TIME))


def _wrong_layout(key: WindowedKeySql) -> str:
    too_short, sequence = key.too_short("key"), key.sequence("key")
    return too_short if sequence is None else f"({too_short} OR {sequence} <> 0)"


def _layout_hint(window: WindowInfo, topic: WindowTopic) -> str:
    """What to declare if the keys do not have the layout."""
    if window.type is WindowType.SESSION:
        return "If the topic has time windows, declare WINDOW_TYPE='TUMBLING' and WINDOW_SIZE."
    if topic is WindowTopic.CHANGELOG:
        return (
            "If the topic is not a store's changelog but has results of an application, declare WINDOW_TOPIC='TOPIC'."
        )
    return "If the topic is not windowed, leave WINDOW_TYPE and WINDOW_SIZE out."
