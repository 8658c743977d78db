"""The constants with which the conditions of a query compare expressions."""

from collections.abc import Sequence
from itertools import product

import pyarrow as pa

from holdfast.runtime import physical_columns as col
from holdfast.runtime.compiler.inference import type_of
from holdfast.runtime.compiler.sql import render, renderable
from holdfast.runtime.expressions.physical import Dialect, arrow_type, duckdb_type
from holdfast.runtime.expressions.references import references
from holdfast.runtime.expressions.scope import Scope
from holdfast.runtime.expressions.tree import (
    Binary,
    BooleanLiteral,
    Expression,
    InList,
    IntegerLiteral,
    Operator,
    StringLiteral,
)
from holdfast.runtime.store.port import Layout, SqlReader
from holdfast.sql.plan_text import expression_text
from holdfast.types import Decimal, Scalar, SqlType

MAX_GROUPS = 1_000
"""Limit of combinations of constants to look up; above it, all rows are read."""

NO_COLUMNS = Scope.of([])
PLAIN = (StringLiteral, IntegerLiteral, BooleanLiteral)
EXACT = (Scalar.INTEGER, Scalar.BIGINT)


def named_groups(
    names: Sequence[str], conditions: Sequence[Expression], layout: Layout, reader: SqlReader
) -> pa.Table | str:
    """The groups that the conditions on some expressions select, or why they cannot be looked up."""
    by_column: list[list[object]] = []
    for text, type_ in zip(names, layout.key, strict=False):
        constants = constants_of(text, conditions)
        if constants is None:
            return f"the WHERE does not compare {text} with constants"
        unfit = next((c for c in constants if not _fits(type_of(c, NO_COLUMNS), type_)), None)
        if unfit is not None:
            return f"{text} is {type_} and compared with {type_of(unfit, NO_COLUMNS)}, which it cannot look up"
        by_column.append(values_of(constants, type_, reader))
    rows = list(product(*by_column))
    if len(rows) > MAX_GROUPS:
        return f"the WHERE has {len(rows)} combinations of constants, more than {MAX_GROUPS}"
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(by_column)
    types = [arrow_type(type_) for type_ in layout.key[: len(by_column)]]
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    return pa.table({col.key(i): array for i, array in enumerate(arrays)})


def constants_of(text: str, conditions: Sequence[Expression]) -> Sequence[Expression] | None:
    """The constants with which the first `=` or IN condition compares an expression."""
    for condition in conditions:
        match condition:
            case Binary(operator=Operator.EQUAL, left=left, right=right):
                for operand, constant in ((left, right), (right, left)):
                    if is_constant(constant) and expression_text(operand) == text:
                        return (constant,)
            case InList(operand=operand, items=items, negated=False):
                if all(map(is_constant, items)) and expression_text(operand) == text:
                    return items
    return None


def is_constant(expression: Expression) -> bool:
    """Whether the store can evaluate the expression without a row. Such an expression is deterministic."""
    return not references(expression) and renderable(expression, NO_COLUMNS, Dialect.DUCKDB)


def _fits(constant: SqlType, type_: SqlType) -> bool:
    """Whether casting the constant to the type preserves equality: what the type cannot represent equals none of it."""
    if constant == type_:
        return True
    numbers = constant in EXACT or isinstance(constant, Decimal)
    if type_ in EXACT or isinstance(type_, Decimal):
        return numbers or (type_ is Scalar.INTEGER and constant is Scalar.DOUBLE)
    return type_ is Scalar.DOUBLE and numbers


def values_of(constants: Sequence[Expression], type_: SqlType, reader: SqlReader) -> list[object]:
    """The constants as values of the type, without those that it cannot represent, as they equal none of its values."""
    if all(isinstance(c, PLAIN) and type_of(c, NO_COLUMNS) == type_ for c in constants):
        return list(dict.fromkeys(c.value for c in constants if isinstance(c, PLAIN)))
    # An index stores -0.0 as 0.0.
    zero = " + 0e0" if type_ is Scalar.DOUBLE else ""
    target = duckdb_type(type_)
    texts = [f"TRY_CAST({render(c, NO_COLUMNS, Dialect.DUCKDB)} AS {target}){zero}" for c in constants]
    found = reader.evaluate_over(f"SELECT {', '.join(f'{text} AS v{i}' for i, text in enumerate(texts))}", {})
    values = [found.column(i)[0].as_py() for i in range(len(constants))]
    return list(dict.fromkeys(value for value in values if value is not None))


def whole_number(constant: Expression, reader: SqlReader) -> int | None:
    """The value of a constant; None if it is not of an integer type, or NULL."""
    if isinstance(constant, IntegerLiteral):
        return constant.value
    if not is_constant(constant) or type_of(constant, NO_COLUMNS) not in EXACT:
        return None
    values = values_of([constant], Scalar.BIGINT, reader)
    return values[0] if values and isinstance(values[0], int) else None
