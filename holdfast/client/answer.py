"""Reads the answer of a query from the bytes in which it comes, however they are cut."""

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, overload

import orjson

from holdfast.client.errors import BadAnswer, server_error
from holdfast.client.values import has_decimal, reader
from holdfast.errors import HoldfastError
from holdfast.runtime.expressions.parse import parse_type
from holdfast.types import SqlType


@dataclass(frozen=True, slots=True)
class Header:
    """What a query gives: its columns, for a push the id to close it by, and what is to be known of the answer."""

    query: str | None
    names: tuple[str, ...]
    types: tuple[SqlType, ...]
    notice: str | None = None

    @property
    def is_push(self) -> bool:
        return self.query is not None


class Row(Sequence[Any]):
    """A row that is true now. A `tombstone` says that the row of this key no longer is.

    Values are found by place (`row[0]`) and by name (`row["CITY"]`, in any case when that is not ambiguous).
    """

    __slots__ = ("names", "tombstone", "values")

    def __init__(self, values: tuple[Any, ...], names: tuple[str, ...], *, tombstone: bool = False) -> None:
        self.values, self.names, self.tombstone = values, names, tombstone

    @overload
    def __getitem__(self, place: int | str) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Any]: ...
    def __getitem__(self, place: int | str | slice) -> Any:
        return self.values[self._place(place) if isinstance(place, str) else place]

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
        told = ", ".join(f"{name}={value!r}" for name, value in zip(self.names, self.values, strict=True))
        return f"{'Tombstone' if self.tombstone else 'Row'}({told})"

    def as_dict(self) -> dict[str, Any]:
        return dict(zip(self.names, self.values, strict=True))

    def _place(self, name: str) -> int:
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
    """The rows before it are all that a table had at this time; those after it are changes."""

    time: int


Part = Row | Progress | Snapshot


class AnswerParser:
    """Give it bytes as they come, and take the rows that are whole.

    `time` belongs to the rows that were taken: no change before it is still to come; `snapshot` is the time of the
    snapshot that they have in them, once that is whole. An error of the server is raised
    in its place, after the rows that came before it.
    """

    def __init__(self) -> None:
        self.header: Header | None = None
        self.time: int | None = None
        self._pending: list[bytes] = []
        self.snapshot: int | None = None
        self._parts: deque[Part | HoldfastError] = deque()
        self._load: Callable[[bytes], Any] = orjson.loads
        self._readers: list[tuple[int, Callable[[Any], Any]]] = []

    def feed(self, received: bytes) -> None:
        # Split at line ends only: texts may hold other characters that Python calls line breaks.
        first, *rest = received.split(b"\n")
        self._pending.append(first)
        for line in rest:
            self._line(b"".join(self._pending))
            self._pending = [line]

    def end(self) -> None:
        """The last byte has come."""
        self._line(b"".join(self._pending))
        self._pending = []
        if self.header is None and not self._parts:
            self._parts.append(BadAnswer("the server sent nothing"))

    @property
    def waiting(self) -> bool:
        """Whether something is there to be taken."""
        return bool(self._parts)

    def take(self) -> Row | None:
        """The next row, None when there is no whole one."""
        while (part := self.take_part()) is not None:
            if isinstance(part, Row):
                return part
        return None

    def take_part(self) -> Part | None:
        """The same with what stands between the rows."""
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
            told = self._load(line)
        except ValueError as cause:
            raise BadAnswer("a line of the answer cannot be read", detail=f"{cause}: {line[:80]!r}.") from None
        match told:
            case list() if self.header is not None:
                return Row(self._values(told), self.header.names)
            case {"tombstone": list(values)} if self.header is not None:
                return Row(self._values(values), self.header.names, tombstone=True)
            case {"progress": int(time)}:
                return Progress(time)
            case {"snapshot": int(time)}:
                return Snapshot(time)
            case {"columnNames": list(), "columnTypes": list()} if self.header is None:
                self._start(told)
                return None
            case {"message": str()}:
                raise server_error(told)
            case _:
                raise BadAnswer("a line of the answer means nothing here", detail=f"It is {line[:80]!r}.")

    def _start(self, told: Mapping[str, Any]) -> None:
        types = tuple(map(parse_type, told["columnTypes"]))
        self.header = Header(told.get("queryId"), tuple(told["columnNames"]), types, told.get("notice"))
        self._readers = [(i, read) for i, type_ in enumerate(types) if (read := reader(type_)) is not None]
        if any(map(has_decimal, types)):
            self._load = lambda line: json.loads(line, parse_float=Decimal)

    def _values(self, values: list[Any]) -> tuple[Any, ...]:
        for i, read in self._readers:
            if values[i] is not None:
                values[i] = read(values[i])
        return tuple(values)
