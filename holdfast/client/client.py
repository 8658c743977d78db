"""A small client of the HTTP server: statements in, entities out, and the rows of queries as they come."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import httpx

from holdfast.errors import HoldfastError, Position

Entity = dict[str, Any]
Properties = Mapping[str, str]

DEFAULT_SERVER = "http://127.0.0.1:8088"
NOTHING: Properties = MappingProxyType({})
CONNECT_SECONDS = 5.0


class ServerError(HoldfastError):
    """What a server answered instead of a result; `entities` are the results of the statements before."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        place = body.get("position")
        super().__init__(
            str(body.get("message", "the server gave no reason")),
            detail=body.get("detail"),
            hint=body.get("hint"),
            position=Position(place["line"], place["column"], place["offset"]) if place else None,
        )
        self.code = int(body.get("error_code", 0))
        self.state: str | None = body.get("sqlstate")
        self.entities: Sequence[Entity] = body.get("entities", ())


class Unreachable(HoldfastError):
    """There is no server, or it went away."""

    sqlstate = "08001"


@dataclass(frozen=True, slots=True)
class Row:
    """A row that is true now. A `tombstone` says that the row of this key no longer is."""

    values: tuple[Any, ...]
    tombstone: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """No change before this time is still to come."""

    time: int


class Answer:
    """A query's columns, and its rows for as long as they come. `id` is None for a pull."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        header = read(next(lines, '{"message": "the server sent nothing"}'))
        self.id: str | None = header["queryId"]
        self.names: Sequence[str] = header["columnNames"]
        self.types: Sequence[str] = header["columnTypes"]
        self.notice: str | None = header.get("notice")
        self._doubles = [i for i, type_ in enumerate(self.types) if type_ == "DOUBLE"]

    def __iter__(self) -> Iterator[Row | Progress]:
        for line in self._lines:
            if not line:
                continue
            match read(line):
                case list(values):
                    yield Row(self._values(values))
                case {"tombstone": values}:
                    yield Row(self._values(values), tombstone=True)
                case {"progress": int(time)}:
                    yield Progress(time)

    def rows(self) -> Iterator[Row]:
        return (part for part in self if isinstance(part, Row))

    def _values(self, values: list[Any]) -> tuple[Any, ...]:
        for i in self._doubles:
            if values[i] is not None:
                values[i] = float(values[i])
        return tuple(values)


def read(line: str) -> Any:
    """One line of an answer; DECIMALs keep their digits."""
    told = json.loads(line, parse_float=Decimal)
    if isinstance(told, dict) and "message" in told:
        raise ServerError(told)
    return told


class Client:
    """A connection to one server. For one thread at a time; `close_query` may come from any."""

    def __init__(self, server: str = DEFAULT_SERVER, *, transport: httpx.BaseTransport | None = None) -> None:
        self.server = server.rstrip("/")
        timeout = httpx.Timeout(None, connect=CONNECT_SECONDS)
        try:
            # A proxy of the environment is for the internet, not for a server whose address was given.
            self._http = httpx.Client(base_url=self.server, timeout=timeout, transport=transport, trust_env=False)
        except httpx.InvalidURL as cause:
            raise Unreachable(f'"{server}" is not the address of a server', detail=f"{cause}.") from None

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def info(self) -> Mapping[str, Any]:
        """What the server is: version, cluster, service id."""
        with self._reaching():
            found: Mapping[str, Any] = checked(self._http.get("/info"))["KsqlServerInfo"]
            return found

    def execute(self, text: str, properties: Properties = NOTHING) -> list[Entity]:
        """Run statements that are not queries; one entity each."""
        with self._reaching():
            told = self._http.post("/ksql", json={"ksql": text, "streamsProperties": dict(properties)})
            entities: list[Entity] = checked(told)
            return entities

    @contextmanager
    def query(self, text: str, properties: Properties = NOTHING, *, progress: bool = False) -> Iterator[Answer]:
        """Ask a SELECT. Leaving the block ends a push query."""
        asked: dict[str, Any] = {"sql": text, "properties": dict(properties)}
        if progress:
            asked["requestProperties"] = {"holdfast.progress": True}
        with self._reaching(), self._http.stream("POST", "/query-stream", json=asked) as response:
            if response.is_error:
                response.read()
                checked(response)
            yield Answer(response.iter_lines())

    def close_query(self, id: str) -> None:
        """End a push query; its rows then end without an error."""
        with self._reaching():
            checked(self._http.post("/close-query", json={"queryId": id}))

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except httpx.UnsupportedProtocol as cause:
            raise Unreachable(f'"{self.server}" is not the address of a server', detail=f"{cause}.") from None
        except httpx.TransportError as cause:
            raise Unreachable(
                f"cannot reach a server at {self.server}",
                detail=f"{str(cause) or type(cause).__name__}.",
                hint="Start one with: holdfast start. Name another with --server.",
            ) from None


def checked(response: httpx.Response) -> Any:
    """The JSON of an answer, or the error that it is."""
    try:
        body = response.json()
    except ValueError:
        raise Unreachable(
            f"{response.url.host}:{response.url.port} does not answer as this kind of server does",
            detail=f"HTTP status {response.status_code}.",
        ) from None
    if response.is_error:
        raise ServerError(body if isinstance(body, dict) else {})
    return body
