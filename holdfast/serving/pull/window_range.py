"""The windows of some keys within bounds, as the conditions of a query name them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from holdfast.catalog.objects import Table
from holdfast.names import CollectionId
from holdfast.runtime.expressions.tree import Between, Binary, ColumnRef, Expression, InList, Operator
from holdfast.runtime.plan.windows import WindowType
from holdfast.runtime.store.port import GroupRead, Layout, SqlReader, Time
from holdfast.serving.pull.constants import named_groups, whole_number
from holdfast.sql.plan_text import expression_text
from holdfast.types import Scalar

START, END = "WINDOWSTART", "WINDOWEND"
AT_LEAST = (Operator.EQUAL, Operator.GREATER, Operator.GREATER_EQUAL)
AT_MOST = (Operator.EQUAL, Operator.LESS, Operator.LESS_EQUAL)

Bound = tuple[str, bool, int]
"""A bound of windows, whether it is a lower one, and its value."""


@dataclass(frozen=True, slots=True)
class WindowRange:
    """Keys without their windows (``k0..``), and the bounds, inclusive, of their windows in the order of the store."""

    keys: pa.Table
    first: int | None = None
    last: int | None = None

    def read(self, collection: CollectionId, at: Time) -> GroupRead:
        return GroupRead(collection, at, self.keys, with_group=True, first=self.first, last=self.last)

    def __str__(self) -> str:
        if self.first is None and self.last is None:
            return "all windows"
        low, high = ("" if bound is None else str(bound) for bound in (self.first, self.last))
        return f"windows {low}..{high}"


def window_range(
    table: Table, conditions: Sequence[Expression], layouts: Mapping[CollectionId, Layout], reader: SqlReader
) -> WindowRange | None:
    """The windows that satisfy conditions and maybe others, if those name the key by constants."""
    layout = layouts.get(CollectionId(table.name))
    if table.window is None or layout is None or layout.ordered is None:
        return None
    if Scalar.DOUBLE in layout.key[: layout.group]:  # 0.0 equals -0.0, but they are different keys.
        return None
    names = [expression_text(ColumnRef(column.name)) for column in table.schema.key]
    keys = named_groups(names, conditions, layout, reader)
    if isinstance(keys, str):
        return None
    bounds = [bound for condition in conditions for bound in _bounds(condition, reader)]
    is_session = table.window.type is WindowType.SESSION
    # A window does not end before its start, so a lower bound of starts is one of ends, and the reverse.
    low = [value for name, is_low, value in bounds if is_low and (is_session or name == START)]
    high = [value for name, is_low, value in bounds if not is_low and (not is_session or name == END)]
    return WindowRange(keys, max(low, default=None), min(high, default=None))


def _bounds(condition: Expression, reader: SqlReader) -> Iterator[Bound]:
    match condition:
        case Binary(operator=operator, left=ColumnRef(name=name), right=constant) if name in (START, END):
            yield from _compared(name, operator in AT_LEAST, operator in AT_MOST, [constant], reader)
        case Binary(operator=operator, left=constant, right=ColumnRef(name=name)) if name in (START, END):
            yield from _compared(name, operator in AT_MOST, operator in AT_LEAST, [constant], reader)
        case Between(operand=ColumnRef(name=name), low=low, high=high, negated=False) if name in (START, END):
            yield from _compared(name, True, False, [low], reader)
            yield from _compared(name, False, True, [high], reader)
        case InList(operand=ColumnRef(name=name), items=items, negated=False) if name in (START, END):
            yield from _compared(name, True, True, list(items), reader)


def _compared(
    name: str, is_low: bool, is_high: bool, constants: Sequence[Expression], reader: SqlReader
) -> Iterator[Bound]:
    """The bounds that a comparison with constants gives; none if one of them is not a whole number."""
    values = [value for constant in constants if (value := whole_number(constant, reader)) is not None]
    if not values or len(values) < len(constants):
        return
    if is_low:
        yield name, True, _within(min(values))
    if is_high:
        yield name, False, _within(max(values))


def _within(value: int) -> int:
    """The nearest value of a BIGINT."""
    return max(-(2**63), min(value, 2**63 - 1))
