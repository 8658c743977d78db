"""Limits how many push queries read one topic at a time: one that Kafka is slow to send must not hold up the others.

A push query that may not read now has nothing yet: it holds no thread, keeps its position, and is woken to try again.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from holdfast.kafka.port import TopicSilent
from holdfast.names import TopicName
from holdfast.wall_clock import WallClock

log = logging.getLogger(__name__)

READS = 2
"""Of one topic at a time. While Kafka sends nothing of it, one."""
FIRST_SECONDS, LONGEST_SECONDS = 2.0, 30.0
"""How long a read waits for records: twice as long after each that brought none."""
PAUSE_SECONDS = 1.0
"""After a read that brought none."""
NOTICE_SECONDS = 60.0
"""How long after a read that brought none the topic is reported."""


@dataclass(slots=True)
class _Reads:
    """The reads of one topic, and how many before them brought nothing."""

    running: int = 0
    silent: int = 0
    retry_at: float = 0.0
    is_awaited: bool = False
    """Whether a push query was refused meanwhile."""
    problem: str | None = None

    @property
    def is_full(self) -> bool:
        return self.running >= (1 if self.silent else READS)


class TopicReads:
    """The reads of topics by push queries. Thread-safe; never waits."""

    def __init__(self, clock: WallClock, notify: Callable[[], None]) -> None:
        """`notify` wakes the push queries that may read now."""
        self._clock, self._notify = clock, notify
        self._lock = Lock()
        self._topics: dict[TopicName, _Reads] = {}

    def may_start(self, topic: TopicName) -> bool:
        """Whether a read of the topic may start now."""
        with self._lock:
            reads = self._topics.get(topic)
            return reads is None or not (reads.is_full or self._clock.monotonic() < reads.retry_at)

    def seconds_to_wait(self, topic: TopicName) -> float:
        """After how many seconds a read may start, unless others are running then."""
        with self._lock:
            reads = self._topics.get(topic)
            return 0.0 if reads is None else max(0.0, reads.retry_at - self._clock.monotonic())

    def timeout(self, topic: TopicName) -> float:
        """How many seconds a read of the topic waits for records."""
        with self._lock:
            silent = self._topics[topic].silent if topic in self._topics else 0
        return min(FIRST_SECONDS * 2.0 ** min(silent, 10), LONGEST_SECONDS)

    @property
    def notice(self) -> str | None:
        """The topics of which Kafka sends nothing, and why."""
        now = self._clock.monotonic()
        with self._lock:
            # Without readers, nobody finds out that Kafka sends it again.
            recent = [reads for reads in self._topics.values() if now < reads.retry_at + NOTICE_SECONDS]
            found = sorted(reads.problem for reads in recent if reads.problem)
        return "\n".join(f"push queries wait: {problem}" for problem in found) or None

    @contextmanager
    def turn(self, topic: TopicName) -> Iterator[bool]:
        """Read the topic within the block, if it yields True. A `TopicSilent` ends the block."""
        with self._lock:
            reads = self._topics.setdefault(topic, _Reads())
            may_start = not (reads.is_full or self._clock.monotonic() < reads.retry_at)
            reads.running += may_start
            reads.is_awaited |= not may_start
            silent = reads.silent
        if not may_start:
            yield False
            return
        try:
            yield True
        except TopicSilent as problem:
            self._end(topic, reads, problem, silent + 1)
        except BaseException:
            self._end(topic, reads, None, silent)
            raise
        else:
            self._end(topic, reads, None, 0)

    def _end(self, topic: TopicName, reads: _Reads, problem: TopicSilent | None, silent: int) -> None:
        with self._lock:
            if problem is not None and reads.problem is None:
                log.warning("push queries wait: topic=%s problem=%s", topic, problem)
            reads.running, reads.silent = reads.running - 1, silent
            if problem is not None:
                reads.problem, reads.retry_at = str(problem), self._clock.monotonic() + PAUSE_SECONDS
            elif silent == 0:
                reads.problem, reads.retry_at = None, 0.0
            is_awaited, reads.is_awaited = reads.is_awaited, False
            if reads == _Reads():
                del self._topics[topic]
        if is_awaited:
            self._notify()
