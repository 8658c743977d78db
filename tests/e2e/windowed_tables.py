"""Windows of another application that survive the chain of crashes: a table over a windowed topic, with a retention.

The model has the rules of Kafka Streams' window stores; each key is in one partition.
"""

import struct
from typing import Any

from .rig import CATCH_UP_SECONDS
from .server import Server, wait_for
from .topics import create_topics, producer

Rows = list[list[Any]]

SIZE_MS = 10_000
RETENTION_MS = 60_000
FIRST_MS = 1_700_000_000_000


class WindowedTables:
    """The windows of a table, and a count of windows that another query keeps current, equal the model's."""

    SETUP = """
    CREATE TABLE windows (k STRING PRIMARY KEY, n BIGINT)
      WITH (KAFKA_TOPIC = '{0}_windows', KEY_FORMAT = 'KAFKA', VALUE_FORMAT = 'KAFKA', WINDOW_TYPE = 'TUMBLING',
            WINDOW_SIZE = '10 SECONDS', RETENTION = '60 SECONDS');
    CREATE TABLE windows_by_n AS SELECT n, COUNT(*) AS c FROM windows GROUP BY n;
    """
    ROUNDS = 6
    """Number of restarts after which windows are written; later ones only read."""

    def __init__(self, server: Server) -> None:
        self._server, self._topic = server, f"{server.service_id}_windows"
        self._stores: tuple[dict[tuple[str, int], int], ...] = ({}, {})
        self._observed = [-1, -1]
        self._written = self._rounds = self._expired = 0

    def declare(self) -> None:
        assert self._server.kafka is not None
        create_topics(self._server.kafka, self._topic, partitions=2)
        self._server.sql(self.SETUP.format(self._server.service_id))
        self._write_round()

    def check(self) -> None:
        wait_for("the windows are those of the model", lambda: self._rows() == self._expected(), CATCH_UP_SECONDS)
        wait_for("the windows are counted", lambda: self._counts() == self._expected_counts(), CATCH_UP_SECONDS)
        if self._rounds < self.ROUNDS:
            self._write_round()

    def finish(self) -> None:
        self.check()
        assert self._expired > 50, "windows have expired"
        assert len(self._rows()) > 10, "others have not"

    def _write_round(self) -> None:
        """Windows of nine keys: most advance, some repeat an earlier window, some are long past their retention."""
        assert self._server.kafka is not None
        self._rounds += 1
        plain = producer(self._server.kafka)
        for _ in range(60):
            number = self._written
            self._written += 1
            key, back = f"k{number * 5 % 9}", (0, 0, 1, 3, 9)[number % 5]
            start = FIRST_MS + (number // 6 - back) * SIZE_MS
            value = None if number % 11 == 10 else number % 4
            raw = None if value is None else struct.pack(">q", value)
            partition = int(key[1:]) % 2
            plain.produce(self._topic, raw, key.encode() + struct.pack(">q", start), partition=partition)
            self._put(partition, key, start, value)
        assert plain.flush(60.0) == 0

    def _put(self, partition: int, key: str, start: int, value: int | None) -> None:
        store = self._stores[partition]
        self._observed[partition] = max(self._observed[partition], start)
        bound = self._observed[partition] - RETENTION_MS
        if start > bound and value is not None:
            store[key, start] = value
        elif start > bound:
            store.pop((key, start), None)
        for window in [window for window in store if window[1] <= bound]:
            del store[window]
            self._expired += 1

    def _expected(self) -> Rows:
        found = {window: n for store in self._stores for window, n in store.items()}
        return [[k, start, start + SIZE_MS, n] for (k, start), n in sorted(found.items())]

    def _expected_counts(self) -> Rows:
        counts: dict[int, int] = {}
        for row in self._expected():
            counts[row[3]] = counts.get(row[3], 0) + 1
        return [[n, c] for n, c in sorted(counts.items())]

    def _rows(self) -> Rows:
        return self._server.pull("SELECT k, WINDOWSTART, WINDOWEND, n FROM windows ORDER BY k, WINDOWSTART;")

    def _counts(self) -> Rows:
        return self._server.pull("SELECT n, c FROM windows_by_n ORDER BY n;")
