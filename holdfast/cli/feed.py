"""Sends sample rows to a topic, at a rate or as fast as Kafka takes them."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from holdfast.config import Settings
from holdfast.kafka.publisher import Outgoing
from holdfast.kafka.writer import RecordWriter
from holdfast.names import TopicName
from holdfast.samples.sample import Sample, Supply

MOST_AT_ONCE = 10_000
TURN_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Pace:
    """How many records a second (None: as many as possible), and how many in all (None: no end).

    Records have the time at which they are sent; with `start_ms` they have times of their own, from there on and as
    far apart as the rate says.
    """

    rate: float | None = None
    count: int | None = None
    start_ms: int | None = None

    def due(self, sent: int, seconds: float) -> int:
        """How many records are to be sent now, when so many were in so many seconds."""
        most = MOST_AT_ONCE if self.rate is None else min(MOST_AT_ONCE, int(seconds * self.rate) + 1 - sent)
        return max(0, most if self.count is None else min(most, self.count - sent))

    def timestamps(self, sent: int, count: int, now_ms: int) -> pa.Array:
        if self.start_ms is None:
            return pa.array(np.full(count, now_ms, np.int64))
        apart = 1000.0 / (self.rate or 1000.0)
        return pa.array((self.start_ms + np.arange(sent, sent + count) * apart).astype(np.int64))


class Feed:
    """A supply of rows on its way to a topic. For one thread at a time."""

    def __init__(self, settings: Settings, sample: Sample, topic: TopicName, *, seed: int) -> None:
        self._writer = RecordWriter(settings)
        self._supply = Supply(sample, seed)
        self._topic = topic
        self.sent = 0

    def send(self, count: int, pace: Pace | None = None) -> None:
        """Send rows; they are durable when this returns."""
        rows = self._supply.take(count)
        timestamps = (pace or Pace()).timestamps(self.sent, count, int(time.time() * 1000))
        self._writer.write(Outgoing(self._topic, rows.append_column("timestamp", timestamps)))
        self.sent += count

    def run(self, pace: Pace, stop: threading.Event, told: Callable[[int], None] = lambda _sent: None) -> None:
        """Send at a pace until all are sent or `stop` is set; `told` hears how many, now and then."""
        began, before = time.monotonic(), self.sent
        while pace.count is None or self.sent - before < pace.count:
            if due := pace.due(self.sent - before, time.monotonic() - began):
                self.send(due, pace)
                told(self.sent)
            if stop.wait(0 if pace.rate is None else TURN_SECONDS):
                return

    def close(self) -> None:
        self._writer.close()
