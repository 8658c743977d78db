"""Faults of the world around a server: processes die or hang, disks fill, topics refuse records or disappear."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from holdfast.config import load
from holdfast.kafka import broker as brokers
from holdfast.kafka.broker import EmbeddedBroker

from .rig import Rig
from .topics import SECONDS, delete_topic, write

AUTHORIZER = """
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
"""
EVERYONE = "User:ANONYMOUS"
SMALLEST_BATCH = "80"
"""A `max.message.bytes` that no record fits into, but the 78 bytes that end a transaction: without those Kafka could
neither commit nor abort, and no producer could begin."""
DISK = "1g"
LARGEST_STEP_MS = 3_600_000


@contextmanager
def authorizing_broker(folder: Path) -> Iterator[EmbeddedBroker]:
    """A broker of its own, which may be killed, and which checks ACLs."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(brokers, "PROPERTIES", brokers.PROPERTIES + AUTHORIZER)
        broker = EmbeddedBroker(load({"data_dir": folder}, environment={}))
        broker.start()
        try:
            yield broker
        finally:
            broker.stop()


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """A file system of its own in a folder; False where this process may not mount one."""
    folder.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)], capture_output=True)
    try:
        yield mounted.returncode == 0
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


class Faults:
    """What can go wrong, each once per call. `longest` limits how long processes hang, in seconds."""

    def __init__(self, rig: Rig, broker: EmbeddedBroker, choose: random.Random, *, disk: bool, longest: float) -> None:
        self._rig, self._server, self._broker, self._choose = rig, rig.server, broker, choose
        self._disk, self._longest = disk, longest
        self._admin = AdminClient({"bootstrap.servers": rig.kafka})
        self.lasting: set[str] = set()
        """Objects whose queries cannot go on: their topics are gone."""

    def all(self) -> Sequence[Callable[[], None]]:
        found = [
            self.kill_server, self.kill_spark, self.kill_broker, self.suspend_server, self.suspend_spark,
            self.suspend_broker, self.lower_size_limit, self.deny_writes, self.deny_reads, self.delete_sink,
            self.delete_source, self.truncate_source, self.step_clock,
        ]  # fmt: skip
        return [*found, self.fill_disk] if self._disk else found

    # -- processes

    def kill_server(self) -> None:
        self._server.kill()

    def kill_spark(self) -> None:
        """The server starts another Spark with the next tick."""
        for process in self._spark():
            process.kill()

    def kill_broker(self) -> None:
        with self._rig.load.paused():
            assert self._broker.pid is not None
            os.kill(self._broker.pid, signal.SIGKILL)
            time.sleep(self._choose.uniform(0, 5))
            self._broker.stop()
            self._broker.start()

    def suspend_server(self) -> None:
        if self._server.process is not None:
            self._suspend([self._server.process.pid])

    def suspend_spark(self) -> None:
        self._suspend([process.pid for process in self._spark()])

    def suspend_broker(self) -> None:
        assert self._broker.pid is not None
        with self._rig.load.paused():
            self._suspend([self._broker.pid])

    def _suspend(self, processes: Sequence[int]) -> None:
        with suppress(ProcessLookupError):
            for pid in processes:
                os.kill(pid, signal.SIGSTOP)
            # Short pauses are more frequent than long ones, as in networks.
            time.sleep(1 + (self._longest - 1) * self._choose.random() ** 3)
        for pid in processes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _spark(self) -> list[psutil.Process]:
        family = [p for p in self._server.look_at_family() if p.is_running()]
        return [p for p in family if p.name() == "java" and any("SparkSubmit" in word for word in p.cmdline())]

    # -- the clock

    def step_clock(self) -> None:
        """The server's clock steps ahead or back, by up to an hour, and stays there."""
        file = self._server.clock
        assert file is not None
        file.with_suffix(".new").write_text(str(self._choose.randrange(-LARGEST_STEP_MS, LARGEST_STEP_MS)))
        file.with_suffix(".new").replace(file)
        time.sleep(self._choose.uniform(0, 3))

    # -- the disk

    def fill_disk(self) -> None:
        ballast = self._server.data_dir / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1024 * 1024))
        time.sleep(self._choose.uniform(0.5, 10))
        ballast.unlink()

    # -- topics

    def lower_size_limit(self) -> None:
        self._set_limit(SMALLEST_BATCH)
        time.sleep(self._choose.uniform(0, 10))

    def deny_writes(self) -> None:
        self._deny(self._rig.sink("DENIED"), AclOperation.WRITE)

    def deny_reads(self) -> None:
        """Of the topic of a table, which takes INSERTs meanwhile."""
        self._deny(f"{self._rig.prefix}_notes", AclOperation.READ)

    def _deny(self, topic: str, denied: AclOperation) -> None:
        rules = [(AclOperation.ALL, AclPermissionType.ALLOW), (denied, AclPermissionType.DENY)]
        bindings = [
            AclBinding(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, EVERYONE, "*", operation, permission)
            for operation, permission in rules
        ]
        for future in self._admin.create_acls(bindings).values():
            future.result(SECONDS)
        time.sleep(self._choose.uniform(0, 10))

    def delete_sink(self) -> None:
        if "DOOMED" not in self.lasting:
            delete_topic(self._rig.kafka, self._rig.sink("DOOMED"))
            self.lasting.add("DOOMED")

    def delete_source(self) -> None:
        if "ORPHANED" not in self.lasting:
            topic = f"{self._rig.prefix}_gone"
            write(self._rig.kafka, topic, [(f"k{n}", b'{"n": 1}') for n in range(20)])
            delete_topic(self._rig.kafka, topic)
            self.lasting.add("ORPHANED")

    def truncate_source(self) -> None:
        """Records that a paused query has not read are deleted."""
        if "TRUNCATED" in self.lasting:
            return
        spare = f"{self._rig.prefix}_spare"
        query = self._server.queries()["TRUNCATED"]["id"]
        self._server.sql(f"PAUSE {query};")
        write(self._rig.kafka, spare, [(f"k{n}", b'{"n": 1}') for n in range(20)])
        ends = [TopicPartition(spare, partition, -1) for partition in range(2)]
        for future in self._admin.delete_records(ends).values():
            future.result(SECONDS)
        self.lasting.add("TRUNCATED")
        self._server.sql(f"RESUME {query};")

    def _set_limit(self, value: str) -> None:
        resource = ConfigResource(
            ConfigResource.Type.TOPIC,
            self._rig.sink("SIZED"),
            incremental_configs=[ConfigEntry("max.message.bytes", value, incremental_operation=AlterConfigOpType.SET)],
        )
        for future in self._admin.incremental_alter_configs([resource]).values():
            future.result(SECONDS)

    def heal(self) -> None:
        """Let the topics take records again."""
        self._set_limit("1000000")
        every = [
            AclBindingFilter(
                ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, None, None,
                AclOperation.ANY, AclPermissionType.ANY,
            )
            for topic in (self._rig.sink("DENIED"), f"{self._rig.prefix}_notes")
        ]  # fmt: skip
        for future in self._admin.delete_acls(every).values():
            future.result(SECONDS)
