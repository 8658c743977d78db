"""Builds the requests of a client and parses the responses. No I/O: shared by both clients."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from typing import Any

import orjson

from holdfast.client.errors import BadResponse, RowRefused, ServerError, Unreachable, server_error
from holdfast.client.values import plain
from holdfast.config import DEFAULT_SERVER
from holdfast.errors import NoTransaction

Entity = dict[str, Any]
Properties = Mapping[str, str]

CLOSE_SECONDS = 5.0
TRANSACTION = "holdfast.transaction"
OBJECTS = "holdfast.objects"
DELIMITED = "application/vnd.ksqlapi.delimited.v1"
ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"
INSERT_ROWS = 1000
"""Rows per insert request. Requests are sent one after the other, so that an endless insert needs bounded memory."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a server; a GET if there is no body."""

    path: str
    body: bytes | None = None
    accept: str = JSON
    seconds: float | None = None
    """Timeout of each read of the response; None for no timeout, as statements may take long."""

    @property
    def method(self) -> str:
        return "GET" if self.body is None else "POST"

    @property
    def headers(self) -> Mapping[str, str]:
        headers = {"accept": self.accept}
        return headers if self.body is None else headers | {"content-type": JSON}


@dataclass(slots=True)
class Session:
    """The state between statements: the properties of SET and the variables of DEFINE."""

    properties: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)

    def statements_request(self, text: str, properties: Properties | None) -> Request:
        body: dict[str, Any] = {"ksql": text, "streamsProperties": self.properties | dict(properties or {})}
        body["sessionVariables"] = self.variables
        return Request("/ksql", orjson.dumps(body))

    def query_request(
        self, text: str, properties: Properties | None, *, progress: bool, accept: str = DELIMITED
    ) -> Request:
        body: dict[str, Any] = {"sql": text, "properties": self.properties | dict(properties or {})}
        body["sessionVariables"] = self.variables
        body["requestProperties"] = {"holdfast.tombstones": True, "holdfast.progress": progress}
        return Request("/query-stream", orjson.dumps(body), accept)

    @property
    def in_transaction(self) -> bool:
        return TRANSACTION in self.properties

    def leave_transaction(self) -> None:
        """Leave the transaction, even if the server cannot be reached."""
        self.properties.pop(TRANSACTION, None)

    def apply_error(self, error: ServerError) -> None:
        """Leave a transaction that does not exist or whose COMMIT failed, as the server has rolled it back."""
        first = next(iter((error.statement or "").upper().split(None, 1)), "")
        if isinstance(error, NoTransaction) or first in ("COMMIT", "ROLLBACK"):
            self.leave_transaction()

    def apply(self, entities: Iterable[Entity]) -> None:
        """Apply SET, UNSET, DEFINE, UNDEFINE, BEGIN and the end of a transaction to the session."""
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
    """Begin a backup, keep it alive, or end it."""
    return Request("/backup", orjson.dumps({"id": id, "end": end}))


# ---- responses


def parse_response(status: int, body: bytes, url: str) -> Any:
    """The JSON of a response; raises if it is an error."""
    try:
        message = orjson.loads(body)
    except ValueError:
        raise BadResponse(
            f"{url} is not a Holdfast server",
            detail=f"HTTP status {status}.",
            hint="Check the address: another service responded.",
        ) from None
    if status >= 400:
        raise server_error(message if isinstance(message, dict) else {})
    return message


def printed_line(line: str) -> str:
    """A line of PRINT; raises if it is the error that ended it."""
    if line.startswith('{"@type":"generic_error"'):
        raise server_error(orjson.loads(line))
    return line


def server_info(message: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = message["KsqlServerInfo"]
    return found


def health_report(status: int, body: bytes, server: str) -> Mapping[str, Any]:
    """The report of a health check; an unhealthy server sends it with status 503."""
    found: Mapping[str, Any] = parse_response(200 if status == 503 else status, body, server)
    return found


def not_an_address(server: str, cause: Exception) -> Unreachable:
    return Unreachable(
        f'"{server}" is not the address of a server', detail=f"{cause}.", hint=f"Write it as {DEFAULT_SERVER}."
    )


def unreachable(server: str, cause: Exception) -> Unreachable:
    return Unreachable(
        f"cannot reach a server at {server}",
        detail=f"{str(cause) or type(cause).__name__}.",
        hint="Start one with: holdfast start, or choose another with --server.",
    )


# ---- inserts

Rows = Iterable[Mapping[str, Any]]


def insert_requests(target: str, rows: Any) -> Iterator[tuple[Request, int]]:
    """Requests that insert rows, and the number of rows in each. Rows are mappings, or anything that Arrow can read."""
    head = orjson.dumps({"target": target})
    remaining = iter(mappings(rows))
    while batch := list(islice(remaining, INSERT_ROWS)):
        body = b"\n".join((head, *map(row_line, batch), b""))
        yield Request("/inserts-stream", body, DELIMITED), len(batch)


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
    raise TypeError(f"{type(value).__name__} is not a SQL value")


def inserted(status: int, body: bytes, server: str, *, sent: int, before: int) -> int:
    """The number of inserted rows; raises the first refused one. Row numbers start at `before`."""
    if status >= 400:
        parse_response(status, body, server)
    accepted = 0
    refused: list[RowRefused] = []
    for line in filter(None, body.split(b"\n")):
        message = orjson.loads(line)
        match message.get("status"):
            case "ok":
                accepted += 1
            case "error":
                refused.append(RowRefused(message, before + int(message.get("seq", accepted))))
            case _:
                raise server_error(message)
    if refused:
        first, *_ = refused
        first.rows = tuple(each.row for each in refused)
        raise first
    if accepted != sent:
        raise BadResponse(
            "the server did not acknowledge every row", detail=f"{sent} were sent, {accepted} acknowledged."
        )
    return accepted
