"""The builder of topologies."""

import logging
from datetime import timedelta
from typing import Any, TypeVar, overload

from holdfast.client.stores.store_type import StoreKind
from holdfast.client.stores.windowed import Windowed
from holdfast.errors import NotSupported, TopologyError
from holdfast.sql.syntax.statements import ObjectKind
from holdfast.streams.consumed import Consumed, OffsetReset
from holdfast.streams.durations import ZERO, positive
from holdfast.streams.materialized import Materialized
from holdfast.streams.nodes import Columns, TopicNode
from holdfast.streams.serdes import Serde, Serdes, WindowedSerde
from holdfast.streams.stream import KStream
from holdfast.streams.table import KTable
from holdfast.streams.topology import Topology
from holdfast.streams.topology_rows import KEY, VALUE, TopologyRows, column_named
from holdfast.streams.windows import KeyWindow, check_window_retention
from holdfast.streams.workspace import Workspace

K = TypeVar("K")
V = TypeVar("V")

log = logging.getLogger("holdfast.streams")

TEXT = Consumed.with_(Serdes.string(), Serdes.string())
"""How topics are read without `Consumed`: keys and values are strings."""
NO_TTL = "A key-value store does not drop old windows: control over their time to live would be lost."


class StreamsBuilder:
    """Declares topics and what is computed from them. `application_id` begins the names of its objects."""

    def __init__(self, application_id: str = "streams") -> None:
        self._workspace = Workspace(application_id, KTable)

    # -- streams

    @overload
    def stream(self, topic: str) -> KStream[str, str]: ...
    @overload
    def stream(self, topic: str, consumed: Consumed[K, V]) -> KStream[K, V]: ...
    def stream(self, topic: str, consumed: Consumed[Any, Any] | None = None) -> KStream[Any, Any]:
        """The records of a topic. Keys and values are strings unless `consumed` has other serdes.

        With a key serde of `WindowedSerdes` the topic may be windowed; its windows are then never dropped.
        """
        consumed = consumed or TEXT
        serde = consumed.key_serde
        window = None
        if consumed.changelog or (isinstance(serde, WindowedSerde) and serde.changelog):
            raise NotSupported(
                f'topic "{topic}" is a changelog, and cannot be a stream',
                detail="It has the latest value of each window, which makes a table.",
                hint="Use windowed_table with the raw key serde and Consumed.for_changelog(), and its to_stream().",
            )
        if isinstance(serde, WindowedSerde):
            window = KeyWindow(serde.size)
            log.warning("windowed topic read as a stream: topic=%s reason=%s", topic, NO_TTL)
        node = self._topic_node(ObjectKind.STREAM, "stream", topic, consumed, consumed.name, window)
        rows = TopologyRows.of(node)
        return KStream(self._workspace, lambda: rows)

    # -- tables

    @overload
    def table(self, topic: str, *, materialized: Materialized[Any, Any] | None = None) -> KTable[str, str]: ...
    @overload
    def table(
        self, topic: str, consumed: Consumed[K, V], materialized: Materialized[Any, Any] | None = None
    ) -> KTable[K, V]: ...
    def table(
        self, topic: str, consumed: Consumed[Any, Any] | None = None, materialized: Materialized[Any, Any] | None = None
    ) -> KTable[Any, Any]:
        """The latest value of each key of a topic."""
        consumed, materialized = _by_type(consumed, materialized)
        consumed, materialized = _serdes(consumed, materialized), materialized or Materialized()
        if isinstance(consumed.key_serde, WindowedSerde) or consumed.changelog:
            raise NotSupported(
                f'topic "{topic}" is windowed, and cannot be a table with a key-value store',
                detail=NO_TTL,
                hint="Use windowed_table or sessioned_table with the raw key serde; or read it with stream and the "
                "windowed serde, which gives its records without a store.",
            )
        has_windows = materialized.store_type is not None and materialized.store_type.kind is not StoreKind.KEY_VALUE
        if has_windows or materialized.store_retention is not None:
            raise NotSupported(
                f'topic "{topic}" is not windowed, and cannot be materialized in a window store',
                detail="Its keys have no windows.",
                hint="Aggregate it: stream(…).group_by(…).windowed_by(…).aggregate(…) gives a window store.",
            )
        node = self._topic_node(
            ObjectKind.TABLE, "table", topic, consumed, materialized.store_name or consumed.name, None
        )
        return KTable(self._workspace, TopologyRows.of(node))

    @overload
    def windowed_table(
        self, topic: str, window_size: timedelta, *, materialized: Materialized[Any, Any] | None = None
    ) -> KTable[Windowed[str], str]: ...
    @overload
    def windowed_table(
        self, topic: str, window_size: timedelta, materialized: Materialized[K, V], /
    ) -> KTable[Windowed[K], V]: ...
    @overload
    def windowed_table(
        self,
        topic: str,
        window_size: timedelta,
        consumed: Consumed[K, V],
        materialized: Materialized[Any, Any] | None = None,
    ) -> KTable[Windowed[K], V]: ...
    def windowed_table(
        self,
        topic: str,
        window_size: timedelta | None = None,
        consumed: Any = None,
        materialized: Materialized[Any, Any] | None = None,
    ) -> KTable[Windowed[Any], Any]:
        """The windows that another application has written to a topic, materialized in a window store.

        `window_size` is that of its windows, which is not in their keys. Serdes are those of the raw keys;
        `Consumed.for_changelog` reads the changelog of the other application's store.
        """
        size = positive(window_size, "window_size")
        consumed, materialized = _by_type(consumed, materialized)
        _check_store(topic, materialized, StoreKind.WINDOW)
        return self._windowed(topic, "windowed-table", KeyWindow(size), consumed, materialized)

    @overload
    def sessioned_table(
        self, topic: str, *, materialized: Materialized[Any, Any] | None = None
    ) -> KTable[Windowed[str], str]: ...
    @overload
    def sessioned_table(self, topic: str, materialized: Materialized[K, V], /) -> KTable[Windowed[K], V]: ...
    @overload
    def sessioned_table(
        self, topic: str, consumed: Consumed[K, V], materialized: Materialized[Any, Any] | None = None
    ) -> KTable[Windowed[K], V]: ...
    def sessioned_table(
        self, topic: str, consumed: Any = None, materialized: Materialized[Any, Any] | None = None
    ) -> KTable[Windowed[Any], Any]:
        """The sessions that another application has written to a topic, materialized in a session store."""
        consumed, materialized = _by_type(consumed, materialized)
        if isinstance(consumed, timedelta):
            raise TopologyError(
                "sessions have no window_size",
                detail="The start and the end of each session are in its key.",
                hint="Leave it out, or use windowed_table for windows of a fixed size.",
            )
        _check_store(topic, materialized, StoreKind.SESSION)
        return self._windowed(topic, "sessioned-table", KeyWindow(), consumed, materialized)

    def _windowed(
        self,
        topic: str,
        operation: str,
        window: KeyWindow,
        consumed: Consumed[Any, Any] | None,
        materialized: Materialized[Any, Any] | None,
    ) -> KTable[Windowed[Any], Any]:
        consumed, materialized = _serdes(consumed, materialized), materialized or Materialized()
        for serde in (consumed.key_serde, materialized.key_serde):
            if isinstance(serde, WindowedSerde):
                raise TopologyError(
                    f'the key serde for topic "{topic}" must be that of the raw key',
                    detail="The window store needs raw keys, and adds the windowed serde by itself.",
                    hint="Give the serde inside the windowed one, such as Serdes.string().",
                )
        name = materialized.store_name or consumed.name or self._workspace.name(operation)
        retention = materialized.store_retention
        if retention is not None and window.size is not None:
            check_window_retention(name, window.size, ZERO, retention)
        # Sessions have the same keys in a changelog.
        layout = KeyWindow(window.size, consumed.changelog and window.size is not None)
        node = self._topic_node(ObjectKind.TABLE, operation, topic, consumed, name, layout, retention)
        return KTable(self._workspace, TopologyRows.of(node))

    # -- nodes

    def _topic_node(
        self,
        kind: ObjectKind,
        operation: str,
        topic: str,
        consumed: Consumed[Any, Any],
        name: str | None,
        window: KeyWindow | None,
        retention: timedelta | None = None,
    ) -> TopicNode:
        _check_topic(topic)
        if kind is ObjectKind.TABLE and consumed.offset_reset is OffsetReset.LATEST:
            raise NotSupported(
                f'table over topic "{topic}" cannot start at the latest record',
                detail="A table has the latest value of each key, which an earlier record may have.",
                hint="Leave with_offset_reset out; or read the records from now on with stream, and aggregate them.",
            )
        key, values = _columns(consumed.key_serde, consumed.value_serde)
        node_name = name or self._workspace.name(operation)
        timestamp = consumed.timestamp_column
        if timestamp is not None:
            timestamp = column_named(timestamp, [each for each, _ in (*key, *values)], relation=node_name)
        node = TopicNode(
            name=node_name,
            kind=kind,
            key=key,
            values=values,
            key_format=consumed.key_serde.format,
            value_format=consumed.value_serde.format,
            window=window,
            topic=topic,
            required=True,
            reads=topic,
            reset=consumed.offset_reset,
            retention=retention,
            timestamp=timestamp,
            timestamp_format=consumed.timestamp_format,
            partitions=consumed.partitions,
        )
        self._workspace.add(node)
        return node

    def build(self) -> Topology:
        """What was declared, as statements."""
        return Topology(self._workspace.application, tuple(self._workspace.nodes))


