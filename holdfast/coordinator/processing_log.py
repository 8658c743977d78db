"""The processing log: a stream of what could not be processed, committed with the tick that found it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.catalog.objects import Stream
from holdfast.config import Settings
from holdfast.coordinator.skipped_records import SkippedRecord
from holdfast.names import ObjectName, QueryId
from holdfast.runtime.expressions.parse import parse_schema
from holdfast.runtime.outcome import Outcome, Undecodable
from holdfast.runtime.plan.formats import FormatInfo, FormatProperties, Formats
from holdfast.runtime.program import Sink
from holdfast.runtime.serdes.encoder import Encoder
from holdfast.runtime.store.port import Layout

NAME = ObjectName("PROCESSING_LOG")
QUERY = QueryId("PROCESSING_LOG")
SCHEMA = parse_schema(
    "`OBJECT` STRING, `TOPIC` STRING, `PARTITION` INTEGER, `OFFSET` BIGINT, `MESSAGE` STRING, `TOTAL` BIGINT, "
    "`RECORD_KEY` BYTES, `RECORD_VALUE` BYTES"
)
FORMATS = Formats(
    key_format=FormatInfo(format="NONE", properties=FormatProperties()),
    value_format=FormatInfo(format="JSON", properties=FormatProperties()),
)
RECORD_BYTES = 50_000
"""How much of a record's key, and of its value, an entry has."""
LAYOUT = Layout((), tuple(column.type for column in SCHEMA.columns))


def stream(settings: Settings) -> Stream:
    """The log as a catalog object that every service has."""
    return Stream(
        name=NAME,
        schema=SCHEMA,
        topic=settings.processing_log_topic,
        formats=FORMATS,
        read_only=True,
        statement="built in: records that could not be processed",
    )


def sink(settings: Settings) -> Sink:
    return Sink(settings.processing_log_topic, Encoder(SCHEMA, FORMATS))


def rows(outcome: Outcome, now_ms: int) -> pa.Table | None:
    """The log rows for what a tick could not decode, process or compute."""
    tables = [_records(problem, now_ms) for problem in outcome.undecodable if problem.records.num_rows]
    counts = [*_late(outcome), *_skipped(outcome), *_of_functions(outcome)]
    tables += [_counts(counts, now_ms)] if counts else []
    return pa.concat_tables(tables) if tables else None


def counts(outcome: Outcome, now_ms: int) -> pa.Table:
    """The same without the records."""
    left_out = [problem for problem in outcome.undecodable if problem.records.num_rows]
    bad = [Count(each.object, f'records of topic "{each.topic}" were skipped', each.total) for each in left_out]
    return _counts([*bad, *_late(outcome), *_skipped(outcome), *_of_functions(outcome)], now_ms)


@dataclass(frozen=True, slots=True)
class Count:
    """The number of records or rows with the same problem."""

    object: str
    message: str
    total: int
    partition: int | None = None


def refused(skipped: Sequence[SkippedRecord], now_ms: int) -> pa.Table:
    """The log rows for records that a sink topic refused."""
    counted = Counter((record.query, record.reason) for record in skipped)
    counts = [
        Count(query, f"a record was not published: {reason}", total) for (query, reason), total in counted.items()
    ]
    return _counts(counts, now_ms)


def _late(outcome: Outcome) -> Iterator[Count]:
    for (name, partition), late in outcome.late.items():
        message = f"records came too late: the stream time was {late.stream_time}"
        yield Count(name, message, late.total, partition)


def _skipped(outcome: Outcome) -> Iterator[Count]:
    for (name, skip), total in outcome.skipped.items():
        yield Count(name, f"rows were skipped: {skip.reason}", total)


def _of_functions(outcome: Outcome) -> Iterator[Count]:
    for problem in outcome.problems:
        message = f"the function gave no value, which is NULL then: {problem.reason}"
        yield Count(problem.function, message, problem.rows)


def _counts(counts: Sequence[Count], now_ms: int) -> pa.Table:
    return pa.table(
        {
            "c0": pa.array([count.object for count in counts], pa.string()),
            "c1": pa.nulls(len(counts), pa.string()),
            "c2": pa.array([count.partition for count in counts], pa.int32()),
            "c3": pa.nulls(len(counts), pa.int64()),
            "c4": pa.array([count.message for count in counts], pa.string()),
            "c5": pa.array([count.total for count in counts], pa.int64()),
            "c6": pa.nulls(len(counts), pa.binary()),
            "c7": pa.nulls(len(counts), pa.binary()),
            "ts": pa.repeat(pa.scalar(now_ms, pa.int64()), len(counts)),
        }
    )


def _shortened(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The first bytes of a record: the log must take every entry, however large the records are."""
    return pc.binary_slice(values.cast(pa.binary()), 0, RECORD_BYTES)


def _records(problem: Undecodable, now_ms: int) -> pa.Table:
    records, count = problem.records, problem.records.num_rows
    reasons = records.column("reason").cast(pa.string())

    def same(value: str | int, type_: pa.DataType) -> pa.Array:
        return pa.repeat(pa.scalar(value, type_), count)

    return pa.table(
        {
            "c0": same(problem.object, pa.string()),
            "c1": same(problem.topic, pa.string()),
            "c2": records.column("part").cast(pa.int32()),
            "c3": records.column("off").cast(pa.int64()),
            "c4": pc.binary_join_element_wise("the record was skipped", reasons, ": "),
            "c5": same(problem.total, pa.int64()),
            "c6": _shortened(records.column("key")),
            "c7": _shortened(records.column("value")),
            "ts": same(now_ms, pa.int64()),
        }
    )
