"""Topics of a Kafka cluster: described, created, deleted."""

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka import KafkaError as Reported
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclOperation,
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
    TopicDescription,
)

from holdfast.config import Settings
from holdfast.crash import crash_point
from holdfast.errors import KafkaError, TopicChanged
from holdfast.kafka.changes import different_partitions, recreated
from holdfast.kafka.client_properties import kafka_client
from holdfast.kafka.librdkafka.errors import (
    OUT_OF_REACH,
    REFUSALS,
    client_log,
    reported,
    translate,
    translate_topic,
)
from holdfast.kafka.port import Described, Offsets, Topic, TopicProblem, TopicSpec
from holdfast.kafka.records import Partition
from holdfast.names import TopicName

EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]

LEADERLESS = frozenset({Reported.NOT_LEADER_FOR_PARTITION, Reported.LEADER_NOT_AVAILABLE})
OUTDATED = frozenset({Reported.FENCED_LEADER_EPOCH, Reported.UNKNOWN_LEADER_EPOCH})
"""A new leader was elected, as after an outage. librdkafka repeats its request for minutes unless it looks again."""

UNKNOWN = frozenset({Reported.UNKNOWN_TOPIC_OR_PART, Reported._UNKNOWN_TOPIC})

SECONDS = 30.0
VISIBLE_SECONDS = 15.0
"""How long a new topic may take until every client sees it."""


