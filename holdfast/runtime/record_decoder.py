"""Decodes records on Spark and learns the spellings of JSON names in each topic."""

import pyarrow as pa

from holdfast.names import TopicName
from holdfast.runtime import physical_columns as col
from holdfast.runtime.program import TopicInput
from holdfast.runtime.serdes.decoder import GOOD, UNKNOWN_SPELLING
from holdfast.runtime.spark.engine import Engine, Round, ViewInput
from holdfast.runtime.spark.views import topic_view


class RecordDecoder:
    """Shared by all readers of a process. Learned spellings change no result, only how often a job has to run twice."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._spellings: dict[TopicName, frozenset[str]] = {}

    def sql(self, source: TopicInput) -> str:
        """The SELECT that decodes the records in the topic's view."""
        return source.decoder.sql(topic_view(source.topic), self._known(source))

    def learn(self, source: TopicInput, records: ViewInput) -> None:
        """Learn every spelling in the records."""
        view = topic_view(source.topic)
        names = self._engine.select(source.decoder.spellings_sql(view), Round({view: records}, {}))
        self._spellings[source.topic] = self._known(source) | frozenset(names.column("name").to_pylist())

    def undecodable(self, source: TopicInput, records: ViewInput, limit: int) -> pa.Table:
        """The records that cannot be decoded, each with its `reason`; `total` is their number."""
        view = topic_view(source.topic)
        sql = source.decoder.reason_sql(view, self._known(source), limit)
        return self._engine.select(sql, Round({view: records}, {}))

    def decode(self, source: TopicInput, records: ViewInput) -> pa.Table:
        """The rows of a stream: `k0.., c0.., ts, part, off`; undecodable records are skipped."""
        while True:
            rows = self._engine.select(
                f"SELECT * FROM ({self.sql(source)}) WHERE NOT tombstone",
                Round({topic_view(source.topic): records}, {}),
            )
            bad = rows.column(col.BAD)
            if UNKNOWN_SPELLING not in bad.unique().to_pylist():
                return rows.filter(pa.compute.equal(bad, GOOD)).drop_columns([col.BAD, col.TOMBSTONE, col.HEADERS])
            self.learn(source, records)

    def _known(self, source: TopicInput) -> frozenset[str]:
        return self._spellings.get(source.topic, frozenset())
