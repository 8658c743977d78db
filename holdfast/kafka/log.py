"""The command topic: what was ever commanded, in order. The catalog is a fold over it."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.config import Settings
from holdfast.crash import crash_point
from holdfast.errors import CommandInDoubt, KafkaError, TopicChanged
from holdfast.kafka.admin import Admin, TopicSpec
from holdfast.kafka.consumer import RangeReader
from holdfast.kafka.problems import Fenced, TransactionAborted
from holdfast.kafka.transactions import TransactionalProducer

KEPT_FOR_EVER = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


@dataclass(frozen=True, slots=True)
class CommandRecord:
    """A record of the command topic as it is stored."""

    offset: int
    key: bytes
    value: bytes
    timestamp: int


class CommandLog:
    """The one-partition command topic and its one writer."""

    def __init__(self, settings: Settings, admin: Admin, reader: RangeReader) -> None:
        self._admin = admin
        self._reader = reader
        self._topic = settings.command_topic
        self._producer = TransactionalProducer(settings, f"holdfast-{settings.service_id}-commands", linger_ms=0)
        self._end = 0
        self._in_doubt = False

    def open(self) -> None:
        """Make the topic if there is none, and fence a server that was here before."""
        self._admin.create(TopicSpec(name=self._topic, config=KEPT_FOR_EVER))
        self._producer.start()

    def read_all(self) -> Sequence[CommandRecord]:
        """Every command, oldest first."""
        partition = (self._topic, 0)
        start, end = self._admin.starts([partition])[partition], self._admin.ends([partition])[partition]
        if start > 0:
            raise TopicChanged(
                f'the command topic "{self._topic}" has lost its beginning',
                detail=f"Its first offset is {start}: something deleted what was before.",
                hint="Restore the topic from a copy; the objects created by the lost commands are not known otherwise.",
            )
        return self._read(start, end)

    def append(self, key: bytes, value: bytes) -> int:
        """Write a command; it is durable, and its offset known, when this returns.

        `CommandInDoubt`: it may have been written all the same; `missed` will tell.
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

    def missed(self) -> Sequence[CommandRecord]:
        """What was written by an append that left it in doubt; raises while Kafka cannot say."""
        if not self._in_doubt:
            return []
        self._producer.resolve()
        partition = (self._topic, 0)
        # As written, not as stable: a commit returns before the brokers have marked it.
        found = self._read(self._end, self._admin.written([partition])[partition])
        self._in_doubt = False
        return found

    def _read(self, start: int, end: int) -> Sequence[CommandRecord]:
        records = self._reader.read({(self._topic, 0): (start, max(end, self._end))})
        found = [
            CommandRecord(row["offset"], row["key"] or b"", row["value"], row["timestamp"] or 0)
            for row in records.select(["offset", "key", "value", "timestamp"]).to_pylist()
            if row["value"] is not None
        ]
        self._end = max([self._end, *(record.offset + 1 for record in found)])
        return found

    def close(self) -> None:
        self._producer.close()
