"""Records of Kafka as Arrow tables."""

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain

import pyarrow as pa
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

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


def to_arrow(messages: Sequence[Message]) -> pa.Table:
    """The messages, in their order, column by column."""
    if not messages:
        return NO_RECORDS
    timestamps = [message.timestamp() for message in messages]
    return pa.Table.from_arrays(
        [
            pa.array([message.topic() for message in messages], pa.string()),
            pa.array([message.partition() for message in messages], pa.int32()),
            pa.array([message.offset() for message in messages], pa.int64()),
            pa.array([ms if kind != TIMESTAMP_NOT_AVAILABLE else None for kind, ms in timestamps], pa.int64()),
            pa.array([message.key() for message in messages], pa.binary()),
            pa.array([message.value() for message in messages], pa.binary()),
            headers_of(messages),
        ],
        schema=RECORDS,
    )


def headers_of(messages: Iterable[Message]) -> pa.Array:
    per_message = [message.headers() or () for message in messages]
    offsets = pa.array(accumulate(map(len, per_message), initial=0), pa.int32())
    flat = list(chain.from_iterable(per_message))
    entries = pa.StructArray.from_arrays(
        [pa.array([key for key, _ in flat], pa.string()), pa.array([value for _, value in flat], pa.binary())],
        fields=list(HEADERS.value_type),
    )
    return pa.ListArray.from_arrays(offsets, entries, type=HEADERS)
