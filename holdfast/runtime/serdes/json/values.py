"""The types that JSON can hold."""

from collections.abc import Sequence

from holdfast.errors import NotSupported
from holdfast.runtime.plan.formats import FormatInfo
from holdfast.types import Array, Column, Map, Scalar, SqlType, Struct


def fits(type_: SqlType) -> bool:
    """Whether JSON supports a type: names in an object are strings, so a MAP needs STRING keys."""
    match type_:
        case Array(element):
            return fits(element)
        case Map(key, value):
            return key is Scalar.STRING and fits(value)
        case Struct(fields):
            return all(fits(field.type) for field in fields)
        case _:
            return True


def check(columns: Sequence[Column], _info: FormatInfo) -> None:
    """Refuse columns of unsupported types."""
    for column in columns:
        if not fits(column.type):
            raise NotSupported(
                f'JSON supports only MAPs with STRING keys, not column "{column.name}" of type {column.type}',
                hint="Use STRING for the keys of the MAP.",
            )
