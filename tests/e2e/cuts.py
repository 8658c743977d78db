"""Connections that break at critical points: within a snapshot, and between changes and their progress."""

import random
from collections.abc import Iterator
from threading import Lock

import httpx


class Cuts:
    """Counts the cuts of each kind, over all connections."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.in_snapshot = 0
        self.before_progress = 0
        self.enabled = True

    def count(self, *, snapshot: bool) -> None:
        with self._lock:
            if snapshot:
                self.in_snapshot += 1
            else:
                self.before_progress += 1


class CuttingTransport(httpx.BaseTransport):
    """A transport whose responses of /query-stream may break off."""

    def __init__(self, cuts: Cuts, seed: int, chance: float) -> None:
        self._inner = httpx.HTTPTransport()
        self._cuts, self._random, self._chance = cuts, random.Random(seed), chance

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self._inner.handle_request(request)
        if request.url.path != "/query-stream" or response.status_code != 200:
            return response
        with_snapshot = b"SNAPSHOT = false" not in request.content
        stream = Breaking(response.stream, self._cuts, self._random, self._chance, snapshot=with_snapshot)
        return httpx.Response(200, headers=response.headers, stream=stream)

    def close(self) -> None:
        self._inner.close()


class Breaking(httpx.SyncByteStream):
    """Reads lines as they arrive, and may break off after a row before its progress or snapshot end."""

    def __init__(
        self, inner: httpx.SyncByteStream, cuts: Cuts, chances: random.Random, chance: float, *, snapshot: bool
    ) -> None:
        self._inner, self._cuts, self._random, self._chance = inner, cuts, chances, chance
        self._in_snapshot = snapshot

    def __iter__(self) -> Iterator[bytes]:
        rest = b""
        for content in self._inner:
            *lines, rest = (rest + content).split(b"\n")
            for number, line in enumerate(lines):
                if line.startswith(b'{"snapshot"'):
                    self._in_snapshot = False
                # Snapshots have many lines, changes few.
                chance = self._chance / 100 if self._in_snapshot else self._chance
                is_row = line.startswith((b"[", b'{"tombstone"'))
                ends = number + 1 == len(lines) or lines[number + 1].startswith(b'{"progress"')
                if self._cuts.enabled and is_row and (ends or self._in_snapshot) and self._random.random() < chance:
                    yield b"\n".join(lines[: number + 1]) + b"\n"
                    self._cuts.count(snapshot=self._in_snapshot)
                    raise httpx.ReadError("the test has cut the connection")
            if lines:
                yield b"\n".join(lines) + b"\n"
        yield rest

    def close(self) -> None:
        self._inner.close()