def _check_topic(topic: Any) -> None:
    if not isinstance(topic, str) or not topic:
        raise TopologyError(f"{topic!r} is not the name of a topic")


def _by_type(consumed: Any, materialized: Any) -> tuple[Any, Any]:
    """The two optional arguments, either of which may come first when it is the only one."""
    if isinstance(consumed, Materialized) and materialized is None:
        return None, consumed
    return consumed, materialized


def _serdes(consumed: Any, materialized: Materialized[Any, Any] | None) -> Consumed[Any, Any]:
    """How to read a topic, with the serdes of the store where `Consumed` is missing; refuses serdes that differ."""
    if consumed is not None and not isinstance(consumed, Consumed):
        raise TopologyError(
            f"expected Consumed, not {type(consumed).__name__}", hint="Write Consumed.with_(key_serde, value_serde)."
        )
    if materialized is not None and not isinstance(materialized, Materialized):
        raise TopologyError(
            f"expected Materialized, not {type(materialized).__name__}", hint='Write Materialized.as_("name").'
        )
    if materialized is None:
        return consumed or TEXT
    if consumed is None:
        return Consumed.with_(materialized.key_serde or Serdes.string(), materialized.value_serde or Serdes.string())
    for ours, theirs, side in (
        (consumed.key_serde, materialized.key_serde, "key"),
        (consumed.value_serde, materialized.value_serde, "value"),
    ):
        if theirs is not None and not isinstance(theirs, WindowedSerde) and theirs != ours:
            raise TopologyError(
                f"Consumed and Materialized have different {side} serdes",
                detail="The table stores the rows of the topic.",
                hint=f"Give the {side} serde to one of them.",
            )
    return consumed


def _check_store(topic: str, materialized: Materialized[Any, Any] | None, kind: StoreKind) -> None:
    store_type = materialized.store_type if materialized is not None else None
    if store_type is not None and store_type.kind is not kind:
        raise NotSupported(
            f'topic "{topic}" is windowed, and cannot be materialized in a {store_type.kind}',
            detail=NO_TTL if store_type.kind is StoreKind.KEY_VALUE else f"Its table is a {kind}.",
            hint="Leave the type of the store out.",
        )


def _columns(key: Serde[Any], value: Serde[Any]) -> tuple[Columns, Columns]:
    """The columns of a topic. One without a name is called `key` or `value`, or `key_` or `value_` if that is taken."""
    named = {name.upper() for name, _ in (*key.columns, *value.columns)}

    def free(name: str) -> str:
        return name if name.upper() not in named else f"{name}_"

    keys, values = key.columns_as(free(KEY)), value.columns_as(free(VALUE))
    names = [name for name, _ in (*keys, *values)]
    for name in names:
        if names.count(name) > 1:
            raise TopologyError(
                f'key and value both have a column "{name}"', hint="Give one another name: serde.named(…)."
            )
    return keys, values
