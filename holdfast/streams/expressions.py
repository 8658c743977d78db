"""Expressions over columns: trees that become SQL, and are never evaluated in Python."""

from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Generic, NoReturn, TypeVar

from holdfast.client.stores.literals import constant
from holdfast.errors import TopologyError
from holdfast.runtime.expressions import tree
from holdfast.runtime.expressions.parse import parse_expression
from holdfast.runtime.expressions.text import format_expression
from holdfast.runtime.expressions.tree import Expression, Operator
from holdfast.streams.python_types import sql_type_of

T = TypeVar("T")
B = "Expr[bool]"


class Expr(Generic[T]):
    """An expression: `col("amount") * 2 > 5`. Use `&`, `|` and `~` for AND, OR and NOT."""

    __slots__ = ("tree",)

    def __init__(self, tree: Expression) -> None:
        self.tree = tree

    def __repr__(self) -> str:
        return f"Expr({format_expression(self.tree)})"

    def __bool__(self) -> NoReturn:
        raise TopologyError(
            "an expression is neither true nor false while the topology is built",
            detail="Its value is computed for each record.",
            hint="Use & | ~ for and, or, not, between(low, high) for low <= x <= high, and when(…) for if.",
        )

    __hash__ = None  # type: ignore[assignment]

    # -- comparison

    def __eq__(self, other: object) -> "Expr[bool]":  # type: ignore[override]
        return self._binary(Operator.EQUAL, other)

    def __ne__(self, other: object) -> "Expr[bool]":  # type: ignore[override]
        return self._binary(Operator.NOT_EQUAL, other)

    def __lt__(self, other: Any) -> "Expr[bool]":
        return self._binary(Operator.LESS, other)

    def __le__(self, other: Any) -> "Expr[bool]":
        return self._binary(Operator.LESS_EQUAL, other)

    def __gt__(self, other: Any) -> "Expr[bool]":
        return self._binary(Operator.GREATER, other)

    def __ge__(self, other: Any) -> "Expr[bool]":
        return self._binary(Operator.GREATER_EQUAL, other)

    def is_null(self) -> "Expr[bool]":
        return Expr(tree.IsNull(self.tree))

    def is_not_null(self) -> "Expr[bool]":
        return Expr(tree.IsNull(self.tree, negated=True))

    def between(self, low: Any, high: Any) -> "Expr[bool]":
        """Whether the value is in a range, both ends included."""
        return Expr(tree.Between(self.tree, tree_of(low), tree_of(high)))

    def in_(self, items: Iterable[Any]) -> "Expr[bool]":
        return Expr(tree.InList(self.tree, tuple(map(tree_of, items))))

    def like(self, pattern: str) -> "Expr[bool]":
        """Whether a text matches a pattern, in which `%` is any text and `_` any character."""
        return Expr(tree.Like(self.tree, tree_of(pattern)))

    # -- logic

    def __and__(self, other: Any) -> "Expr[bool]":
        return self._binary(Operator.AND, other)

    def __rand__(self, other: Any) -> "Expr[bool]":
        return Expr(tree.Binary(Operator.AND, tree_of(other), self.tree))

    def __or__(self, other: Any) -> "Expr[bool]":
        return self._binary(Operator.OR, other)

    def __ror__(self, other: Any) -> "Expr[bool]":
        return Expr(tree.Binary(Operator.OR, tree_of(other), self.tree))

    def __invert__(self) -> "Expr[bool]":
        return Expr(tree.Not(self.tree))

    # -- arithmetic

    def __add__(self, other: Any) -> "Expr[T]":
        return self._binary(Operator.ADD, other)

    def __radd__(self, other: Any) -> "Expr[T]":
        return self._reflected(Operator.ADD, other)

    def __sub__(self, other: Any) -> "Expr[T]":
        return self._binary(Operator.SUBTRACT, other)

    def __rsub__(self, other: Any) -> "Expr[T]":
        return self._reflected(Operator.SUBTRACT, other)

    def __mul__(self, other: Any) -> "Expr[T]":
        return self._binary(Operator.MULTIPLY, other)

    def __rmul__(self, other: Any) -> "Expr[T]":
        return self._reflected(Operator.MULTIPLY, other)

    def __truediv__(self, other: Any) -> "Expr[T]":
        """SQL's division, which of two integers is an integer."""
        return self._binary(Operator.DIVIDE, other)

    def __rtruediv__(self, other: Any) -> "Expr[T]":
        return self._reflected(Operator.DIVIDE, other)

    def __mod__(self, other: Any) -> "Expr[T]":
        return self._binary(Operator.MODULUS, other)

    def __rmod__(self, other: Any) -> "Expr[T]":
        return self._reflected(Operator.MODULUS, other)

    def __neg__(self) -> "Expr[T]":
        return Expr(tree.Negate(self.tree))

    # -- parts and types

    def __getitem__(self, index: Any) -> "Expr[Any]":
        """An element of an ARRAY, from 1, or the value of a key of a MAP."""
        return Expr(tree.Subscript(self.tree, tree_of(index)))

    def field(self, name: str) -> "Expr[Any]":
        """A field of a STRUCT."""
        return Expr(tree.FieldRef(self.tree, name))

    def cast(self, type_: "type[C] | str") -> "Expr[C]":
        """The value as another type: a Python type, or the text of an SQL type."""
        return Expr(tree.Cast(self.tree, sql_type_of(type_)))

    def _binary(self, operator: Operator, other: Any) -> "Expr[Any]":
        return Expr(tree.Binary(operator, self.tree, tree_of(other)))

    def _reflected(self, operator: Operator, other: Any) -> "Expr[Any]":
        return Expr(tree.Binary(operator, tree_of(other), self.tree))


