"""The lease: one server per service id, also when the servers are on different machines.

Holders write to a topic that the broker stamps with its own clock. Who holds the lease is a fold over the topic,
so every reader sees the same holder, whatever its own clock says:

- a **claim** takes the lease when nobody holds it, its last beat is older than the duration, or the owner is the same;
- a **beat** keeps it; a **release** gives it up.
"""

import json
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic, sleep

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
            {**kafka_client(settings), "acks": "all", "linger.ms": 0, "message.timeout.ms": 8_000}, logger=client_log
        )
        self._owner = ""
        self._since = 0
        self._stop = threading.Event()
        self._beating: threading.Thread | None = None

    def acquire(self, owner: str) -> None:
        """Take the lease for `owner` (the store's id), or say who has it. The same owner takes it at once.

        One that lives shows it by its next beat; of one that was killed, the lease is waited for until it runs out.
        """
        self._admin.create(TopicSpec(name=self._settings.lease_topic, config=CONFIG))
        self._owner, self._since = owner, round(datetime.now(UTC).timestamp() * 1000)
        last: int | None = None
        while True:
            claimed = self._write("claim")
            holder = fold(self._entries(claimed.offset() or 0))
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
        written = monotonic()
        while not self._stop.wait(BEAT_SECONDS):
            try:
                if monotonic() - written < DURATION_MS / 1000:
                    self._write("beat")
                    written = monotonic()
                    continue
            except KafkaError as cause:
                log.warning("the lease could not be renewed: %s", cause)
            if monotonic() - written >= DURATION_MS / 1000:
                # A pause this long may have let another server in: find out who holds it by claiming it again.
                if not self._claimed_again():
                    self._on_lost()
                    return
                written = monotonic()

    def _claimed_again(self) -> bool:
        try:
            holder = fold(self._entries(self._write("claim").offset() or 0))
        except KafkaError as cause:
            log.error("the lease ran out and cannot be renewed: %s", cause)
            return False
        return holder is not None and holder.owner == self._owner

    def _write(self, kind: str) -> Message:
        written: list[tuple[Reported | None, Message]] = []
        value = {
            "kind": kind,
            "owner": self._owner,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "since": self._since,
        }
        doing = f'the lease of service "{self._settings.service_id}" cannot be written'
        try:
            self._producer.produce(
                self._settings.lease_topic,
                json.dumps(value).encode(),
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
        return message

    def _entries(self, last: int) -> Iterable[Entry]:
        partition = (self._settings.lease_topic, 0)
        start = self._admin.starts([partition])[partition]
        begin = max(start, last - TAIL)
        rows = self._reader.read({partition: (begin, last + 1)}).select(["offset", "timestamp", "value"]).to_pylist()
        entries = [Entry(**json.loads(row["value"]), offset=row["offset"], at=row["timestamp"]) for row in rows]
        # What a claim was worth depends on what was before it: with that cut off, begin at a beat.
        first = 0 if begin == start else next((at for at, entry in enumerate(entries) if entry.kind == "beat"), 0)
        return entries[first:]


def fold(entries: Iterable[Entry]) -> Entry | None:
    """Who holds the lease after the entries, with the time of its last sign of life."""
    holder: Entry | None = None
    for entry in entries:
        mine = holder is not None and holder.owner == entry.owner
        if entry.kind == "release":
            holder = None if mine else holder
        elif holder is None or mine or entry.at - holder.at > DURATION_MS:
            holder = entry
    return holder


def taken(service_id: str, holder: Entry | None) -> ServiceTaken:
    if holder is None:
        return ServiceTaken(f'another server took service "{service_id}" at the same moment', hint="Start again.")
    since = datetime.fromtimestamp(holder.since / 1000, UTC).isoformat(sep=" ", timespec="seconds")
    return ServiceTaken(
        f'another server runs with service id "{service_id}"',
        detail=f'It is process {holder.pid} on host "{holder.host}", since {since}.',
        hint="Stop it, or give this server another --service-id.",
    )
