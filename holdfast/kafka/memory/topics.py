"""Topics of the in-memory Kafka, described, created and deleted."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from holdfast.errors import KafkaError, TopicChanged
from holdfast.kafka.changes import different_partitions, recreated
from holdfast.kafka.memory.broker import MemoryBroker, PartitionLog, existing
from holdfast.kafka.port import Described, Offsets, Topic, TopicSpec
from holdfast.kafka.records import Partition
from holdfast.names import TopicName

NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
DEFAULTS = {"cleanup.policy": "delete", "retention.ms": "604800000", "message.timestamp.type": "CreateTime"}


class MemoryTopics:
    """Implements `port.TopicAdmin`."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker

    def topics(self) -> Sequence[TopicName]:
        with self._broker.request():
            return sorted(self._broker.topics)

    def cluster_id(self) -> str:
        with self._broker.request():
            return self._broker.id

    def describe(self, names: Iterable[TopicName]) -> Mapping[TopicName, Topic]:
        described = self.describe_each(names)
        for problem in described.problems.values():
            raise problem
        return described.found

    def describe_each(self, names: Iterable[TopicName]) -> Described:
        broker, wanted = self._broker, list(names)
        with broker.request():
            problems = {name: broker.problems[name] for name in wanted if name in broker.problems}
            found = {
                name: replace(log.topic, is_readable=name not in broker.unreadable)
                for name, log in existing(broker, wanted).items()
                if name not in problems
            }
            return Described(found, problems)

    def config(self, name: TopicName) -> Mapping[str, str]:
        with self._broker.request():
            self._broker.log((name, 0))
            return {**DEFAULTS, **self._broker.topics[name].config}

    def readers(self) -> Mapping[TopicName, tuple[int, int]]:
        return {}

    def changes(self, ids: Mapping[TopicName, str]) -> Mapping[TopicName, TopicChanged]:
        now = self.describe(ids)
        changed = {name: id for name, id in ids.items() if name not in now or now[name].id != id}
        return {name: recreated(name, id, now.get(name)) for name, id in changed.items()}

    def exists(self, name: TopicName) -> bool:
        return name in self.describe([name])

    def create(self, *specs: TopicSpec) -> None:
        self.check(*specs)
        for spec in specs:
            found = self.describe([spec.name]).get(spec.name)
            if found is None:
                self._broker.create(spec)
            elif found.partitions != spec.partitions:
                raise different_partitions(spec, found)

    def check(self, *specs: TopicSpec) -> None:
        with self._broker.request():
            for spec in specs:
                self._check(spec)

    def _check(self, spec: TopicSpec) -> None:
        if not NAME.fullmatch(spec.name) or spec.partitions < 1:
            raise KafkaError(f'topic "{spec.name}" cannot be created', detail="Its name or size is not valid.")
        if (spec.replication or 1) > self._broker.replicas:
            raise KafkaError(f'topic "{spec.name}" cannot be created', detail="There is only one broker.")

    def delete(self, *names: TopicName) -> None:
        with self._broker.request():
            for name in names:
                self._broker.delete(name)

    def starts(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        with self._broker.request():
            return {partition: self._log(partition).start for partition in partitions}

    def ends(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        with self._broker.request():
            return {partition: self._log(partition).stable_end for partition in partitions}

    def ends_each(self, partitions: Iterable[Partition]) -> Offsets:
        with self._broker.request():
            problems, wanted = self._broker.problems, list(partitions)
            return Offsets(
                {partition: self._log(partition).stable_end for partition in wanted if partition[0] not in problems},
                {topic: problems[topic] for topic, _ in wanted if topic in problems},
            )

    def written(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        with self._broker.request():
            return {partition: self._log(partition).end for partition in partitions}

    def offsets_at(self, partitions: Iterable[Partition], timestamp: int) -> Mapping[Partition, int]:
        found: dict[Partition, int] = {}
        with self._broker.request():
            for partition in partitions:
                log = self._log(partition)
                entries = log.entries[log.start : log.stable_end]
                later = (e.offset for e in entries if not e.is_marker and e.timestamp >= timestamp)
                if (first := next(later, None)) is not None:
                    found[partition] = first
        return found

    def _log(self, partition: Partition) -> PartitionLog:
        if (problem := self._broker.problems.get(partition[0])) is not None:
            raise problem
        return self._broker.log(partition)
