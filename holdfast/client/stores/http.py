"""Reads tables of a server with the Python client."""

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from holdfast.client.stores.port import StoreSchema
from holdfast.errors import WrongObjectKind
from holdfast.names import quote

if TYPE_CHECKING:
    from holdfast.client.client import Client


class ClientReader:
    """Reads tables over HTTP; rows are read from the connection as they are used."""

    def __init__(self, client: "Client") -> None:
        self._client = client

    def schema(self, name: str) -> StoreSchema:
        (entity,) = self._client.execute(f"DESCRIBE {quote(name)};")
        described = entity["sourceDescription"]
        if described["type"] == "STREAM":
            raise not_a_store(name)
        names = [(field["name"], field.get("type")) for field in described["fields"]]
        key = tuple(name for name, role in names if role == "KEY")
        return StoreSchema(name, key, tuple(n for n, role in names if role != "KEY"), described["windowType"])

    def rows(self, sql: str) -> "HttpRows":
        return HttpRows(self._client, sql)


class HttpRows:
    """The rows of a query as they arrive."""

    def __init__(self, client: "Client", sql: str) -> None:
        self._open = ExitStack()
        self._stream = self._open.enter_context(client.stream(sql))

    def __iter__(self) -> "HttpRows":
        return self

    def __next__(self) -> tuple[Any, ...]:
        return next(self._stream).values

    def close(self) -> None:
        self._open.close()


def not_a_store(name: str) -> WrongObjectKind:
    return WrongObjectKind(
        f'"{name}" is a stream, not a store',
        detail="A stream has no current rows.",
        hint="Aggregate it into a table, and read that.",
    )
