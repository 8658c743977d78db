"""The lease: one server per service id, also when the servers are on different machines.

Holders write to a topic that the broker stamps with its own clock. Who holds the lease is a fold over the topic,
so every reader sees the same holder, whatever its own clock says:

- a **claim** takes the lease when nobody holds it, its last beat is older than the duration, or the owner is the same;
- a **beat** renews it; a **release** gives it up.

A holder that cannot reach Kafka does not know who holds the lease now, and retries: only the topic takes a lease away.
Its writes wait for Kafka too, and are refused once another server has fenced its producers.
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
from typing import Protocol

from holdfast.config import Settings
from holdfast.errors import KafkaError, ServiceTaken
from holdfast.kafka.port import Fenced, Ranges, TopicAdmin, TopicSpec
from holdfast.names import TopicName
from holdfast.wall_clock import WallClock
from holdfast.worker import Worker

log = logging.getLogger(__name__)

TAIL = 500
"""How many offsets back the fold starts: far more than the beats of a duration, far fewer than a long topic has."""

CONFIG = {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime", "segment.ms": "3600000"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseIntervals:
    """The timings of a lease, in seconds. All servers of a service need the same duration."""

    duration: float = 10.0
    """A lease without a beat for longer than this is free."""
    beat: float = 3.0
    """Between two beats. A holder that cannot reach Kafka, and a server that waits, try ten times as often."""
    write: float = 8.0
    """The delivery timeout of an entry."""

    @property
    def duration_ms(self) -> int:
        return round(self.duration * 1_000)


class EntryWriter(Protocol):
    """Writes single records outside of transactions, and learns where and when they were written."""

    def write(self, topic: TopicName, value: bytes, key: bytes) -> tuple[int, int]:
        """Returns the offset and the broker's timestamp, in ms; durable on return."""


@dataclass(frozen=True, slots=True)
class LeaseEntry:
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