C = TypeVar("C")


def col(name: str) -> Expr[Any]:
    """A column of a key or a value, in any case unless two names differ only by it.

    Columns of a serde without names are `key` and `value`.
    """
    return Expr(tree.ColumnRef(name))


def lit(value: T) -> Expr[T]:
    """A constant."""
    return Expr(tree_of(value))


def row_time() -> Expr[int]:
    """The timestamp of the record, in milliseconds."""
    return Expr(tree.ColumnRef("ROWTIME"))


def window_start() -> Expr[int]:
    """The start of the key's window, in milliseconds."""
    return Expr(tree.ColumnRef("WINDOWSTART"))


def window_end() -> Expr[int]:
    """The end of the key's window, in milliseconds."""
    return Expr(tree.ColumnRef("WINDOWEND"))


def call(function: str, *arguments: Any) -> Expr[Any]:
    """A call of a function of SQL: `call("UCASE", col("name"))`."""
    return Expr(tree.Call(function.upper(), tuple(map(tree_of, arguments))))


def sql(text: str) -> Expr[Any]:
    """An expression written in SQL, in which names without quotes are in upper case."""
    return Expr(parse_expression(text))


class Branches(Generic[T]):
    """The branches of a CASE so far."""

    def __init__(self, branches: tuple[tree.When, ...]) -> None:
        self._branches = branches

    def when(self, condition: Expr[bool], result: Any) -> "Branches[T]":
        """Another branch, for values that no earlier branch takes."""
        return Branches((*self._branches, tree.When(tree_of(condition), tree_of(result))))

    def otherwise(self, result: Any) -> Expr[T]:
        """The result where no condition is true."""
        return Expr(tree.Case(None, self._branches, tree_of(result)))

    def otherwise_null(self) -> Expr[T]:
        return Expr(tree.Case(None, self._branches, None))


def when(condition: Expr[bool], result: Any) -> Branches[Any]:
    """A CASE: `when(col("n") > 5, "many").otherwise("few")`."""
    return Branches[Any](()).when(condition, result)


def tree_of(value: Any) -> Expression:
    """The tree of an expression or of a constant."""
    match value:
        case Expr():
            return value.tree
        case None:
            return tree.NullLiteral()
        case str():
            return tree.StringLiteral(value)
        case bool() | int() | float() | Decimal() | bytes() | datetime() | date() | time():
            return parse_expression(constant(value))
        case list() | tuple():
            return tree.ArrayLiteral(tuple(map(tree_of, value)))
        case Mapping():
            return tree.StructLiteral(tuple(tree.NamedExpression(n, tree_of(each)) for n, each in value.items()))
        case _:
            raise TopologyError(
                f"{value!r} is not an expression",
                hint='Write col("name"), a constant, or an expression of these.',
            )
