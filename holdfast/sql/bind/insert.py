"""INSERT INTO … VALUES."""

from dataclasses import dataclass
from decimal import Decimal as Number

from holdfast.catalog.objects import (
    CatalogObject,
    MaterializedView,
    Table,
)
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import BindError, NotSupported, Position, TypeMismatch, UnknownColumn, WrongObjectKind
from holdfast.runtime.compiler.inference import infer
from holdfast.runtime.compiler.sql import render
from holdfast.runtime.expressions.coercion import width
from holdfast.runtime.expressions.physical import Dialect, NotRenderable
from holdfast.runtime.expressions.scope import Scope
from holdfast.runtime.expressions.tree import (
    Call,
    DecimalLiteral,
    Expression,
    IntegerLiteral,
    Negate,
    NullLiteral,
)
from holdfast.sql.syntax import statements as sql
from holdfast.sql.syntax.walk import column_refs, walk
from holdfast.types import Array, Column, Decimal, Map, Role, Scalar, SqlType, Struct, is_number

ROWTIME = Column("ROWTIME", Scalar.BIGINT)
FROM_TEXT = (Scalar.TIME, Scalar.DATE, Scalar.TIMESTAMP, Scalar.BYTES)
NO_COLUMNS = Scope(())


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundInsert:
    """One row for a stream or a table: a value for each of `columns`; ROWTIME may be among them."""

    target: CatalogObject
    columns: tuple[Column, ...]
    values: tuple[Expression, ...]


def bind_insert(statement: sql.InsertValues, catalog: Catalog) -> BoundInsert:
    """Bind one row and check its values against the columns; columns that are not listed are null."""
    target = catalog.relation(statement.target.text, position=statement.target.position)
    if target.read_only:
        raise BindError(
            f'{target.KIND} "{target.name}" is read only',
            detail="It was created as a SOURCE.",
            position=statement.target.position,
        )
    if isinstance(target, MaterializedView):
        raise materialized(target, statement.target.position)
    if target.window is not None:
        raise NotSupported(
            f'INSERT cannot write to the windowed {target.KIND} "{target.name}"',
            detail="Only an aggregation assigns rows to windows.",
            position=statement.target.position,
        )
    columns = _columns(statement, target)
    if len(statement.values) != len(columns):
        expected = ", ".join(column.name for column in columns)
        raise BindError(
            f"expected {_count(len(columns), 'value')}, got {len(statement.values)}",
            detail=f"The columns are: {expected}.",
            position=statement.values[0].position,
        )
    for column, value in zip(columns, statement.values, strict=True):
        _check_value(column, value)
    _check_key(target, columns, statement)
    return BoundInsert(target=target, columns=columns, values=statement.values)


def materialized(target: MaterializedView, position: Position | None = None) -> WrongObjectKind:
    """The error for an INSERT into a materialized view."""
    return WrongObjectKind(
        f'cannot insert into "{target.name}", which is a materialized view',
        detail="Its rows are the result of its query.",
        hint="Insert into a source of the query.",
        position=position,
    )


def _columns(statement: sql.InsertValues, target: CatalogObject) -> tuple[Column, ...]:
    schema = target.schema
    if not statement.columns:
        if schema.headers:
            raise NotSupported("INSERT cannot write HEADERS columns", position=statement.target.position)
        return schema.columns
    chosen: list[Column] = []
    for name in statement.columns:
        column = ROWTIME if name.text == ROWTIME.name else schema.find(name.text)
        if column is None:
            known = [c.name for c in schema.columns]
            raise UnknownColumn(name.text, relation=target.name, known=known, position=name.position)
        if column.role is Role.HEADERS:
            raise NotSupported("INSERT cannot write HEADERS columns", position=name.position)
        if column in chosen:
            raise BindError(f'column "{name.text}" is listed twice', position=name.position)
        chosen.append(column)
    return tuple(chosen)


def _check_key(target: CatalogObject, columns: tuple[Column, ...], statement: sql.InsertValues) -> None:
    if not isinstance(target, Table):
        return
    values = {column.name: value for column, value in zip(columns, statement.values, strict=True)}
    for key in target.schema.key:
        if isinstance(values.get(key.name, NullLiteral()), NullLiteral):
            raise BindError(
                f'the primary key "{key.name}" of table "{target.name}" needs a value',
                position=statement.target.position,
            )


def _check_value(column: Column, value: Expression) -> None:
    for ref in column_refs(value):
        raise BindError(
            f'VALUES cannot name a column: "{ref.name}"',
            hint=f"Write a string in single quotes: '{ref.name}'.",
            position=ref.position,
        )
    type_ = infer(value, NO_COLUMNS)
    _check_computed(column, value)
    if type_ is None or _accepts(type_, column.type):
        _check_digits(column, value)
        return
    raise TypeMismatch(f'column "{column.name}" is {column.type} and cannot take {type_}', position=value.position)


def _check_computed(column: Column, value: Expression) -> None:
    """Refuse a value that only Spark can compute."""
    try:
        render(value, NO_COLUMNS, Dialect.DUCKDB)
    except TypeMismatch:
        return
    except NotRenderable:
        calls = [node for node in walk(value) if isinstance(node, Call)]
        what = f"{calls[0].shown}(…)" if calls else "this expression"
        raise NotSupported(
            f'the value of column "{column.name}" cannot be computed in INSERT … VALUES: {what}',
            detail="It needs Spark, which INSERT … VALUES does not use.",
            hint="Write a literal, or compute the value in a query: INSERT INTO … SELECT.",
            position=value.position,
        ) from None


def _accepts(source: SqlType, target: SqlType) -> bool:
    if source == target:
        return True
    if is_number(source) and is_number(target):
        return width(source) <= width(target)
    match source, target:
        case Array(a), Array(b):
            return _accepts(a, b)
        case Map(ka, va), Map(kb, vb):
            return _accepts(ka, kb) and _accepts(va, vb)
        case Struct(fields), Struct(others):
            types = {field.name: field.type for field in others}
            return all(field.name in types and _accepts(field.type, types[field.name]) for field in fields)
        case _:
            return source is Scalar.STRING and target in FROM_TEXT


def _check_digits(column: Column, value: Expression) -> None:
    """Refuse a number literal that a DECIMAL column would have to round."""
    number = _number(value)
    if number is None or not isinstance(column.type, Decimal):
        return
    digits = number.as_tuple()
    scale = max(-int(digits.exponent), 0)
    integer_digits = max(len(digits.digits) - scale, 0) if number else 0
    if scale > column.type.scale or integer_digits > column.type.precision - column.type.scale:
        raise TypeMismatch(f'column "{column.name}" is {column.type} and cannot hold {number}', position=value.position)


def _number(value: Expression) -> Number | None:
    match value:
        case IntegerLiteral(number):
            return Number(number)
        case DecimalLiteral(text):
            return Number(text)
        case Negate(operand):
            inner = _number(operand)
            return -inner if inner is not None else None
        case _:
            return None


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
