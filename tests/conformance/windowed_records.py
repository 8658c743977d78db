"""Topics and store changelogs that a Kafka Streams application wrote, with the answers of its own stores.

`kafka_streams/windowed.json` has any number of windows, each with its topics `NAME-out` and `NAME-changelog`.
"""

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from holdfast.runtime.plan.windows import Duration, WindowInfo, WindowTopic, WindowType
from holdfast.runtime.serdes.window_bytes import WindowBytes, WindowedKeyCodec
from holdfast.types import Scalar

FILE = Path("kafka_streams") / "windowed.json"
TOPICS = {"out": WindowTopic.TOPIC, "changelog": WindowTopic.CHANGELOG}
TYPES = {"LONG": Scalar.BIGINT, "INTEGER": Scalar.INTEGER, "STRING": Scalar.STRING}

Window = tuple[str, int, int]
"""A key, the start and the end."""


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record of a topic."""

    partition: int
    offset: int
    timestamp: int
    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class WindowedTopic:
    """A topic of the file, how to read it, and the windows that its application's store had at the end."""

    name: str
    layout: WindowedKeyCodec
    retention_ms: int
    value_type: Scalar
    records: Sequence[StoredRecord]
    stored: Mapping[Window, Any]

    @property
    def partitions(self) -> int:
        return 1 + max(record.partition for record in self.records)

    @property
    def is_session(self) -> bool:
        return self.layout.window.type is WindowType.SESSION

    def parts(self, record: StoredRecord) -> WindowBytes:
        found = self.layout.decode(record.key)
        assert found is not None
        return found

    def window(self, record: StoredRecord) -> Window:
        parts = self.parts(record)
        return parts.key.decode(), parts.start, parts.end

    def time(self, window: Window) -> int:
        """What observed time and retention are about: the start of a window, the end of a session."""
        return window[2] if self.is_session else window[1]

    def value(self, record: StoredRecord) -> Any:
        if record.value is None or self.value_type is Scalar.STRING:
            return record.value and record.value.decode()
        return int.from_bytes(record.value, "big", signed=True)


def read_topics(conformance: Path) -> Iterator[WindowedTopic]:
    """All topics of the file; skips the test if there is none."""
    path = conformance / FILE
    if not path.is_file():
        pytest.skip(f"the records of Kafka Streams are not at {path}; set HOLDFAST_CONFORMANCE_DIR")
    document = json.loads(path.read_text())
    for name, records in document["topics"].items():
        window_name, _, kind = name.rpartition("-")
        window = document["windows"][window_name]
        yield WindowedTopic(
            name,
            WindowedKeyCodec(window_info(window), TOPICS[kind]),
            window["retention_ms"],
            TYPES[window["value"].split()[0]],
            [stored_record(record) for record in records],
            {(row["key"], row["start"], row["end"]): row["value"] for row in document["stores"][window_name]},
        )


def window_info(window: Mapping[str, Any]) -> WindowInfo:
    if "gap_ms" in window:
        return WindowInfo(type=WindowType.SESSION)
    type_ = WindowType.HOPPING if "advance_ms" in window else WindowType.TUMBLING
    return WindowInfo(type=type_, size=Duration(Decimal(window["size_ms"]).scaleb(-3)))


def stored_record(record: Mapping[str, Any]) -> StoredRecord:
    key, value = (None if record[name] is None else b64decode(record[name]) for name in ("key", "value"))
    assert key is not None
    return StoredRecord(record["partition"], record["offset"], record["timestamp"], key, value)


def store_answers(topic: WindowedTopic, records: Sequence[StoredRecord]) -> Mapping[Window, Any]:
    """The windows of a store after the records, by the rules of Kafka Streams.

    The observed time of a partition is the greatest start of a window so far, or end of a session, of any record. A
    window whose time is `retention` or more before that is dropped, and not shown.
    """
    observed: dict[int, int] = {}
    stored: dict[Window, tuple[int, Any]] = {}
    for record in records:
        window, part = topic.window(record), record.partition
        time = topic.time(window)
        observed[part] = max(observed.get(part, time), time)
        if record.value is None:
            stored.pop(window, None)
        elif time > observed[part] - topic.retention_ms:
            stored[window] = part, topic.value(record)
    return {
        window: value
        for window, (part, value) in stored.items()
        if topic.time(window) > observed[part] - topic.retention_ms
    }
