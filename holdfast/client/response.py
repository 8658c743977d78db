"""Parses the response of a query incrementally, however its bytes are split."""

import json
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, overload

import orjson

from holdfast.client.errors import BadResponse, server_error
from holdfast.client.values import has_decimal, reader
from holdfast.errors import HoldfastError
from holdfast.runtime.expressions.parse import parse_type
from holdfast.types import SqlType

log = logging.getLogger("holdfast.client")


@dataclass(frozen=True, slots=True)
class Header:
    """The columns of a query, and a notice about the result; of a push query its id and those of what it reads."""

    query: str | None
    names: tuple[str, ...]
    types: tuple[SqlType, ...]
    notice: str | None = None
    objects: str | None = None

    @property
    def is_push(self) -> bool:
        return self.query is not None


class Row(Sequence[Any]):
    """A row of the result. A `tombstone` means that the row of this key was deleted.

    Values are accessed by position (`row[0]`) or by name (`row["CITY"]`, ignoring case unless that is ambiguous).
    """

    __slots__ = ("names", "tombstone", "values")

    def __init__(self, values: tuple[Any, ...], names: tuple[str, ...], *, tombstone: bool = False) -> None:
        self.values, self.names, self.tombstone = values, names, tombstone

    @overload
    def __getitem__(self, index: int | str) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    def __getitem__(self, index: int | str | slice) -> Any:
        return self.values[self._index(index) if isinstance(index, str) else index]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Row):
            return (self.values, self.tombstone) == (other.values, other.tombstone)
        return self.values == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.values)

    def __repr__(self) -> str:
        pairs = ", ".join(f"{name}={value!r}" for name, value in zip(self.names, self.values, strict=True))
        return f"{'Tombstone' if self.tombstone else 'Row'}({pairs})"

    def as_dict(self) -> dict[str, Any]:
        return dict(zip(self.names, self.values, strict=True))

    def _index(self, name: str) -> int:
        if name in self.names:
            return self.names.index(name)
        found = [i for i, known in enumerate(self.names) if known.upper() == name.upper()]
        if len(found) != 1:
            raise KeyError(name)
        return found[0]


@dataclass(frozen=True, slots=True)
class Progress:
    """No change before this time is still to come."""

    time: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All rows that a table had at this time precede it; changes follow."""

    time: int


@dataclass(frozen=True, slots=True)
class Notice:
    """Why nothing more comes for now, or that the result is kept `current` again."""

    message: str
    current: bool


Part = Row | Progress | Snapshot | Notice


def log_notice(notice: Notice) -> None:
    """Log a notice that its reader does not see otherwise."""
    log.log(logging.INFO if notice.current else logging.WARNING, "%s", notice.message)


class ResponseParser:
    """Takes bytes as they arrive and returns complete rows.

    `time` and `snapshot` refer to the rows returned so far: no change before `time` is still to come; `snapshot` is
    the time of their snapshot, once it is complete; `notice` is why nothing more comes for now. An error of the server
    is raised after the rows before it. Objects of other kinds are ignored: a newer server may send them.
    """

    def __init__(self) -> None:
        self.header: Header | None = None
        self.time: int | None = None
        self._pending: list[bytes] = []
        self.snapshot: int | None = None
        self.notice: str | None = None
        self._parts: deque[Part | HoldfastError] = deque()
        self._load: Callable[[bytes], Any] = orjson.loads
        self._readers: list[tuple[int, Callable[[Any], Any]]] = []

    def feed(self, received: bytes) -> None:
        # Split at \n only: strings may contain other characters that Python treats as line breaks.
        first, *rest = received.split(b"\n")
        self._pending.append(first)
        for line in rest:
            self._line(b"".join(self._pending))
            self._pending = [line]

    def end(self) -> None:
        """The response has ended."""
        self._line(b"".join(self._pending))
        self._pending = []
        if self.header is None and not self._parts:
            self._parts.append(BadResponse("the server sent nothing"))

    @property
    def waiting(self) -> bool:
        """Whether a part or an error can be taken."""
        return bool(self._parts)

    def take(self) -> Row | None:
        """The next row; None if no complete one has arrived."""
        while (part := self.take_part()) is not None:
            if isinstance(part, Row):
                return part
            if isinstance(part, Notice):
                log_notice(part)
        return None

    def take_part(self) -> Part | None:
        """The next row, progress, snapshot end or notice; None if no complete one has arrived."""
        if not self._parts:
            return None
        match self._parts.popleft():
            case Row() as row:
                return row
            case Progress(time) as progress:
                self.time = time
                return progress
            case Snapshot(time) as snapshot:
                self.snapshot = time
                return snapshot
            case Notice(message, current) as notice:
                self.notice = None if current else message
                return notice
            case error:
                raise error

    def _line(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            if (part := self._part(line)) is not None:
                self._parts.append(part)
        except HoldfastError as error:
            self._parts.append(error)

    def _part(self, line: bytes) -> Part | None:
        try:
            message = self._load(line)
        except ValueError as cause:
            raise BadResponse("a line of the response is not JSON", detail=f"{cause}: {line[:80]!r}.") from None
        match message:
            case list() if self.header is not None:
                return Row(self._values(message), self.header.names)
            case {"tombstone": list(values)} if self.header is not None:
                return Row(self._values(values), self.header.names, tombstone=True)
            case {"progress": int(time)}:
                return Progress(time)
            case {"snapshot": int(time)}:
                return Snapshot(time)
            case {"notice": str(text), "current": bool(current)}:
                return Notice(text, current)
            case {"columnNames": list(), "columnTypes": list()} if self.header is None:
                self._start(message)
                return None
            case {"message": str()}:
                raise server_error(message)
            case dict() if self.header is not None:
                return None
            case _:
                raise BadResponse("unexpected line in the response", detail=f"It is {line[:80]!r}.")

    def _start(self, message: Mapping[str, Any]) -> None:
        types = tuple(map(parse_type, message["columnTypes"]))
        self.notice = message.get("notice")
        self.header = Header(
            message.get("queryId"), tuple(message["columnNames"]), types, self.notice, message.get("objects")
        )
        self._readers = [(i, read) for i, type_ in enumerate(types) if (read := reader(type_)) is not None]
        if any(map(has_decimal, types)):
            self._load = lambda line: json.loads(line, parse_float=Decimal)

    def _values(self, values: list[Any]) -> tuple[Any, ...]:
        for i, read in self._readers:
            if values[i] is not None:
                values[i] = read(values[i])
        return tuple(values)
