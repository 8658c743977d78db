"""Sends sample rows to a topic, at a rate or as fast as possible."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from holdfast.config import Settings
from holdfast.kafka.librdkafka.writer import RecordWriter
from holdfast.kafka.records import Outgoing
from holdfast.names import TopicName
from holdfast.samples.sample import Sample, Supply

MAX_BATCH = 10_000
BATCH_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Pace:
    """Records per second (None: unlimited) and in total (None: endless).

    The timestamp of a record is the time at which it is sent; with `start_ms`, timestamps begin there and are spaced
    by the rate.
    """

    rate: float | None = None
    count: int | None = None
    start_ms: int | None = None

    def due(self, sent: int, seconds: float) -> int:
        """Records due now, after `sent` records in `seconds` seconds."""
        limit = MAX_BATCH if self.rate is None else min(MAX_BATCH, int(seconds * self.rate) + 1 - sent)
        return max(0, limit if self.count is None else min(limit, self.count - sent))

    def timestamps(self, sent: int, count: int, now_ms: int) -> pa.Array:
        if self.start_ms is None:
            return pa.array(np.full(count, now_ms, np.int64))
        interval_ms = 1000.0 / (self.rate or 1000.0)
        return pa.array((self.start_ms + np.arange(sent, sent + count) * interval_ms).astype(np.int64))


class Feed:
    """Sends sample rows to a topic. For one thread at a time."""

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

    def run(self, pace: Pace, stop: threading.Event, report: Callable[[int], None] = lambda _sent: None) -> None:
        """Send at a pace until all are sent or `stop` is set; `report` is called with the number sent so far."""
        began, before = time.monotonic(), self.sent
        while pace.count is None or self.sent - before < pace.count:
            if due := pace.due(self.sent - before, time.monotonic() - began):
                self.send(due, pace)
                report(self.sent)
            if stop.wait(0 if pace.rate is None else BATCH_SECONDS):
                return

    def close(self) -> None:
        self._writer.close()
