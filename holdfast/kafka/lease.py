"""The lease: one server per service id, also when the servers are on different machines.

Holders write to a topic that the broker stamps with its own clock. Who holds the lease is a fold over the topic,
so every reader sees the same holder, whatever its own clock says:

- a **claim** takes the lease when nobody holds it, its last beat is older than the duration, or the owner is the same;
- a **beat** keeps it; a **release** gives it up.

A holder that cannot reach Kafka does not know who holds it now, and goes on asking: only the topic takes a lease away.
What it would write meanwhile waits for Kafka too, and is refused there once another server has fenced its producers.
"""

import json
import logging
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import sleep

from confluent_kafka import KafkaError as Reported
from confluent_kafka import KafkaException, Message, Producer

from holdfast.config import Settings
from holdfast.errors import KafkaError, ServiceTaken
from holdfast.kafka.admin import Admin, TopicSpec
from holdfast.kafka.clients import kafka_client
from holdfast.kafka.consumer import RangeReader
from holdfast.kafka.problems import client_log, told

log = logging.getLogger(__name__)

DURATION_MS = 10_000
BEAT_SECONDS = 3.0
WRITE_MS = 8_000
"""How long Kafka may take for an entry before the next is tried."""
TAIL = 500
"""How many offsets back the fold starts: far more than beats in a duration, far fewer than the topic may have."""

CONFIG = {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime", "segment.ms": "3600000"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A record of the lease topic."""

    kind: str
    owner: str
    host: str
    pid: int
    since: int
    offset: int = -1
    at: int = 0
    """When the broker wrote it, ms."""

    def encode(self) -> bytes:
        return json.dumps({name: getattr(self, name) for name in ("kind", "owner", "host", "pid", "since")}).encode()


class Lease:
    """This server's hold on its service id; kept by a thread from `acquire` to `release`."""

    def __init__(
        self, settings: Settings, admin: Admin, reader: RangeReader, *, on_lost: Callable[[], None] | None = None
    ) -> None:
        self._settings = settings
        self._admin = admin
        self._reader = reader
        self._on_lost = on_lost or (lambda: None)
        self._producer = Producer(
            {**kafka_client(settings), "acks": "all", "linger.ms": 0, "message.timeout.ms": WRITE_MS}, logger=client_log
        )
        self._owner = ""
        self._since = 0
        self._last: Entry | None = None
        self._stop = threading.Event()
        self._beating: threading.Thread | None = None
        self.problem: str | None = None

    def acquire(self, owner: str) -> None:
        """Take the lease for `owner` (the store's id), or say who has it. The same owner takes it at once.

        One that lives shows it by its next beat; of one that was killed, the lease is waited for until it runs out.
        """
        self._admin.create(TopicSpec(name=self._settings.lease_topic, config=CONFIG))
        self._owner, self._since = owner, round(datetime.now(UTC).timestamp() * 1000)
        last: int | None = None
        while True:
            self._last = self._write("claim")
            holder = fold(self._entries(self._last.offset))
            if holder is not None and holder.owner == owner:
                break
            if holder is None or (last is not None and holder.at > last):
                self._write("release")
                raise taken(self._settings.service_id, holder)
            last = holder.at
            sleep(BEAT_SECONDS / 10)
        self._stop.clear()
        self._beating = threading.Thread(target=self._beat, name="holdfast-lease", daemon=True)
        self._beating.start()

    def release(self) -> None:
        """Give the lease up, so that another server may start at once. Again: nothing happens."""
        if self._beating is None:
            return
        self._stop.set()
        self._beating.join()
        self._beating = None
        try:
            self._write("release")
        except KafkaError as cause:
            log.warning("the lease could not be released and will run out by itself: %s", cause)

    def _beat(self) -> None:
        while not self._stop.wait(BEAT_SECONDS / 10 if self.problem else BEAT_SECONDS):
            try:
                if not self._kept():
                    self._on_lost()
                    return
                self.problem = None
            except KafkaError as cause:
                self._wait_out(str(cause))

    def _kept(self) -> bool:
        """Renew the lease; False when another server has had it since the last time."""
        last, beat = self._last, self._write("claim" if self.problem else "beat")
        assert last is not None, "the lease has not been acquired"
        # Both times are the broker's: so soon after the last entry, no claim between the two was worth anything.
        if beat.at - last.at > DURATION_MS and self._lost_since(last, beat):
            return False
        self._last = beat
        return True

    def _lost_since(self, last: Entry, beat: Entry) -> bool:
        """Whether another server has the lease now, or had it meanwhile and may have gone on with the service."""
        found = list(holders(self._entries(beat.offset)))
        others = [holder for holder in found if holder is not None and holder.owner != self._owner]
        return found[-1] in others or any(holder.offset > last.offset for holder in others)

    def _wait_out(self, problem: str) -> None:
        if problem != self.problem:
            log.warning("the lease could not be renewed, trying again: %s", problem)
        self.problem = problem

    def _write(self, kind: str) -> Entry:
        written: list[tuple[Reported | None, Message]] = []
        entry = Entry(kind, self._owner, socket.gethostname(), os.getpid(), self._since)
        doing = f'the lease of service "{self._settings.service_id}" cannot be written'
        try:
            self._producer.produce(
                self._settings.lease_topic,
                entry.encode(),
                self._owner.encode(),
                on_delivery=lambda error, message: written.append((error, message)),
            )
            while not written:
                self._producer.poll(1)
        except KafkaException as cause:
            raise told(doing, cause) from cause
        error, message = written[0]
        if error is not None:
            raise told(doing, error)
        return replace(entry, offset=message.offset() or 0, at=message.timestamp()[1])

    def _entries(self, last: int) -> Iterable[Entry]:
        partition = (self._settings.lease_topic, 0)
        start = self._admin.starts([partition])[partition]
        begin = max(start, last - TAIL)
        rows = self._reader.read({partition: (begin, last + 1)}).select(["offset", "timestamp", "value"]).to_pylist()
        entries = [Entry(**json.loads(row["value"]), offset=row["offset"], at=row["timestamp"]) for row in rows]
        # What a claim was worth depends on what was before it: with that cut off, begin at a beat.
        first = 0 if begin == start else next((at for at, entry in enumerate(entries) if entry.kind == "beat"), 0)
        return entries[first:]


def holders(entries: Iterable[Entry]) -> Iterator[Entry | None]:
    """Who holds the lease after each entry, with the time of its last sign of life."""
    holder: Entry | None = None
    for entry in entries:
        mine = holder is not None and holder.owner == entry.owner
        if entry.kind == "release":
            holder = None if mine else holder
        elif holder is None or mine or entry.at - holder.at > DURATION_MS:
            holder = entry
        yield holder


def fold(entries: Iterable[Entry]) -> Entry | None:
    """Who holds the lease after all entries."""
    return next(iter(deque(holders(entries), maxlen=1)), None)


def taken(service_id: str, holder: Entry | None) -> ServiceTaken:
    if holder is None:
        return ServiceTaken(f'another server took service "{service_id}" at the same moment', hint="Start again.")
    since = datetime.fromtimestamp(holder.since / 1000, UTC).isoformat(sep=" ", timespec="seconds")
    return ServiceTaken(
        f'another server runs with service id "{service_id}"',
        detail=f'It is process {holder.pid} on host "{holder.host}", since {since}.',
        hint="Stop it, or give this server another --service-id.",
    )
