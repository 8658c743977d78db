"""The tick, in the seven steps of the design."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa

from holdfast import metrics
from holdfast.coordinator.commit import CommitPoint
from holdfast.coordinator.freeze import Freezer
from holdfast.coordinator.intake import Intake, TickRecords, as_ends, length
from holdfast.coordinator.queries import Queries
from holdfast.coordinator.spark_exits import SparkExits
from holdfast.coordinator.topics.follower import TopicFollower
from holdfast.errors import ReadError, StoreError
from holdfast.names import QueryId, TopicName
from holdfast.runtime.outcome import Outcome
from holdfast.runtime.progress import Status
from holdfast.runtime.spark.engine import ViewInput
from holdfast.runtime.store.port import Placement, Store, TickStage
from holdfast.runtime.tick import Ticker
from holdfast.runtime.tick_inputs import InsertedRows, TickInputs


class TickLoop:
    """Runs the ticks of the live queries. On the coordinator's thread."""

    def __init__(
        self,
        store: Store,
        ticker: Ticker,
        intake: Intake,
        queries: Queries,
        follower: TopicFollower,
        freezer: Freezer,
        commit: CommitPoint,
        exits: SparkExits,
    ) -> None:
        self._store, self._ticker, self._intake, self._queries = store, ticker, intake, queries
        self._follower, self._freezer, self._commit, self._exits = follower, freezer, commit, exits

    def tick(self, timeout: float) -> bool:
        """One tick of the live queries. False when there was nothing to read within the timeout."""
        self._follower.check()
        polled = self._intake.poll(timeout)  # 1. The consumer's poll is the wake-up.
        records = self._intake.choose(polled)  # 2. A range per topic, up to the limits of a tick.
        with self._rewound_on_error():
            self._stop_readers_of_unreadable_topics(records)
        if not records.topics:
            return False
        with metrics.TICK_SECONDS.labels("tick").time():
            with self._rewound_on_error():
                with self._exits.counted():
                    stage, outcome = self._run_queries(records)  # 3. One Spark job per depth of the dataflow.
                self._stage_positions(stage, records, outcome)  # 4. Failed queries stop here; the rest moves on.
                self._commit.write(stage, outcome)  # 5. The only commit point.
            self._commit.publish()  # 6. Beside the next tick.
            self._commit.notify()  # 7. Wake the subscribers.
        count_tick("tick", records.topics)
        return True

    def insert(self, query: QueryId, rows: pa.Table) -> None:
        """Commit rows that a user inserts into a derived object, in a tick of their own."""
        if query not in self._queries.running():
            raise ReadError(f"query {query} does not run", hint="SHOW QUERIES says why.")
        building = self._queries.with_status(Status.BUILDING)
        if any(self._store.position(each).placement is Placement.LIVE for each in building):
            raise StoreError(
                "rows cannot be inserted now",
                detail="A query has all rows until now and does not run yet: it would miss these.",
                hint="Try again.",
            )
        inserted = InsertedRows(self._queries.dataflow.programs[query], rows)
        with metrics.TICK_SECONDS.labels("insert").time():
            running = self._queries.running()
            with self._exits.counted():
                stage, outcome = self._ticker.run(
                    self._queries.dataflow, running, TickInputs({}), inserted, isolate=self._exits.isolate
                )
            self._stage_failed(stage, outcome)
            self._commit.commit(stage, outcome)
        count_tick("insert", {})

    @contextmanager
    def _rewound_on_error(self) -> Iterator[None]:
        """The intake has moved past records that are committed only at the end of the tick."""
        try:
            yield
        except BaseException:
            self._intake.rewind(as_ends(self._store.remap_ends()))
            raise

    def _stop_readers_of_unreadable_topics(self, records: TickRecords) -> None:
        for (topic, _), problem in records.lost.items():
            self._follower.lose(topic, str(problem))
        for refused in records.refused.values():
            self._follower.refuse(refused)

    def _run_queries(self, records: TickRecords) -> tuple[TickStage, Outcome]:
        running, inputs = self._queries.running(), TickInputs(records.topics)
        return self._ticker.run(self._queries.dataflow, running, inputs, isolate=self._exits.isolate)

    def _stage_positions(self, stage: TickStage, records: TickRecords, outcome: Outcome) -> None:
        """Stage the new ends of the remap, and where each failed query was before this tick."""
        self._stage_failed(stage, outcome)
        before = as_ends(self._store.remap_ends())
        stage.remap([end for end in records.ends if before.get((end.topic, end.partition)) != end.offset])

    def _stage_failed(self, stage: TickStage, outcome: Outcome) -> None:
        for query in outcome.failed:
            stage.move(query, *self._freezer.position(self._queries.dataflow.programs[query]))


def count_tick(kind: str, read: Mapping[TopicName, ViewInput]) -> None:
    """Count a committed tick and the records that it has read."""
    metrics.TICKS.labels(kind).inc()
    for topic, records in read.items():
        metrics.RECORDS_READ.labels(topic).inc(length(records))
