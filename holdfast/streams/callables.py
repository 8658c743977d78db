"""Callables as expressions: a lambda is called once, with expressions; an annotated function becomes one of SQL."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import HoldfastError, TopologyError, TypeMismatch
from holdfast.runtime.expressions.tree import Call, ColumnRef, Expression
from holdfast.streams.expressions import Expr, tree_of
from holdfast.streams.python_functions import PythonFunction, row_function
from holdfast.streams.topology_rows import Field, TopologyRows
from holdfast.types import is_number

Computation = Expr[Any] | Callable[..., Any]
"""What filters and projections take."""


class RowColumns(Mapping[str, Expr[Any]]):
    """The columns of a row inside a lambda: `value["amount"]`."""

    def __init__(self, relation: TopologyRows, fields: Sequence[Field], qualifier: str | None = None) -> None:
        self._relation, self._fields, self._qualifier = relation, fields, qualifier

    def __getitem__(self, name: str) -> Expr[Any]:
        return Expr(ColumnRef(self._relation.field(name).name, self._qualifier))

    def __iter__(self) -> Any:
        return iter(each.name for each in self._fields)

    def __len__(self) -> int:
        return len(self._fields)


@dataclass(slots=True)
class Callables:
    """Turns the callables of one operation into expressions over a relation; collects the functions that they use."""

    relation: TopologyRows
    functions: list[PythonFunction] = field(default_factory=list)

    def expression(self, computation: Computation | Any) -> Expression:
        """The expression of an expression, a constant, a lambda or a function."""
        if isinstance(computation, Expr) or not callable(computation):
            return tree_of(computation)
        if is_annotated(computation):
            return self.call(row_function(computation))
        return tree_of(self.trace_callable(computation))

    def columns(self, computation: Any) -> Mapping[str, Expression] | Expression:
        """The columns of a mapping, or the expression of a single value."""
        if callable(computation) and not isinstance(computation, Expr) and not is_annotated(computation):
            computation = self.trace_callable(computation)
        if isinstance(computation, Mapping):
            return {name: self.expression(each) for name, each in computation.items()}
        return self.expression(computation)

    def trace_callable(self, function: Callable[..., Any]) -> Any:
        """The result of a lambda, called with expressions: with the value, or with the key and the value."""
        count = len(inspect.signature(function).parameters)
        if count not in (1, 2):
            raise TopologyError(f"a lambda takes a value, or a key and a value, not {count} arguments")
        return trace(function, *[self.key, self.value][2 - count :])

    @property
    def key(self) -> Any:
        return row(self.relation, self.relation.key, single=len(self.relation.key) == 1)

    @property
    def value(self) -> Any:
        return row(self.relation, self.relation.values, single=self.relation.is_single)

    def with_functions(self) -> TopologyRows:
        """The relation with the functions that the expressions use."""
        return self.relation.with_functions(*self.functions)

    def call(self, function: PythonFunction) -> Expression:
        """The call of a function with the columns that its arguments name; a single value needs no name."""
        self.functions.append(function)
        self.relation = self.relation.with_functions(function)
        single = self.relation.values[0] if len(self.relation.values) == 1 else None
        arguments: list[Expression] = []
        for parameter in function.parameters:
            known = {each.name.upper(): each for each in (*self.relation.key, *self.relation.values)}
            found = known.get(parameter.name.upper()) or (single if len(function.parameters) == 1 else None)
            if found is None:
                raise TopologyError(
                    f"argument {parameter.name} of {function.name} is not a column",
                    hint=f"Columns are passed by name. They are: {', '.join(each.name for each in known.values())}.",
                )
            if found.type != parameter.type and not (is_number(found.type) and is_number(parameter.type)):
                raise TypeMismatch(
                    f"argument {parameter.name} of {function.name} is {parameter.type}, but the column is {found.type}",
                    hint="Change the annotation, or cast the column with map_values before.",
                )
            arguments.append(ColumnRef(found.name))
        return Call(function.name, tuple(arguments))


def is_annotated(function: Any) -> bool:
    """Whether a function is one of Python, which is sent to the server; others are called once with expressions."""
    return inspect.isfunction(function) and bool(function.__annotations__)


def row(relation: TopologyRows, fields: Sequence[Field], *, single: bool, qualifier: str | None = None) -> Any:
    """The expression of a single column, or the columns of a row."""
    return Expr(ColumnRef(fields[0].name, qualifier)) if single else RowColumns(relation, fields, qualifier)


def trace(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a lambda that is called with expressions."""
    try:
        result = function(*arguments)
    except HoldfastError:
        raise
    except Exception as problem:
        raise TopologyError(
            "a lambda must compute an expression",
            detail=f"It is called once, with expressions instead of values: {type(problem).__name__}: {problem}.",
            hint="Use operators and functions of expressions, or a function with annotations, which runs in Python.",
        ) from problem
    if callable(result) and not isinstance(result, Expr):
        raise TopologyError("a lambda must compute an expression, not a function")
    return result
