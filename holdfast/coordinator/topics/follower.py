"""Follows the topics that objects read: assigns their partitions to the intake, and stops queries of lost topics."""

from collections.abc import Set

from holdfast.catalog.snapshot import Catalog
from holdfast.coordinator.commit import CommitPoint
from holdfast.coordinator.freeze import Freezer
from holdfast.coordinator.intake import Intake, as_end_offsets, as_ends
from holdfast.coordinator.queries import Queries
from holdfast.coordinator.topics.known import KnownTopics
from holdfast.coordinator.topics.sink_ids import SinkIds
from holdfast.kafka.port import Described, TopicAdmin, TopicProblem
from holdfast.names import TopicName
from holdfast.runtime.progress import Status
from holdfast.runtime.store.port import Store
from holdfast.wall_clock import WallClock


class TopicFollower:
    """On the coordinator's thread."""

    def __init__(
        self,
        store: Store,
        topics: TopicAdmin,
        followed: KnownTopics,
        sink_ids: SinkIds,
        intake: Intake,
        queries: Queries,
        freezer: Freezer,
        commit: CommitPoint,
        clock: WallClock,
        *,
        check_seconds: float,
    ) -> None:
        self._store, self._topics, self._followed, self._intake = store, topics, followed, intake
        self._sink_ids = sink_ids
        self._queries, self._freezer, self._commit = queries, freezer, commit
        self._clock, self._check_seconds = clock, check_seconds
        self._check_at = float("-inf")

    def find(self, catalog: Catalog) -> Described:
        """The existing topics that sources read; afterwards it is known which ones are lost or refused."""
        wanted = {o.topic for o in catalog.objects.values() if not o.derived and o.topic is not None}
        sinks = {o.topic for o in catalog.objects.values() if o.derived and o.topic is not None}
        described = self._topics.describe_each(wanted | sinks)
        self._sink_ids.compare({name: topic for name, topic in described.found.items() if name in sinks})
        described = Described(
            {name: topic for name, topic in described.found.items() if name in wanted},
            {name: problem for name, problem in described.problems.items() if name in wanted},
        )
        self._followed.compare(wanted - described.problems.keys(), described.found)
        denied = {t.name: _read_denied(t.name) for t in described.found.values() if not t.is_readable}
        problems = {**described.problems, **denied}
        self._followed.refused.clear()
        for problem in problems.values():
            if problem.lasting:
                self._followed.refuse(problem)
        return Described({n: t for n, t in described.found.items() if n not in problems}, problems)

    def follow(self, catalog: Catalog) -> None:
        """Read every topic of a source: a new one from its present end, the records before it are for backfills."""
        ends = as_ends(self._store.remap_ends())
        described = self.find(catalog)
        known = {topic for topic in described.found if self._followed.was_read(topic)}
        offsets = self._topics.ends_each(
            (t.name, p) for t in described.found.values() if t.name not in known for p in range(t.partitions)
        )
        present, waiting = offsets.found, {**described.problems, **offsets.problems}
        topics = {name: topic for name, topic in described.found.items() if name not in waiting}
        partitions = [(t.name, p) for t in topics.values() for p in range(t.partitions)]
        # What is followed may still be readable while the topic cannot be described.
        partitions += [p for p in ends if p[0] in waiting and self._followed.was_read(p[0])]
        new = [p for p in partitions if p not in ends or (p[0] not in known and p[0] in topics)]
        if new:
            stage = self._store.stage()
            # A new partition of a known topic is read from its start.
            stage.remap(as_end_offsets({p: present.get(p, 0) for p in new}))
            self._commit.commit(stage)
            ends = as_ends(self._store.remap_ends())
        self._followed.learn(topics)
        unreadable = self._followed.unreadable
        for topic, reason in unreadable.items():
            self._freezer.fail_readers(topic, reason)
        self._resume_tables(unreadable.keys() | waiting.keys())
        self._intake.follow({p: ends[p] for p in partitions if p[0] not in unreadable})

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

    def refuse(self, problem: TopicProblem) -> None:
        """Stop the queries of a topic that Kafka does not let them read; after a passing problem they wait."""
        if problem.lasting:
            self._followed.refuse(problem)
            self._freezer.fail_readers(problem.topic, self._followed.refused[problem.topic])

    def _resume_tables(self, unreadable: Set[TopicName]) -> None:
        """Resume the tables over topics that were refused and can be read now: no statement could resume them."""
        for query, program in self._queries.with_status(Status.ERROR).items():
            was_refused = self._followed.is_refusal(self._queries.progress[query].reason)
            if was_refused and query not in self._queries.catalog.queries and not program.topics & unreadable:
                self._queries.set(query, Status.BUILDING)

    def forget_unused(self, catalog: Catalog) -> None:
        """Forget topics that no object reads, and lost ones that no query reads: their names may be used again."""
        read = {topic for program in self._queries.dataflow.programs.values() for topic in program.topics}
        used = {topic for topic in catalog.topics if topic in read or topic not in self._followed.lost}
        self._followed.forget_all_but(used)


def _read_denied(topic: TopicName) -> TopicProblem:
    return TopicProblem(
        f'topic "{topic}" cannot be read',
        topic=topic,
        lasting=True,
        detail="The ACLs of Kafka deny this user to read it.",
        hint="Allow this user to read the topic.",
    )
