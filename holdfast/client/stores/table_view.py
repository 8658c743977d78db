"""A table as the stores read it: its pull queries, and its rows as keys and values."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Generic, Self, TypeVar

from holdfast.client.stores.entries import StoreIterator
from holdfast.client.stores.literals import constant
from holdfast.client.stores.moment import Moment, millis
from holdfast.client.stores.pages import OrderedQuery, PagedRows
from holdfast.client.stores.port import StoreReader, StoreSchema
from holdfast.client.stores.windowed import Window, Windowed
from holdfast.errors import NotSupported, TypeMismatch
from holdfast.names import quote

K = TypeVar("K")
V = TypeVar("V")
E = TypeVar("E")

log = logging.getLogger("holdfast.client")

INVALID_RANGE = (
    "empty range: store=%s from=%r to=%r; the first key is greater than the last, "
    "or keys of this type are not ordered as expected"
)


@dataclass(frozen=True, slots=True)
class TableView(Generic[K, V]):
    """The rows of a table, at the latest time or as of one. `value_type` is the class that values are made of."""

    reader: StoreReader
    schema: StoreSchema
    value_type: Any = None
    at: int | None = None

    def as_of(self, moment: Moment | None) -> Self:
        return replace(self, at=None if moment is None else millis(moment))

    # -- queries

    def entries(
        self,
        conditions: Iterable[str],
        order: Iterable[str],
        entry: Callable[[tuple[Any, ...]], E],
        *,
        backward: bool = False,
    ) -> StoreIterator[E]:
        """The rows that satisfy all conditions, in the order of columns that together are unique among them."""
        return StoreIterator(PagedRows(self.reader, self._query(conditions, order, backward=backward)), entry)

    def first(self, conditions: Iterable[str]) -> V | None:
        """The value of the only row that satisfies the conditions; None if there is none."""
        text = self._query(conditions, ()).text(None)
        with StoreIterator(self.reader.rows(text), self.value) as found:
            return next(found, None)

    def _query(self, conditions: Iterable[str], order: Iterable[str], *, backward: bool = False) -> OrderedQuery:
        columns = self._columns
        select = f"SELECT {', '.join(columns)} FROM {quote(self.schema.name)}"
        ordered = tuple((each, columns.index(each)) for each in order)
        return OrderedQuery(select, tuple(conditions), ordered, backward, self.at)

    def none(self) -> StoreIterator[Any]:
        return StoreIterator(None, self.value)

    def count(self) -> int:
        """The number of rows."""
        at = f" AS OF {self.at}" if self.at is not None else ""
        rows = self.reader.rows(f"SELECT COUNT(*) AS entries FROM {quote(self.schema.name)}{at};")
        try:
            return int(next(rows)[0])
        finally:
            rows.close()

    @property
    def _columns(self) -> list[str]:
        bounds = ["WINDOWSTART", "WINDOWEND"] if self.schema.window else []
        keys, values = (map(quote, side) for side in (self.schema.key, self.schema.value))
        return [*keys, *bounds, *values]

    # -- conditions

    def is_key(self, key: K) -> list[str]:
        """The conditions of one key: a value, or a tuple for a key of several columns."""
        columns = self.schema.key
        parts = tuple(key) if len(columns) > 1 and isinstance(key, tuple | list) else (key,)
        if len(parts) != len(columns):
            names = ", ".join(columns)
            raise TypeMismatch(
                f'{key!r} is not a key of "{self.schema.name}"',
                hint=f"Its key has {len(columns)} columns: write a tuple ({names}).",
            )
        return [f"{quote(column)} = {constant(part)}" for column, part in zip(columns, parts, strict=True)]

    def key_range(self, key_from: K | None, key_to: K | None) -> list[str] | None:
        """The conditions of a range of keys, both inclusive, None for an open bound; None for an empty range."""
        if key_from is None and key_to is None:
            return []
        if len(self.schema.key) != 1:
            raise NotSupported(
                f'"{self.schema.name}" has no ranges of keys',
                detail="Its key has several columns.",
                hint="Fetch the keys one by one, or write the range as a SELECT.",
            )
        if key_from is not None and key_to is not None and key_from > key_to:  # type: ignore[operator]
            log.warning(INVALID_RANGE, self.schema.name, key_from, key_to)
            return None
        name = quote(self.schema.key[0])
        bounds = ((">=", key_from), ("<=", key_to))
        return [f"{name} {operator} {constant(bound)}" for operator, bound in bounds if bound is not None]

    @property
    def key_order(self) -> list[str]:
        return list(map(quote, self.schema.key))

    # -- rows

    def key(self, row: tuple[Any, ...]) -> K:
        parts = row[: len(self.schema.key)]
        return parts[0] if len(parts) == 1 else parts  # type: ignore[return-value]

    def windowed(self, row: tuple[Any, ...]) -> Windowed[K]:
        count = len(self.schema.key)
        return Windowed(self.key(row), Window(row[count], row[count + 1]))

    def value(self, row: tuple[Any, ...]) -> V:
        """The value column; of several, an object of the value type, or a dictionary by name."""
        names = self.schema.value
        cells = row[len(row) - len(names) :]
        kind = self.value_type
        if is_dataclass(kind):
            own = {field.name.upper(): field.name for field in fields(kind)}
            named = {own.get(name.upper(), name): cell for name, cell in zip(names, cells, strict=True)}
            value: V = kind(**named)  # type: ignore[operator, assignment]
            return value
        if len(cells) == 1 and not _is_mapping(kind):
            return cells[0]  # type: ignore[no-any-return]
        return dict(zip(names, cells, strict=True))  # type: ignore[return-value]


def _is_mapping(kind: Any) -> bool:
    """Whether the value type is a dictionary or a TypedDict."""
    return isinstance(kind, type) and issubclass(kind, dict)


def is_at(column: str, moment: Moment) -> str:
    """The condition that a bound of windows is a time."""
    return f"{column} = {constant(millis(moment))}"


def window_range(column: str, low: Moment | None, high: Moment | None) -> list[str]:
    """The conditions that a bound of windows is in a range, inclusive; None for an open end."""
    bounds = ((">=", low), ("<=", high))
    return [f"{column} {operator} {constant(millis(each))}" for operator, each in bounds if each is not None]
