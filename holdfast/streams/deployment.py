"""Where a topology runs, and how its statements are applied there."""

import logging
from collections.abc import Iterable, Mapping
from typing import Protocol

from holdfast.client.client import Client
from holdfast.client.entities import warnings
from holdfast.client.stores.http import ClientReader
from holdfast.client.stores.port import StoreReader
from holdfast.errors import UnknownObject
from holdfast.names import quote
from holdfast.streams.nodes import TopologyStatement
from holdfast.streams.topology import Topology

log = logging.getLogger("holdfast.streams")

CREATE, REPLACE = "CREATE ", "CREATE OR REPLACE "


class Deployment(Protocol):
    """A running database: in this process or behind HTTP."""

    @property
    def reader(self) -> StoreReader: ...

    def definition(self, name: str) -> str | None:
        """The statement that created an object; None if there is no such object."""
        ...

    def execute(self, text: str, properties: Mapping[str, str]) -> None: ...


def deploy(topology: Topology, to: Deployment) -> None:
    """Create what does not exist, and replace what has another definition; unchanged objects keep running."""
    for statement in topology.statements:
        text = _text(statement, to)
        if text is not None:
            log.info("deploying: statement=%s", text)
            to.execute(text, statement.properties)


def log_notices(notices: Iterable[str]) -> None:
    """Log the warnings of a successful statement."""
    for notice in notices:
        log.warning("notice: %s", notice)


def _text(statement: TopologyStatement, to: Deployment) -> str | None:
    """The statement to run; None if the object is as the statement says."""
    existing = to.definition(statement.name) if statement.name is not None else None
    if existing is None:
        return statement.text
    replacing = statement.text.replace(CREATE, REPLACE, 1)
    same = existing.rstrip("; \n") in (statement.text.rstrip(";"), replacing.rstrip(";"))
    return None if same else replacing


class ServerDeployment:
    """A server, reached by the Python client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.reader: StoreReader = ClientReader(client)

    def definition(self, name: str) -> str | None:
        try:
            (entity,) = self._client.execute(f"DESCRIBE {quote(name)} EXTENDED;")
        except UnknownObject:
            return None
        return str(entity["sourceDescription"]["statement"])

    def execute(self, text: str, properties: Mapping[str, str]) -> None:
        for entity in self._client.execute(text, properties):
            log_notices(warnings(entity))
