"""The push queries that are open."""

from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock

import anyio

from holdfast.server.bell import Bell
from holdfast.server.problems import Code, Problem
from holdfast.server.service import Service
from holdfast.serving.results import Push
from holdfast.sql.bound import BoundSelect, BoundSubscribe

READERS = 16
"""Threads that read for push queries; one that waits for rows needs none."""


@dataclass(frozen=True, slots=True)
class OpenPush:
    """A push query and the words that it was asked with."""

    push: Push
    statement: str


class Pushes:
    """All end when the server stops."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._open: dict[str, OpenPush] = {}
        self._starting = 0
        self._lock = Lock()
        self._stopping = False
        self.bell = Bell()
        self.limiter = anyio.CapacityLimiter(READERS)
        self._unlisten = service.listen(self.bell.ring)

    @property
    def stopping(self) -> bool:
        return self._stopping

    def open(self) -> list[OpenPush]:
        return list(self._open.values())

    def start(self, bound: BoundSelect | BoundSubscribe, statement: str, properties: Mapping[str, str]) -> Push:
        if self._stopping:
            raise Problem(Code.SHUTTING_DOWN, "the server is shutting down")
        with self._lock:
            self._check_room()
            self._starting += 1
        try:
            push = self._service.push(bound, properties)
            self._open[push.id] = OpenPush(push, statement)
            return push
        finally:
            with self._lock:
                self._starting -= 1

    def _check_room(self) -> None:
        most = self._service.settings.max_push_queries
        if len(self._open) + self._starting >= most:
            raise Problem(
                Code.TOO_MANY_PUSH_QUERIES,
                f"{most} push queries are open, and there can be no more",
                hint="Close one with /close-query, or its connection; max_push_queries sets how many can be.",
            )

    def find(self, id: str) -> Push | None:
        """The push query of that id, which SQL may have folded to upper case."""
        found = self._open.get(id) or self._open.get(id.upper())
        return found.push if found else None

    def close(self, push: Push) -> None:
        self._open.pop(push.id, None)
        if not self._service.close_push(push.id):
            push.close()

    def close_all(self) -> None:
        self._stopping = True
        for opened in self.open():
            self.close(opened.push)
        self._unlisten()
