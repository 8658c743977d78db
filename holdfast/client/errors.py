"""What can go wrong between a client and a server.

    HoldfastError
    ├── ServerError         the server refused; also of the class of `holdfast.errors` that has its SQLSTATE
    │   └── RowRefused      a row of an insert
    ├── Unreachable         there is no server, or it went away
    └── BadAnswer           what came back is not an answer of this kind of server

`except UnknownColumn` and `except ServerError` both catch a column that the server does not know.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from holdfast import errors
from holdfast.errors import HoldfastError, Position


class ServerError(HoldfastError):
    """What a server answered instead of a result; `entities` are the results of the statements before."""

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
    """A row that was not inserted. `row` counts from 0; all before it are in.

    Rows are sent some hundreds at a time. `rows` are all that were refused of those sent together with it: the others
    of these are in, and those after them were not sent.
    """

    def __init__(self, body: Mapping[str, Any], row: int) -> None:
        super().__init__(body)
        self.row = row
        self.rows: tuple[int, ...] = (row,)

    def __reduce__(self) -> tuple[Any, ...]:
        return RowRefused, (self.body, self.row), {"rows": self.rows}


class Unreachable(HoldfastError):
    """There is no server, or it went away."""

    sqlstate = "08001"


class BadAnswer(HoldfastError):
    """The answer is not one of this kind of server, or breaks off."""

    sqlstate = "08P01"


def server_error(body: Mapping[str, Any]) -> ServerError:
    """The error of a body, of the class that its SQLSTATE names."""
    return _classes().get(str(body.get("sqlstate")), ServerError)(body)


def position_of(place: Mapping[str, int] | None) -> Position | None:
    return Position(place["line"], place["column"], place["offset"]) if place else None


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
