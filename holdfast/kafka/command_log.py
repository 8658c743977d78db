"""The command topic: every command ever executed, in order. The catalog is a fold over it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.config import Settings
from holdfast.crash import crash_point
from holdfast.errors import CommandInDoubt, KafkaError, TopicChanged
from holdfast.kafka.port import Fenced, Kafka, TopicSpec, TransactionAborted

UNLIMITED_RETENTION = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


@dataclass(frozen=True, slots=True)
class CommandRecord:
    """A record of the command topic as it is stored."""

    offset: int
    key: bytes
    value: bytes
    timestamp: int


class CommandLog:
    """The one-partition command topic and its one writer."""

    def __init__(self, settings: Settings, kafka: Kafka, confirm: Callable[[], None] = lambda: None) -> None:
        """`confirm` raises unless this server still holds its lease."""
        self._topics, self._ranges = kafka.topics, kafka.internal_ranges
        self._topic = settings.command_topic
        self._producer = kafka.producer(f"holdfast-{settings.service_id}-commands", confirm=confirm, linger_ms=0)
        self._end = 0
        self._in_doubt = False

    def open(self) -> None:
        """Create the topic if it is missing, and fence an earlier server."""
        self._topics.create(TopicSpec(name=self._topic, config=UNLIMITED_RETENTION))
        self._producer.start()

    def read_all(self) -> Sequence[CommandRecord]:
        """Every command, oldest first."""
        partition = (self._topic, 0)
        start, end = self._topics.starts([partition])[partition], self._topics.ends([partition])[partition]
        if start > 0:
            raise TopicChanged(
                f'the command topic "{self._topic}" has lost its beginning',
                detail=f"Its first offset is {start}: earlier records were deleted.",
                hint="Restore the topic from a copy: the objects of the lost commands cannot be recovered otherwise.",
            )
        return self._read(start, end)

    def append(self, key: bytes, value: bytes) -> int:
        """Write a command and return its offset; durable on return.

        `CommandInDoubt`: it may have been written all the same; `missed` finds out.
        """
        crash_point("before_command_append")
        try:
            self._producer.begin()
            self._producer.produce(self._topic, value, key, partition=0)
            self._end = self._producer.commit()[self._topic, 0]
        except (TransactionAborted, Fenced):
            raise
        except KafkaError as error:
            self._in_doubt = True
            raise CommandInDoubt(error) from error
        crash_point("after_command_append")
        return self._end - 1

    @property
    def is_in_doubt(self) -> bool:
        """Whether the outcome of an append is unknown."""
        return self._in_doubt

    def missed(self) -> Sequence[CommandRecord]:
        """The commands of an append whose outcome was unknown; raises while Kafka cannot be reached."""
        if not self._in_doubt:
            return []
        self._producer.recover()
        partition = (self._topic, 0)
        # Up to the written end, not the stable one: a commit returns before the brokers have written its markers.
        found = self._read(self._end, self._topics.written([partition])[partition])
        self._in_doubt = False
        return found

    def _read(self, start: int, end: int) -> Sequence[CommandRecord]:
        records = self._ranges.read({(self._topic, 0): (start, max(end, self._end))})
        found = [
            CommandRecord(row["offset"], row["key"] or b"", row["value"], row["timestamp"] or 0)
            for row in records.select(["offset", "key", "value", "timestamp"]).to_pylist()
            if row["value"] is not None
        ]
        self._end = max([self._end, *(record.offset + 1 for record in found)])
        return found

    def close(self) -> None:
        self._producer.close()
