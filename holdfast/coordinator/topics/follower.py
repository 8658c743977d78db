"""Follows the topics that objects read: assigns their partitions to the intake, and stops queries of lost topics."""

from collections.abc import Mapping

from holdfast.catalog.snapshot import Catalog
from holdfast.coordinator.commit import CommitPoint
from holdfast.coordinator.freeze import Freezer
from holdfast.coordinator.intake import Intake, as_end_offsets, as_ends
from holdfast.coordinator.queries import Queries
from holdfast.coordinator.topics.known import KnownTopics
from holdfast.kafka.port import Topic, TopicAdmin
from holdfast.names import TopicName
from holdfast.runtime.store.port import Store
from holdfast.wall_clock import WallClock


class TopicFollower:
    """On the coordinator's thread."""

    def __init__(
        self,
        store: Store,
        topics: TopicAdmin,
        followed: KnownTopics,
        intake: Intake,
        queries: Queries,
        freezer: Freezer,
        commit: CommitPoint,
        clock: WallClock,
        *,
        check_seconds: float,
    ) -> None:
        self._store, self._topics, self._followed, self._intake = store, topics, followed, intake
        self._queries, self._freezer, self._commit = queries, freezer, commit
        self._clock, self._check_seconds = clock, check_seconds
        self._check_at = float("-inf")

    def find(self, catalog: Catalog) -> Mapping[TopicName, Topic]:
        """The existing topics that sources read; afterwards it is known which ones are lost."""
        wanted = {o.topic for o in catalog.objects.values() if not o.derived and o.topic is not None}
        found = self._topics.describe(wanted)
        self._followed.compare(wanted, found)
        return found

    def follow(self, catalog: Catalog) -> None:
        """Read every topic of a source: a new one from its present end, the records before it are for backfills."""
        ends = as_ends(self._store.remap_ends())
        topics = self.find(catalog)
        partitions = [(t.name, p) for t in topics.values() for p in range(t.partitions)]
        known = {topic for topic in topics if self._followed.was_read(topic)}
        new = [p for p in partitions if p not in ends or p[0] not in known]
        if new:
            present = self._topics.ends([p for p in new if p[0] not in known])
            stage = self._store.stage()
            # A new partition of a known topic is read from its start.
            stage.remap(as_end_offsets({p: present.get(p, 0) for p in new}))
            self._commit.commit(stage)
            ends = as_ends(self._store.remap_ends())
        self._followed.learn(topics)
        for topic, reason in self._followed.lost.items():
            self._freezer.fail_readers(topic, reason)
        self._intake.follow({p: ends[p] for p in partitions if p[0] not in self._followed.lost})

    def check(self) -> None:
        """Look for new partitions and for deleted or recreated topics, every few seconds."""
        if self._clock.monotonic() < self._check_at:
            return
        self._check_at = self._clock.monotonic() + self._check_seconds
        self.follow(self._queries.catalog)

    def lose(self, topic: TopicName, reason: str) -> None:
        """Stop the queries of a topic that no longer has what they would read next."""
        self._followed.truncate(topic, reason)
        self._freezer.fail_readers(topic, self._followed.lost[topic])

    def forget_unused(self, catalog: Catalog) -> None:
        """Forget topics that no object reads, and lost ones that no query reads: their names may be used again."""
        read = {topic for program in self._queries.dataflow.programs.values() for topic in program.topics}
        used = {topic for topic in catalog.topics if topic in read or topic not in self._followed.lost}
        self._followed.forget_all_but(used)
