"""Reads tables of a server with the Python client."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any, Protocol

from holdfast.client.entities import Entities
from holdfast.client.response import Row
from holdfast.client.session import Properties, Request, Session
from holdfast.client.stores.port import StoreSchema
from holdfast.errors import HoldfastError, WrongObjectKind
from holdfast.names import quote


class StoreClient(Protocol):
    """What a store needs of a client."""

    @property
    def session(self) -> Session: ...

    def execute(self, text: str) -> Entities: ...

    def stream(self, text: str, properties: Properties | None) -> AbstractContextManager[Iterator[Row]]: ...

    def send(self, request: Request) -> Any: ...


class ClientReader:
    """Reads tables over HTTP; rows are read from the connection as they are used."""

    def __init__(self, client: StoreClient, properties: Properties | None = None) -> None:
        self._client, self._properties = client, properties

    def schema(self, name: str) -> StoreSchema:
        (entity,) = self._client.execute(f"DESCRIBE {quote(name)};")
        described = entity["sourceDescription"]
        if described["type"] == "STREAM":
            raise not_a_store(name)
        names = [(field["name"], field.get("type")) for field in described["fields"]]
        key = tuple(name for name, role in names if role == "KEY")
        return StoreSchema(name, key, tuple(n for n, role in names if role != "KEY"), described["windowType"])

    def rows(self, sql: str) -> "HttpRows":
        return HttpRows(self._client, sql, self._properties)

    @contextmanager
    def at_one_time(self) -> Iterator["ClientReader"]:
        """In a transaction of its own, unless the client is in one."""
        session = self._client.session
        if session.in_transaction:
            yield self
            return
        (opened,) = self._client.send(session.statements_request("BEGIN READ ONLY;", None))
        properties = {opened["property"]: opened["transactionId"]}
        try:
            yield ClientReader(self._client, properties)
        finally:
            # One that timed out has ended.
            with suppress(HoldfastError):
                self._client.send(session.statements_request("ROLLBACK;", properties))


class HttpRows:
    """The rows of a query as they arrive."""

    def __init__(self, client: StoreClient, sql: str, properties: Properties | None) -> None:
        self._open = ExitStack()
        self._stream = self._open.enter_context(client.stream(sql, properties))

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
