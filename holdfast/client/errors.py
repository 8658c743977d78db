"""Errors of the client.

    HoldfastError
    ├── ServerError         the server sent an error; also of the class of `holdfast.errors` with its SQLSTATE
    │   └── RowRefused      the server refused a row of an insert
    ├── Unreachable         no server responds, or the connection broke
    └── BadResponse           the response is not one of a Holdfast server, or incomplete

`except UnknownColumn` and `except ServerError` both catch a column that the server does not know.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from holdfast import errors
from holdfast.errors import HoldfastError, Position


class ServerError(HoldfastError):
    """An error of the server; `entities` has the results of the statements before the failed one."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        HoldfastError.__init__(
            self,
            str(body.get("message") or "the server gave no reason"),
            detail=body.get("detail"),
            hint=body.get("hint"),
            position=position_of(body.get("position")),
        )
        self.body = body
        self.code = int(body.get("error_code", 0))
        self.statement: str | None = body.get("statementText")
        self.entities: Sequence[Mapping[str, Any]] = body.get("entities", ())
        self.sqlstate = str(body.get("sqlstate") or self.sqlstate)

    def __reduce__(self) -> tuple[Any, ...]:
        return server_error, (self.body,)


class RowRefused(ServerError):
    """A row was not inserted. `row` is its number, from 0; all rows before it were inserted.

    Rows are sent in batches. `rows` has all refused rows of the same batch; its other rows were inserted, and later
    batches were not sent.
    """

    def __init__(self, body: Mapping[str, Any], row: int) -> None:
        super().__init__(body)
        self.row = row
        self.rows: tuple[int, ...] = (row,)

    def __reduce__(self) -> tuple[Any, ...]:
        return RowRefused, (self.body, self.row), {"rows": self.rows}


class Unreachable(HoldfastError):
    """No server responds, or the connection broke."""

    sqlstate = "08001"


class BadResponse(HoldfastError):
    """The response is not one of a Holdfast server, or incomplete."""

    sqlstate = "08P01"


def server_error(body: Mapping[str, Any]) -> ServerError:
    """The error in a response body, of the class for its SQLSTATE."""
    return _classes().get(str(body.get("sqlstate")), ServerError)(body)


def position_of(body: Mapping[str, int] | None) -> Position | None:
    return Position(body["line"], body["column"], body["offset"]) if body else None


@cache
def _classes() -> Mapping[str, type[ServerError]]:
    found: dict[str, type[ServerError]] = {}
    for known in _tree(HoldfastError):
        # The first class of a SQLSTATE, in the order of the tree, is its most general one.
        if known.__module__ == errors.__name__ and known.sqlstate not in found:
            found[known.sqlstate] = type(known.__name__, (ServerError, known), {"__doc__": known.__doc__})
    return found


def _tree(root: type[HoldfastError]) -> Iterator[type[HoldfastError]]:
    for child in root.__subclasses__():
        yield child
        yield from _tree(child)
