"""Messages of librdkafka as Arrow tables."""

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain

import pyarrow as pa
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from holdfast.kafka.records import HEADERS, NO_RECORDS, RECORDS


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