class TopicLease:
    """Implements `port.Lease`: a thread renews the lease from `acquire` to `release`."""

    def __init__(
        self,
        settings: Settings,
        topics: TopicAdmin,
        ranges: Ranges,
        writer: EntryWriter,
        *,
        on_lost: Callable[[], None] = lambda: None,
        intervals: LeaseIntervals | None = None,
        clock: WallClock | None = None,
    ) -> None:
        self._settings, self._topics, self._ranges, self._writer = settings, topics, ranges, writer
        self._on_lost, self._intervals, self._clock = on_lost, intervals or LeaseIntervals(), clock or WallClock()
        self._owner = ""
        self._is_taken = False
        self._since = 0
        self._last: LeaseEntry | None = None
        self._turn = threading.Lock()
        """Held while the lease is renewed: by its own thread, or by one that needs to be sure of it."""
        self._beating: Worker | None = None
        self._failure: str | None = None

    @property
    def problem(self) -> str | None:
        """Why the lease could not be renewed, while that is so: Kafka's reason, or an error nobody expected."""
        unexpected = None if self._beating is None else self._beating.problem
        return "\n".join(filter(None, (self._failure, unexpected))) or None

    def acquire(self, owner: str) -> None:
        """Take the lease for `owner` (the store's id) at once if it had it before; `ServiceTaken` names another holder.

        A live holder is recognised by its next beat; the lease of one that was killed is waited for until it expires.
        """
        self.take(owner)
        beat = self._intervals.beat
        # A longer pause after an error would let the lease expire.
        self._beating = Worker(
            "holdfast-lease", self.beat, interval=lambda: beat / 10 if self.problem else beat, longest_pause=beat
        )
        self._beating.start()

    def take(self, owner: str) -> None:
        """Take the lease as `acquire` does. The caller renews it with `beat`."""
        self._topics.create(TopicSpec(name=self._settings.lease_topic, config=CONFIG))
        self._owner, self._since = owner, self._clock.now_ms()
        last: int | None = None
        while True:
            self._last = self._write("claim")
            holder = self._fold(self._entries(self._last.offset))
            if holder is not None and holder.owner == owner:
                self._is_taken = True
                return
            if holder is None or (last is not None and holder.at > last):
                self._write("release")
                raise taken(self._settings.service_id, holder)
            last = holder.at
            self._clock.sleep(self._intervals.beat / 10)

    def release(self) -> None:
        """Give the lease up, so that another server may start at once. A second call does nothing."""
        if not self._is_taken:
            return
        self._is_taken = False
        if self._beating is not None:
            self._beating.stop()
            self._beating = None
        try:
            self._write("release")
        except KafkaError as cause:
            log.warning("lease not released, it will expire: error=%s", cause)

    def beat(self) -> bool:
        """Renew the lease, or say in `problem` why that failed; False when it is lost."""
        try:
            with self._turn:
                lost = not self._renew()
            if lost:
                self._on_lost()
                return False
            self._failure = None
        except KafkaError as cause:
            self._report(str(cause))
        return True

    def confirm(self) -> None:
        """Renew the lease now; `Fenced` when another server has had it since."""
        if not self._is_taken:
            return
        with self._turn:
            lost = not self._renew()
        if lost:
            self._on_lost()
            raise Fenced("another server has taken this service id", hint="Stop one of the two.")

    def _renew(self) -> bool:
        """Renew the lease; False when another server has had it since the last time."""
        last, beat = self._last, self._write("claim" if self.problem else "beat")
        assert last is not None, "the lease has not been acquired"
        # Both times are the broker's: within a duration of the last entry, no claim between the two took the lease.
        if beat.at - last.at > self._intervals.duration_ms and self._lost_since(last, beat):
            return False
        self._last = beat
        return True

    def _lost_since(self, last: LeaseEntry, beat: LeaseEntry) -> bool:
        """Whether another server holds the lease now, or held it meanwhile and may have run the service."""
        found = list(holders(self._entries(beat.offset), self._intervals.duration_ms))
        others = [holder for holder in found if holder is not None and holder.owner != self._owner]
        return found[-1] in others or any(holder.offset > last.offset for holder in others)

    def _report(self, problem: str) -> None:
        if problem != self._failure:
            log.warning("lease not renewed, retrying: error=%s", problem)
        self._failure = problem

    def _write(self, kind: str) -> LeaseEntry:
        entry = LeaseEntry(kind, self._owner, socket.gethostname(), os.getpid(), self._since)
        try:
            offset, at = self._writer.write(self._settings.lease_topic, entry.encode(), self._owner.encode())
        except KafkaError as error:
            problem = f'the lease of service "{self._settings.service_id}" cannot be written'
            raise KafkaError(problem, detail=error.detail, hint=error.hint) from error
        return replace(entry, offset=offset, at=at)

    def _fold(self, entries: Iterable[LeaseEntry]) -> LeaseEntry | None:
        return fold(entries, self._intervals.duration_ms)

    def _entries(self, last: int) -> Iterable[LeaseEntry]:
        partition = (self._settings.lease_topic, 0)
        start = self._topics.starts([partition])[partition]
        begin = max(start, last - TAIL)
        rows = self._ranges.read({partition: (begin, last + 1)}).select(["offset", "timestamp", "value"]).to_pylist()
        entries = [LeaseEntry(**json.loads(row["value"]), offset=row["offset"], at=row["timestamp"]) for row in rows]
        # What a claim did depends on the entries before it: when these are cut off, start at a beat.
        first = 0 if begin == start else next((at for at, entry in enumerate(entries) if entry.kind == "beat"), 0)
        return entries[first:]


def holders(entries: Iterable[LeaseEntry], duration_ms: int) -> Iterator[LeaseEntry | None]:
    """The holder after each entry, with the time of its last entry."""
    holder: LeaseEntry | None = None
    for entry in entries:
        mine = holder is not None and holder.owner == entry.owner
        if entry.kind == "release":
            holder = None if mine else holder
        elif holder is None or mine or entry.at - holder.at > duration_ms:
            holder = entry
        yield holder


def fold(entries: Iterable[LeaseEntry], duration_ms: int) -> LeaseEntry | None:
    """The holder after all entries."""
    return next(iter(deque(holders(entries, duration_ms), maxlen=1)), None)


def taken(service_id: str, holder: LeaseEntry | None) -> ServiceTaken:
    if holder is None:
        return ServiceTaken(f'another server took service "{service_id}" at the same moment', hint="Start again.")
    since = datetime.fromtimestamp(holder.since / 1000, UTC).isoformat(sep=" ", timespec="seconds")
    return ServiceTaken(
        f'another server runs with service id "{service_id}"',
        detail=f'It is process {holder.pid} on host "{holder.host}", since {since}.',
        hint="Stop it, or give this server another --service-id.",
    )
