"""The processing log: a stream of what could not be processed, written with the tick that met it."""

from collections.abc import Sequence

import pyarrow as pa

from holdfast.catalog.objects import Stream
from holdfast.config import Settings
from holdfast.names import ObjectName, QueryId
from holdfast.runtime.expressions.parse import parse_schema
from holdfast.runtime.plan.formats import FormatInfo, FormatProperties, Formats
from holdfast.runtime.program import Sink
from holdfast.runtime.serdes.encoding import Encoder
from holdfast.runtime.spark.functions import FunctionProblem
from holdfast.runtime.store.port import Layout
from holdfast.runtime.tick import Undecodable

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


def rows(found: Sequence[Undecodable], problems: Sequence[FunctionProblem], now_ms: int) -> pa.Table | None:
    """The rows of the log for what a tick could not decode, and for what users' functions could not compute."""
    tables = [_rows(problem, now_ms) for problem in found if problem.records.num_rows]
    tables += [_of_functions(problems, now_ms)] if problems else []
    return pa.concat_tables(tables) if tables else None


def _of_functions(problems: Sequence[FunctionProblem], now_ms: int) -> pa.Table:
    told = [f"the function gave no value, which is NULL then: {problem.reason}" for problem in problems]
    return pa.table(
        {
            "c0": pa.array([problem.function for problem in problems], pa.string()),
            "c1": pa.nulls(len(problems), pa.string()),
            "c2": pa.nulls(len(problems), pa.int32()),
            "c3": pa.nulls(len(problems), pa.int64()),
            "c4": pa.array(told, pa.string()),
            "c5": pa.array([problem.rows for problem in problems], pa.int64()),
            "c6": pa.nulls(len(problems), pa.binary()),
            "c7": pa.nulls(len(problems), pa.binary()),
            "ts": pa.repeat(pa.scalar(now_ms, pa.int64()), len(problems)),
        }
    )


def _rows(problem: Undecodable, now_ms: int) -> pa.Table:
    records, count = problem.records, problem.records.num_rows
    message = "the record cannot be decoded into the columns of the object; it was skipped"

    def same(value: str | int, type_: pa.DataType) -> pa.Array:
        return pa.repeat(pa.scalar(value, type_), count)

    return pa.table(
        {
            "c0": same(problem.object, pa.string()),
            "c1": same(problem.topic, pa.string()),
            "c2": records.column("part").cast(pa.int32()),
            "c3": records.column("off").cast(pa.int64()),
            "c4": same(message, pa.string()),
            "c5": same(problem.total, pa.int64()),
            "c6": records.column("key").cast(pa.binary()),
            "c7": records.column("value").cast(pa.binary()),
            "ts": same(now_ms, pa.int64()),
        }
    )