class Admin:
    """Implements `port.TopicAdmin`. From any thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._refused: tuple[float, Reported] | None = None
        properties: dict[str, Any] = {**kafka_client(settings), "error_cb": self._on_error}
        self._client = AdminClient(properties, logger=client_log)

    def _on_error(self, error: Reported) -> None:
        if error.code() in REFUSALS:
            self._refused = time.monotonic(), error

    def _translate(self, problem: str, cause: KafkaException) -> KafkaError:
        """The error of a call. Brokers that refuse this client look unreachable to the call itself."""
        self._client.poll(0)
        if self._refused is not None and reported(cause).code() in OUT_OF_REACH:
            refused_at, refusal = self._refused
            if time.monotonic() - refused_at < 2 * SECONDS:
                return translate(problem, refusal)
        return translate(problem, cause)

    def _translate_topic(self, problem: str, topic: TopicName, cause: KafkaException) -> KafkaError:
        error = translate_topic(problem, topic, cause)
        return error if isinstance(error, TopicProblem) else self._translate(problem, cause)

    def topics(self) -> Sequence[TopicName]:
        """The names of all topics, in order."""
        try:
            return sorted(TopicName(name) for name in self._client.list_topics(timeout=SECONDS).topics)
        except KafkaException as cause:
            raise self._translate("the topics of Kafka cannot be listed", cause) from cause

    def cluster_id(self) -> str:
        """The id of the Kafka cluster."""
        try:
            return str(self._client.describe_cluster(request_timeout=SECONDS).result().cluster_id)
        except KafkaException as cause:
            raise self._translate("the id of the Kafka cluster cannot be read", cause) from cause

    def describe(self, names: Iterable[TopicName]) -> Mapping[TopicName, Topic]:
        """The topics among `names` that exist, in one call."""
        described = self.describe_each(names)
        for problem in described.problems.values():
            raise problem
        return described.found

    def describe_each(self, names: Iterable[TopicName]) -> Described:
        """The topics among `names` that exist, in one call; a problem of one is returned beside the others."""
        found: dict[TopicName, Topic] = {}
        problems: dict[TopicName, TopicProblem] = {}
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return Described(found, problems)
        futures = self._client.describe_topics(
            TopicCollection(list(wanted)), request_timeout=SECONDS, include_authorized_operations=True
        )
        for name in wanted:
            try:
                found[name] = _topic(name, futures[name].result())
            except KafkaException as cause:
                if reported(cause).code() in UNKNOWN:
                    continue
                error = self._translate_topic(f'topic "{name}" cannot be described', name, cause)
                if not isinstance(error, TopicProblem):
                    raise error from cause
                problems[name] = error
        return Described(found, problems)

    def config(self, name: TopicName) -> Mapping[str, str]:
        """The settings of a topic, including the brokers' defaults."""
        resource = ConfigResource(ResourceType.TOPIC, name)
        try:
            found = self._client.describe_configs([resource], request_timeout=SECONDS)[resource].result()
        except KafkaException as cause:
            raise self._translate(f'the settings of topic "{name}" cannot be read', cause) from cause
        return {key: str(entry.value) for key, entry in found.items()}

    def readers(self) -> Mapping[TopicName, tuple[int, int]]:
        """The numbers of consumers and of consumer groups that read each topic now."""
        consumers: dict[TopicName, int] = {}
        groups: dict[TopicName, int] = {}
        try:
            listed = self._client.list_consumer_groups(request_timeout=SECONDS).result().valid
            ids = [group.group_id for group in listed]
            described = self._client.describe_consumer_groups(ids, request_timeout=SECONDS) if ids else {}
            for future in described.values():
                reading = [
                    {TopicName(part.topic) for part in member.assignment.topic_partitions or ()}
                    for member in future.result().members
                    if member.assignment is not None
                ]
                for topic in set().union(*reading):
                    groups[topic] = groups.get(topic, 0) + 1
                for topic in (topic for topics in reading for topic in topics):
                    consumers[topic] = consumers.get(topic, 0) + 1
        except KafkaException as cause:
            raise self._translate("the consumer groups of Kafka cannot be listed", cause) from cause
        return {topic: (consumers[topic], groups[topic]) for topic in consumers}

    def changes(self, ids: Mapping[TopicName, str]) -> Mapping[TopicName, TopicChanged]:
        """The topics that were deleted, or recreated since they had these ids.

        Has to be polled: a consumer is not notified, and waits at its offset for ever.
        """
        now = self.describe(ids)
        return {
            name: recreated(name, id, now.get(name))
            for name, id in ids.items()
            if name not in now or now[name].id != id
        }

    def exists(self, name: TopicName) -> bool:
        return name in self.describe([name])

    def create(self, *specs: TopicSpec) -> None:
        """Create missing topics; an existing one must have the same number of partitions. Visible on return."""
        if not specs:
            return
        crash_point("before_topic_creation")
        self._create(specs, only_check=False)
        self._wait_seen(specs)
        crash_point("after_topic_creation")

    def check(self, *specs: TopicSpec) -> None:
        """Raise the error that `create` would raise, without creating anything."""
        if specs:
            self._create(specs, only_check=True)

    def _create(self, specs: Sequence[TopicSpec], *, only_check: bool) -> None:
        default = self._settings.internal_replication or -1
        wanted = [
            NewTopic(spec.name, spec.partitions, spec.replication or default, config=dict(spec.config))
            for spec in specs
        ]
        futures: Mapping[str, Future[None]] = self._client.create_topics(
            wanted, request_timeout=SECONDS, validate_only=only_check
        )
        for name, future in futures.items():
            try:
                future.result()
            except KafkaException as cause:
                if reported(cause).code() != Reported.TOPIC_ALREADY_EXISTS:
                    raise self._translate(f'topic "{name}" cannot be created', cause) from cause

    def delete(self, *names: TopicName) -> None:
        """Delete topics; a missing one is no error."""
        if not names:
            return
        futures: Mapping[str, Future[None]] = self._client.delete_topics(list(names), request_timeout=SECONDS)
        for name, future in futures.items():
            try:
                future.result()
            except KafkaException as cause:
                if reported(cause).code() != Reported.UNKNOWN_TOPIC_OR_PART:
                    raise self._translate(f'topic "{name}" cannot be deleted', cause) from cause

    def starts(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        """The first offset that each partition still has."""
        return self._offsets(partitions, EARLIEST, IsolationLevel.READ_COMMITTED)

    def ends(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        """Each partition's last stable offset: every record before it is committed or aborted."""
        return self._offsets(partitions, LATEST, IsolationLevel.READ_COMMITTED)

    def ends_each(self, partitions: Iterable[Partition], *, patience: float | None = None) -> Offsets:
        """The same for each topic by itself. `patience` is how long to wait for partitions without a leader."""
        return self._each_offset(partitions, LATEST, IsolationLevel.READ_COMMITTED, patience)

    def offsets_at(self, partitions: Iterable[Partition], timestamp: int) -> Mapping[Partition, int]:
        """Each partition's first offset with this timestamp or a later one; a partition without one is left out."""
        spec = OffsetSpec.for_timestamp(timestamp)
        found = self._offsets(partitions, spec, IsolationLevel.READ_COMMITTED)
        return {partition: offset for partition, offset in found.items() if offset >= 0}

    def written(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        """Each partition's end, including uncommitted records."""
        return self._offsets(partitions, LATEST, IsolationLevel.READ_UNCOMMITTED)

    def _offsets(
        self, partitions: Iterable[Partition], spec: OffsetSpec, isolation: IsolationLevel
    ) -> Mapping[Partition, int]:
        offsets = self._each_offset(partitions, spec, isolation)
        for problem in offsets.problems.values():
            raise problem
        return offsets.found

    def _each_offset(
        self,
        partitions: Iterable[Partition],
        spec: OffsetSpec,
        isolation: IsolationLevel,
        patience: float | None = None,
    ) -> Offsets:
        left = {TopicPartition(topic, partition): spec for topic, partition in partitions}
        found: dict[Partition, int] = {}
        problems: dict[TopicName, TopicProblem] = {}
        deadline = time.monotonic() + (VISIBLE_SECONDS if patience is None else patience)
        while left:
            futures = self._client.list_offsets(left, isolation_level=isolation, request_timeout=SECONDS)
            outdated: set[str] = set()
            for partition, future in futures.items():
                topic = TopicName(partition.topic)
                try:
                    found[topic, partition.partition] = future.result().offset
                    del left[partition]
                except KafkaException as cause:
                    code = reported(cause).code()
                    # A new topic is known before it has a leader.
                    if code in LEADERLESS | OUTDATED and time.monotonic() <= deadline:
                        outdated |= {topic} if code in OUTDATED else set()
                        continue
                    error = self._translate_topic(f'the offsets of topic "{topic}" cannot be read', topic, cause)
                    if not isinstance(error, TopicProblem):
                        raise error from cause
                    problems[topic] = error
                    del left[partition]
            self._refresh_leaders(outdated)
            if left:
                time.sleep(0.02)
        return Offsets({p: offset for p, offset in found.items() if p[0] not in problems}, problems)

    def _refresh_leaders(self, topics: Iterable[str]) -> None:
        """Refresh the metadata of these topics."""
        for topic in topics:
            with suppress(KafkaException):
                self._client.list_topics(topic, timeout=SECONDS)

    def _wait_seen(self, specs: Sequence[TopicSpec]) -> None:
        deadline = time.monotonic() + VISIBLE_SECONDS
        while len(seen := self.describe(spec.name for spec in specs)) < len({spec.name for spec in specs}):
            if time.monotonic() > deadline:
                missing = next(spec.name for spec in specs if spec.name not in seen)
                raise KafkaError(f'topic "{missing}" was created but is not visible after {VISIBLE_SECONDS:.0f} s')
            time.sleep(0.02)
        for spec in specs:
            if seen[spec.name].partitions != spec.partitions:
                raise different_partitions(spec, seen[spec.name])


def _topic(name: TopicName, description: TopicDescription) -> Topic:
    replicas = tuple(len(partition.replicas) for partition in description.partitions)
    allowed = description.authorized_operations  # None when the brokers do not say.
    is_readable = allowed is None or AclOperation.READ in allowed or AclOperation.ALL in allowed
    return Topic(name, str(description.topic_id), len(description.partitions), replicas, is_readable)
