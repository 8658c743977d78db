"""A database in this process."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.client.stores.port import StoreReader
from holdfast.sql.syntax.parse import statements
from holdfast.streams.deployment import log_notices
from holdfast.streams.service_reader import ServiceReader

if TYPE_CHECKING:
    from holdfast.service.service import ServiceApi


class EmbeddedDeployment:
    """A service in this process."""

    def __init__(self, service: "ServiceApi") -> None:
        self._service = service
        self.reader: StoreReader = ServiceReader(service)

    def definition(self, name: str) -> str | None:
        found = self._service.catalog.find(name)
        return found.statement if found is not None else None

    def execute(self, text: str, properties: Mapping[str, str]) -> None:
        for parsed in statements(text, lambda: self._service.catalog.types):
            log_notices(self._service.execute(parsed, properties).notices)
