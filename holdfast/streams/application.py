"""A running topology: in a service of this process, or on a server."""

import time
from contextlib import ExitStack
from datetime import timedelta
from typing import TYPE_CHECKING, Self, TypeVar

from holdfast.client.client import Client
from holdfast.client.stores.moment import Moment
from holdfast.client.stores.store_type import StoreType, open_store
from holdfast.config import Settings, load
from holdfast.errors import ReadError, TopologyError
from holdfast.names import quote
from holdfast.sql.syntax.statements import ObjectKind
from holdfast.streams.builder import StreamsBuilder
from holdfast.streams.deployment import Deployment, ServerDeployment, deploy
from holdfast.streams.topology import Topology

if TYPE_CHECKING:
    from holdfast.service.service import ServiceApi

S = TypeVar("S")

POLL_SECONDS = 0.05


class Streams:
    """Runs a topology. A restarted application resumes exactly where it stopped.

    Without `server` it starts Spark and the database in this process, with the settings of `holdfast start`; `close`
    stops them. With `server`, an address, a client or a service of this process, the topology runs there, also after
    `close`.
    """

    def __init__(
        self,
        topology: StreamsBuilder | Topology,
        settings: Settings | None = None,
        *,
        server: "str | Client | ServiceApi | None" = None,
    ) -> None:
        if settings is not None and server is not None:
            raise TopologyError(
                "settings are those of a database in this process, but the server has its own",
                hint="Give either settings or server.",
            )
        self.topology = topology.build() if isinstance(topology, StreamsBuilder) else topology
        self._settings, self._server = settings, server
        self._open = ExitStack()
        self._deployment: Deployment | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_running(self) -> bool:
        return self._deployment is not None

    def start(self) -> Self:
        """Start the topology; returns when all of its objects exist. Its tables may still be reading their topics."""
        if self._deployment is not None:
            return self
        with ExitStack() as started:
            deployment = self._connect(started)
            deploy(self.topology, deployment)
            self._open = started.pop_all()
        self._deployment = deployment
        return self

    def close(self) -> None:
        """Stop the database of this process, or disconnect from the server. Nothing is lost."""
        self._deployment = None
        self._open.close()

    def store(self, name: str, type_: StoreType[S], *, as_of: Moment | None = None) -> S:
        """A named table as a read-only store: `streams.store("counts", window_store())`."""
        return open_store(self._running.reader, name, type_, as_of)

    @property
    def _running(self) -> Deployment:
        if self._deployment is None:
            raise TopologyError("the application is not running", hint="Call start() first.")
        return self._deployment

    def wait_until_readable(self, timeout: timedelta = timedelta(minutes=1)) -> Self:
        """Wait until each table has read its topics and can be queried; raises the `ReadError` of one that cannot."""
        reader, deadline = self._running.reader, time.monotonic() + timeout.total_seconds()
        for node in self.topology.created:
            while node.kind is ObjectKind.TABLE:
                try:
                    reader.rows(f"SELECT * FROM {quote(node.name)} LIMIT 0;").close()
                    break
                except ReadError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(POLL_SECONDS)
        return self

    def _connect(self, started: ExitStack) -> Deployment:
        """Connect to the server, or start a service; `started` ends that."""
        match self._server:
            case str(address):
                return ServerDeployment(started.enter_context(Client(address)))
            case Client() as client:
                return ServerDeployment(client)
        # Importing Spark takes a second, which a client of a server does not need.
        from holdfast.app import start_service
        from holdfast.streams.embedded import EmbeddedDeployment

        if self._server is not None:
            return EmbeddedDeployment(self._server)
        service = start_service(self._settings or load())
        started.callback(service.stop)
        return EmbeddedDeployment(service)
