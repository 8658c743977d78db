"""Starts, lists and closes push queries."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock

from holdfast.catalog.current import CurrentCatalog
from holdfast.catalog.objects import CatalogObject, Stream
from holdfast.coordinator.holds import Holds
from holdfast.errors import HoldfastError, NotSupported
from holdfast.serving.push.emit import StreamPush, TablePush
from holdfast.serving.push.lag_watch import SubscriptionInfo, subscription_infos
from holdfast.serving.push.query import PushQuery
from holdfast.serving.push.read_objects import ReadObjects
from holdfast.serving.push.row_reader import RowReader
from holdfast.serving.push.stream_reader import StreamReader
from holdfast.serving.push.subscribe import QuerySubscription, TableSubscription
from holdfast.serving.time.read_times import Times
from holdfast.serving.wakeup import Wakeup
from holdfast.sql.literals.moment import BoundAsOf, Moment
from holdfast.sql.properties.session import OBJECTS
from holdfast.sql.read.select import BoundSelect, SelectKind
from holdfast.sql.read.subscribe import BoundSubscribe
from holdfast.wall_clock import WallClock


class TooManyPushQueries(NotSupported):
    """The limit of open push queries has been reached."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"too many open push queries: the limit is {limit}",
            hint="Close one with /close-query or by closing its connection, or raise max_push_queries.",
        )


@dataclass(frozen=True, slots=True)
class OpenPush:
    """An open push query and the text of its statement."""

    push: PushQuery
    statement: str


class PushRegistry:
    """The open push queries, at most `limit` of them. Thread-safe."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = Lock()
        """Protects `_open` and `_starting`."""
        self._open: dict[str, OpenPush] = {}
        self._starting = 0

    def start(self, start: Callable[[], PushQuery], statement: str) -> PushQuery:
        """Start and register a push query. Raises without calling `start` if the limit has been reached."""
        with self._lock:
            if len(self._open) + self._starting >= self._limit:
                raise TooManyPushQueries(self._limit)
            self._starting += 1
        started: PushQuery | None = None
        try:
            started = start()
            return started
        finally:
            with self._lock:
                self._starting -= 1
                if started is not None:
                    self._open[started.id] = OpenPush(started, statement)

    def all(self) -> list[OpenPush]:
        with self._lock:
            return list(self._open.values())

    def pushes(self) -> list[PushQuery]:
        return [each.push for each in self.all()]

    def find(self, id_: str) -> PushQuery | None:
        """The push query with this id, which SQL may have folded to upper case."""
        with self._lock:
            found = self._open.get(id_) or self._open.get(id_.upper())
        return found.push if found is not None else None

    def remove(self, id_: str) -> PushQuery | None:
        with self._lock:
            found = self._open.pop(id_, None)
        return found.push if found is not None else None


class PushQueries:
    """Starts and closes push queries. Thread-safe."""

    def __init__(
        self,
        registry: PushRegistry,
        catalog: CurrentCatalog,
        rows: RowReader,
        streams: StreamReader,
        times: Times,
        holds: Holds,
        wakeup: Wakeup,
        clock: WallClock,
    ) -> None:
        self._registry, self._catalog, self._rows, self._streams = registry, catalog, rows, streams
        self._times, self._holds, self._wakeup, self._clock = times, holds, wakeup, clock

    def start(
        self, bound: BoundSelect | BoundSubscribe, properties: Mapping[str, str], statement: str = ""
    ) -> PushQuery:
        """Start a push query; it runs until it is closed."""
        earliest = properties.get("auto.offset.reset", "latest").lower() == "earliest"
        objects = ReadObjects(_read_by(bound), self._catalog, bound.views if isinstance(bound, BoundSubscribe) else ())
        if OBJECTS in properties:
            objects.check_resumes(properties[OBJECTS])

        def start() -> PushQuery:
            try:
                return self._start(bound, objects, earliest=earliest)
            except HoldfastError:
                objects.check()  # the reason may be that an object is gone
                raise

        return self._registry.start(start, statement)

    def _start(self, bound: BoundSelect | BoundSubscribe, objects: ReadObjects, *, earliest: bool) -> PushQuery:
        if isinstance(bound, BoundSubscribe):
            if bound.hold is not None:
                bound = replace(bound, as_of=BoundAsOf(Moment(self._holds.at(bound.hold))))
            subscription = TableSubscription if isinstance(bound.select, BoundSelect) else QuerySubscription
            return subscription(bound, objects, self._rows, self._times, self._wakeup, self._clock)
        if isinstance(bound.relation, Stream):
            start = self._streams.start(bound.relation, earliest=earliest)
            return StreamPush(bound, objects, self._streams, self._rows, self._wakeup, self._clock, start=start)
        all_ = bound.kind is SelectKind.ALL
        return TablePush(
            bound, objects, self._rows, self._times, self._wakeup, self._clock, snapshot=earliest or all_, marked=all_
        )

    def open(self) -> list[OpenPush]:
        return self._registry.all()

    def find(self, id_: str) -> PushQuery | None:
        """The push query with this id, ignoring case."""
        return self._registry.find(id_)

    def close(self, id_: str) -> bool:
        """End a push query; False if there is none with this id."""
        found = self._registry.remove(id_)
        if found is not None:
            found.close()
        return found is not None

    def close_all(self) -> None:
        for push in self._registry.pushes():
            self.close(push.id)

    def subscriptions(self) -> list[SubscriptionInfo]:
        """The open push queries and their metrics."""
        return subscription_infos(self._registry.pushes(), self._times.now())

    @property
    def wakeup(self) -> Wakeup:
        """Notified whenever push queries may have rows."""
        return self._wakeup


def _read_by(bound: BoundSelect | BoundSubscribe) -> Sequence[CatalogObject]:
    """The streams and tables that a push query reads."""
    select = bound.select if isinstance(bound, BoundSubscribe) else bound
    return [select.relation] if isinstance(select, BoundSelect) else select.tables
