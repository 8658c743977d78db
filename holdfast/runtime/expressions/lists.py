"""The common type of values in an ARRAY, a MAP or an IN list.

As in ksqlDB, literals adapt to the other values: a string to the number or BOOLEAN that it spells, any literal to a
STRING. Other values only widen.
"""

import decimal
from collections.abc import Callable, Sequence

from holdfast.errors import TypeMismatch
from holdfast.runtime.expressions import tree
from holdfast.runtime.expressions.coercion import common_type
from holdfast.runtime.expressions.tree import Expression
from holdfast.types import Array, Map, Scalar, SqlType, Struct, StructField, is_number

Infer = Callable[[Expression], SqlType | None]

_BOOLEAN_TEXTS = tuple(word[:length] for word in ("true", "false", "yes", "no") for length in range(1, len(word) + 1))

MAX_EXPONENT = 400
"""Beyond every DOUBLE and DECIMAL; the digits of a number are written out."""


def list_type(items: Sequence[Expression], infer: Infer, what: str) -> SqlType | None:
    """The common type of all items; None if they are all NULL."""
    found: SqlType | None = None
    for item in items:
        type_ = infer(item)
        if type_ is None or isinstance(item, tree.StringLiteral):
            continue
        merged = adapted_type(item, type_, found, infer) if found is not None else type_
        if merged is None:
            raise TypeMismatch(f"{what} cannot hold both {found} and {type_}", position=item.position)
        found = merged
    texts = [item for item in items if isinstance(item, tree.StringLiteral)]
    if found is None:
        return Scalar.STRING if texts else None
    for item in texts:
        if adapted_type(item, Scalar.STRING, found, infer) is None:
            raise TypeMismatch(f"{what} cannot hold both {found} and STRING", position=item.position)
    return found


def adapted_type(item: Expression, type_: SqlType, target: SqlType, infer: Infer) -> SqlType | None:
    """The common type of an item, whose literals adapt, and values of type `target`; None if there is none."""
    match item, target:
        case tree.StringLiteral(value), _ if is_number(target) or target is Scalar.BOOLEAN:
            if not _spells(value, target):
                raise TypeMismatch(
                    f'"{value}" is not of type {target}',
                    hint=f"Write a {target}, or cast the other values to STRING.",
                    position=item.position,
                )
            return target
        case tree.BooleanLiteral() | tree.IntegerLiteral() | tree.DecimalLiteral(), Scalar.STRING:
            return target
        case tree.ArrayLiteral(items), Array(element):
            inner = _adapt_all(items, element, infer)
            return None if inner is None else Array(inner)
        case tree.MapLiteral(entries), Map(key, value):
            keys = _adapt_all([entry.key for entry in entries], key, infer)
            values = _adapt_all([entry.value for entry in entries], value, infer)
            return None if keys is None or values is None else Map(keys, values)
        case tree.StructLiteral(fields), Struct():
            return _union(target, {f.name: (f.expression, infer(f.expression)) for f in fields}, infer)
        case _, Struct() if isinstance(type_, Struct):
            return _union(target, {field.name: (None, field.type) for field in type_.fields}, infer)
    return common_type(target, type_)


def _adapt_all(items: Sequence[Expression], target: SqlType, infer: Infer) -> SqlType | None:
    found: SqlType | None = target
    for item in items:
        type_ = infer(item)
        if type_ is not None and found is not None:
            found = adapted_type(item, type_, found, infer)
    return found


def _union(target: Struct, items: dict[str, tuple[Expression | None, SqlType | None]], infer: Infer) -> Struct | None:
    """A STRUCT with the fields of both, those of the item first; missing fields are NULL."""
    known = {field.name: field.type for field in target.fields}
    fields: list[StructField] = []
    for name, (expression, type_) in items.items():
        expected = known.pop(name, None)
        merged = expected if type_ is None else type_
        if expected is not None and type_ is not None:
            merged = (
                common_type(expected, type_) if expression is None else adapted_type(expression, type_, expected, infer)
            )
        if merged is None:
            return None
        fields.append(StructField(name, merged))
    return Struct((*fields, *(StructField(name, type_) for name, type_ in known.items())))


def _spells(text: str, target: SqlType) -> bool:
    if target is Scalar.BOOLEAN:
        return text.strip().lower() in _BOOLEAN_TEXTS
    try:
        number = decimal.Decimal(text.strip())
    except decimal.InvalidOperation:
        return False
    return number.is_finite() and abs(number.adjusted()) <= MAX_EXPONENT
