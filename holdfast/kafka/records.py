"""Records of Kafka as Arrow tables."""

from dataclasses import dataclass

import pyarrow as pa

from holdfast.names import TopicName

Partition = tuple[TopicName, int]
"""A partition of a topic."""

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))

RECORDS = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.int64()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS, nullable=False),
    ]
)
"""Timestamps are milliseconds since the epoch, null when a record has none; no headers are an empty list."""

NO_RECORDS: pa.Table = RECORDS.empty_table()


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Rows for a topic, in their order: `key`, `value` (BINARY; a null value is a tombstone), `timestamp` (INT64 ms).

    A column `partition` (INT32), if there is one, chooses the partition where it is not null; `headers` are as in
    records that were read.
    """

    topic: TopicName
    rows: pa.Table
