"""SQL types of Python annotations: what `str`, `list[int]` or a dataclass is as a column."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints, is_typeddict

from holdfast.errors import TypeMismatch
from holdfast.runtime.expressions.parse import parse_type
from holdfast.types import Array, Map, Scalar, SqlType, Struct, StructField

SCALARS: Mapping[Any, Scalar] = {
    str: Scalar.STRING,
    bool: Scalar.BOOLEAN,
    int: Scalar.BIGINT,
    float: Scalar.DOUBLE,
    bytes: Scalar.BYTES,
    datetime: Scalar.TIMESTAMP,
    date: Scalar.DATE,
    time: Scalar.TIME,
}


def sql_type_of(annotation: Any) -> SqlType:
    """The type of a column; a string is the text of a type, `Annotated[int, "INTEGER"]` chooses one."""
    if isinstance(annotation, str):
        return parse_type(annotation)
    if isinstance(annotation, Scalar):
        return annotation
    if annotation in SCALARS:
        return SCALARS[annotation]
    arguments = get_args(annotation)
    match get_origin(annotation):
        case origin if origin is Annotated:
            texts = [each for each in arguments[1:] if isinstance(each, str)]
            return parse_type(texts[0]) if texts else sql_type_of(arguments[0])
        case origin if origin in (Union, UnionType):
            inner = [each for each in arguments if each is not NoneType]
            if len(inner) == 1:
                return sql_type_of(inner[0])
        case origin if origin is list:
            return Array(sql_type_of(arguments[0]))
        case origin if origin is dict and arguments[0] is str:
            return Map(Scalar.STRING, sql_type_of(arguments[1]))
    if is_record(annotation):
        return Struct(tuple(StructField(name, sql_type_of(each)) for name, each in record_fields(annotation).items()))
    raise TypeMismatch(
        f"{_shown(annotation)} is not the type of a column",
        hint="Use str, int, float, bool, bytes, datetime, date, time, list[…], dict[str, …], a dataclass, or an SQL "
        "type: Annotated[Decimal, 'DECIMAL(10, 2)'].",
    )


def is_record(annotation: Any) -> bool:
    """Whether a class has named fields: a dataclass or a TypedDict."""
    return isinstance(annotation, type) and (is_dataclass(annotation) or is_typeddict(annotation))


def record_fields(record: Any) -> Mapping[str, Any]:
    """The annotations of the fields of a dataclass or a TypedDict, in order."""
    hints = get_type_hints(record, include_extras=True)
    return {field.name: hints[field.name] for field in fields(record)} if is_dataclass(record) else hints


def _shown(annotation: Any) -> str:
    return getattr(annotation, "__name__", None) or str(annotation)
