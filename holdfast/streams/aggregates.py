"""Declared aggregates: functions of SQL that the engine computes."""

from typing import Any, Generic, TypeVar

from holdfast.runtime.expressions import tree
from holdfast.streams.expressions import Expr, tree_of

T = TypeVar("T")

VALUE = tree.ColumnRef("value")


class Aggregate(Generic[T]):
    """An aggregate over the records of a group; without an expression, over their single value."""

    __slots__ = ("tree",)

    def __init__(self, tree: tree.Call) -> None:
        self.tree = tree


def count(expression: Expr[Any] | str | None = None) -> Aggregate[int]:
    """The number of records, or of those where an expression is not NULL."""
    if expression is None:
        return Aggregate(tree.Call("COUNT", (), star=True))
    return Aggregate(_call("COUNT", expression))


def sum(expression: Expr[T] | str | None = None) -> Aggregate[T]:
    return Aggregate(_call("SUM", expression))


def min(expression: Expr[T] | str | None = None) -> Aggregate[T]:
    return Aggregate(_call("MIN", expression))


def max(expression: Expr[T] | str | None = None) -> Aggregate[T]:
    return Aggregate(_call("MAX", expression))


def avg(expression: Expr[Any] | str | None = None) -> Aggregate[float]:
    return Aggregate(_call("AVG", expression))


def latest(expression: Expr[T] | str | None = None) -> Aggregate[T]:
    """The value of the last record, in the order of the topic."""
    return Aggregate(_call("LATEST_BY_OFFSET", expression))


def earliest(expression: Expr[T] | str | None = None) -> Aggregate[T]:
    """The value of the first record, in the order of the topic."""
    return Aggregate(_call("EARLIEST_BY_OFFSET", expression))


def collect_list(expression: Expr[T] | str | None = None) -> Aggregate[list[T]]:
    return Aggregate(_call("COLLECT_LIST", expression))


def count_distinct(expression: Expr[Any] | str | None = None) -> Aggregate[int]:
    return Aggregate(_call("COUNT_DISTINCT", expression))


def call(function: str, *arguments: Any) -> Aggregate[Any]:
    """Any other aggregate of SQL: `call("TOPK", col("amount"), 3)`."""
    return Aggregate(tree.Call(function.upper(), tuple(map(tree_of, arguments))))


def _call(function: str, expression: Expr[Any] | str | None) -> tree.Call:
    """A name is that of a column."""
    if expression is None:
        return tree.Call(function, (VALUE,))
    argument = tree.ColumnRef(expression) if isinstance(expression, str) else expression.tree
    return tree.Call(function, (argument,))
