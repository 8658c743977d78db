"""What a client sends and how it reads what comes back; no I/O, so that two transports can share it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from typing import Any

import orjson

from holdfast.client.errors import BadAnswer, RowRefused, ServerError, Unreachable, server_error
from holdfast.client.values import plain
from holdfast.config import DEFAULT_SERVER
from holdfast.errors import NoTransaction

Entity = dict[str, Any]
Properties = Mapping[str, str]

CLOSE_SECONDS = 5.0
TRANSACTION = "holdfast.transaction"
DELIMITED = "application/vnd.ksqlapi.delimited.v1"
JSON = "application/json"
INSERT_ROWS = 1000
"""Rows of one insert request: each is answered before the next is sent, so an endless insert needs bounded memory."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a server; a GET when there is no body."""

    path: str
    body: bytes | None = None
    accept: str = JSON
    seconds: float | None = None
    """How long to wait for each part of the answer; None waits for ever, as statements may take long."""

    @property
    def method(self) -> str:
        return "GET" if self.body is None else "POST"

    @property
    def headers(self) -> Mapping[str, str]:
        sent = {"accept": self.accept}
        return sent if self.body is None else sent | {"content-type": JSON}


@dataclass(slots=True)
class Session:
    """What holds from one statement to the next: the properties of SET and the variables of DEFINE."""

    properties: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)

    def statements(self, text: str, properties: Properties | None) -> Request:
        body: dict[str, Any] = {"ksql": text, "streamsProperties": self.properties | dict(properties or {})}
        body["sessionVariables"] = self.variables
        return Request("/ksql", orjson.dumps(body))

    def question(self, text: str, properties: Properties | None, *, progress: bool) -> Request:
        body: dict[str, Any] = {"sql": text, "properties": self.properties | dict(properties or {})}
        body["sessionVariables"] = self.variables
        body["requestProperties"] = {"holdfast.tombstones": True, "holdfast.progress": progress}
        return Request("/query-stream", orjson.dumps(body), DELIMITED)

    def leave(self) -> None:
        """Be in no transaction, also when the server could not be told."""
        self.properties.pop(TRANSACTION, None)

    def note_refusal(self, error: ServerError) -> None:
        """Be in no transaction that is not there, or that the server could not commit: it has rolled it back."""
        first = next(iter((error.statement or "").upper().split(None, 1)), "")
        if isinstance(error, NoTransaction) or first in ("COMMIT", "ROLLBACK"):
            self.leave()

    def carry(self, entities: Iterable[Entity]) -> None:
        """Keep what SET, DEFINE and their opposites did for the statements to come."""
        for entity in entities:
            first = next(iter(str(entity.get("statementText", "")).upper().split(None, 1)), "")
            match entity.get("@type"):
                case "properties" if first in ("SET", "UNSET"):
                    self.properties = {each["name"]: each["value"] for each in entity["properties"]}
                case "transaction":
                    self.properties.pop(entity["property"], None)
                    if entity["state"] == "OPEN":
                        self.properties[entity["property"]] = entity["transactionId"]
                case "variables" if first in ("DEFINE", "UNDEFINE"):
                    self.variables = {each["name"]: each["value"] for each in entity["variables"]}


INFO = Request("/info")
HEALTH = Request("/healthcheck")


def close_query(id: str) -> Request:
    return Request("/close-query", orjson.dumps({"queryId": id}), seconds=CLOSE_SECONDS)


def backup_request(id: str | None = None, *, end: bool = False) -> Request:
    """Begins a backup, or keeps one going, or ends it."""
    return Request("/backup", orjson.dumps({"id": id, "end": end}))


# ---- answers


def answered(status: int, body: bytes, url: str) -> Any:
    """The JSON of an answer, or the error that it is."""
    try:
        told = orjson.loads(body)
    except ValueError:
        raise BadAnswer(
            f"{url} does not answer as this kind of server does",
            detail=f"HTTP status {status}.",
            hint="Is another kind of server at this address?",
        ) from None
    if status >= 400:
        raise server_error(told if isinstance(told, dict) else {})
    return told


def printed_line(line: str) -> str:
    """A line of PRINT, or the error that ended it."""
    if line.startswith('{"@type":"generic_error"'):
        raise server_error(orjson.loads(line))
    return line


def server_info(told: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = told["KsqlServerInfo"]
    return found


def healthy(status: int, body: bytes, server: str) -> Mapping[str, Any]:
    """The report of a health check; that of a server that is ill comes with status 503."""
    found: Mapping[str, Any] = answered(200 if status == 503 else status, body, server)
    return found


def not_an_address(server: str, cause: Exception) -> Unreachable:
    return Unreachable(
        f'"{server}" is not the address of a server', detail=f"{cause}.", hint=f"Write it as {DEFAULT_SERVER}."
    )


def unreachable(server: str, cause: Exception) -> Unreachable:
    return Unreachable(
        f"cannot reach a server at {server}",
        detail=f"{str(cause) or type(cause).__name__}.",
        hint="Start one with: holdfast start. Name another with --server.",
    )


# ---- inserts

Rows = Iterable[Mapping[str, Any]]


def insert_requests(target: str, rows: Any) -> Iterator[tuple[Request, int]]:
    """Requests that insert rows, and how many each has. Rows are mappings, or anything that Arrow can read."""
    head = orjson.dumps({"target": target})
    left = iter(mappings(rows))
    while part := list(islice(left, INSERT_ROWS)):
        body = b"\n".join((head, *map(row_line, part), b""))
        yield Request("/inserts-stream", body, DELIMITED), len(part)


def mappings(rows: Any) -> Rows:
    """The rows of a data frame, an Arrow table or a list of mappings."""
    if hasattr(rows, "__arrow_c_stream__"):
        import pyarrow as pa

        table = pa.table(rows)
        return (row for batch in table.to_batches(max_chunksize=INSERT_ROWS) for row in batch.to_pylist())
    if isinstance(rows, Mapping):
        return [rows]
    found: Rows = rows
    return found


def row_line(row: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(plain(row), default=fragment)
    except TypeError as cause:
        raise TypeError(f"a row cannot be sent: {cause}") from None


def fragment(value: Any) -> Any:
    if isinstance(value, Decimal):
        return orjson.Fragment(format(value, "f"))
    raise TypeError(f"{type(value).__name__} is not a value of SQL")


def inserted(status: int, body: bytes, server: str, *, sent: int, before: int) -> int:
    """How many rows the server took; the first that it refused is raised, by its number among all that were sent."""
    if status >= 400:
        answered(status, body, server)
    taken = 0
    refused: list[RowRefused] = []
    for line in filter(None, body.split(b"\n")):
        told = orjson.loads(line)
        match told.get("status"):
            case "ok":
                taken += 1
            case "error":
                refused.append(RowRefused(told, before + int(told.get("seq", taken))))
            case _:
                raise server_error(told)
    if refused:
        first, *_ = refused
        first.rows = tuple(each.row for each in refused)
        raise first
    if taken != sent:
        raise BadAnswer("the server did not answer for every row", detail=f"{sent} were sent, {taken} answered.")
    return taken
