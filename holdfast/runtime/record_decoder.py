"""Decodes records on Spark."""

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.runtime import physical_columns as col
from holdfast.runtime.program import TopicInput
from holdfast.runtime.serdes.decoder import GOOD
from holdfast.runtime.spark.engine import Engine, Round, ViewInput
from holdfast.runtime.spark.views import topic_view


class RecordDecoder:
    """Shared by all readers of a process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def sql(self, source: TopicInput) -> str:
        """The SELECT that decodes the records in the topic's view."""
        return source.decoder.sql(topic_view(source.topic))

    def undecodable(self, source: TopicInput, records: ViewInput, limit: int) -> pa.Table:
        """The records that cannot be decoded, each with its `reason`; `total` is their number."""
        view = topic_view(source.topic)
        return self._engine.select(source.decoder.reason_sql(view, limit), Round({view: records}, {}))

    def decode(self, source: TopicInput, records: ViewInput) -> pa.Table:
        """The rows of a stream: `k0.., c0.., ts, part, off`; undecodable records are skipped."""
        rows = self._engine.select(
            f"SELECT * FROM ({self.sql(source)}) WHERE NOT tombstone", Round({topic_view(source.topic): records}, {})
        )
        good = rows.filter(pc.equal(rows.column(col.BAD), GOOD))
        return good.drop_columns([col.BAD, col.TOMBSTONE, col.HEADERS])
