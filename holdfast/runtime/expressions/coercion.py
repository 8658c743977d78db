"""Common types, the types of operators, and the casts that exist, by ksqlDB's rules.

Numbers widen in the order INTEGER, BIGINT, DECIMAL, DOUBLE.
"""

from holdfast.runtime.expressions.tree import Operator
from holdfast.types import Array, Decimal, Map, Scalar, SqlType, Struct, StructField, is_number

MAX_PRECISION = 38
MIN_SCALE = 6

AS_DECIMAL = {Scalar.INTEGER: Decimal(10, 0), Scalar.BIGINT: Decimal(19, 0)}

_WIDTH = {Scalar.INTEGER: 0, Scalar.BIGINT: 1, Scalar.DOUBLE: 3}
_TEMPORAL = (Scalar.TIME, Scalar.DATE, Scalar.TIMESTAMP)
_OTHER_CASTS = frozenset(
    {
        (Scalar.DATE, Scalar.TIMESTAMP),
        (Scalar.TIMESTAMP, Scalar.DATE),
        (Scalar.TIMESTAMP, Scalar.TIME),
        (Scalar.STRING, Scalar.BOOLEAN),
        (Scalar.STRING, Scalar.TIME),
        (Scalar.STRING, Scalar.DATE),
        (Scalar.STRING, Scalar.TIMESTAMP),
    }
)


def width(type_: SqlType) -> int:
    return 2 if isinstance(type_, Decimal) else _WIDTH[type_]  # type: ignore[index]


def as_decimal(type_: SqlType) -> Decimal:
    return type_ if isinstance(type_, Decimal) else AS_DECIMAL[type_]  # type: ignore[index]


def bounded(precision: int, scale: int) -> Decimal:
    """The nearest DECIMAL that engines support; digits before the point take precedence over the scale."""
    if precision <= MAX_PRECISION:
        return Decimal(precision, scale)
    return Decimal(MAX_PRECISION, max(MAX_PRECISION - (precision - scale), min(scale, MIN_SCALE)))


def wider_decimal(left: Decimal, right: Decimal) -> Decimal:
    """The least DECIMAL that holds every value of both."""
    scale = max(left.scale, right.scale)
    integer_digits = max(left.precision - left.scale, right.precision - right.scale)
    return bounded(integer_digits + scale, scale)


def common_type(left: SqlType | None, right: SqlType | None) -> SqlType | None:
    """The type that both convert to without a cast. As an argument, None is NULL; as a result, no such type."""
    if left is None or right is None or left == right:
        return right if left is None else left
    if is_number(left) and is_number(right):
        if isinstance(left, Decimal) or isinstance(right, Decimal):
            if Scalar.DOUBLE in (left, right):
                return Scalar.DOUBLE
            return wider_decimal(as_decimal(left), as_decimal(right))
        return max(left, right, key=width)
    match left, right:
        case Array(a), Array(b):
            element = common_type(a, b)
            return None if element is None else Array(element)
        case Map(ka, va), Map(kb, vb):
            key, value = common_type(ka, kb), common_type(va, vb)
            return None if key is None or value is None else Map(key, value)
        case Struct(fields), Struct(others) if [f.name for f in fields] == [f.name for f in others]:
            merged = []
            for field, other in zip(fields, others, strict=True):
                type_ = common_type(field.type, other.type)
                if type_ is None:
                    return None
                merged.append(StructField(field.name, type_))
            return Struct(tuple(merged))
    return None


def arithmetic_type(operator: Operator, left: SqlType, right: SqlType) -> SqlType | None:
    """The type of `left operator right`, or None if there is no such operation."""
    if operator is Operator.ADD and left == right == Scalar.STRING:
        return Scalar.STRING
    if not is_number(left) or not is_number(right):
        return None
    if Scalar.DOUBLE in (left, right):
        return Scalar.DOUBLE
    if not isinstance(left, Decimal) and not isinstance(right, Decimal):
        return max(left, right, key=width)
    return _decimal_arithmetic(operator, as_decimal(left), as_decimal(right))


def _decimal_arithmetic(operator: Operator, left: Decimal, right: Decimal) -> Decimal:
    lp, ls, rp, rs = left.precision, left.scale, right.precision, right.scale
    match operator:
        case Operator.MULTIPLY:
            return bounded(lp + rp + 1, ls + rs)
        case Operator.DIVIDE:
            scale = max(MIN_SCALE, ls + rp + 1)
            return bounded(lp - ls + rs + scale, scale)
        case Operator.MODULUS:
            scale = max(ls, rs)
            return bounded(min(lp - ls, rp - rs) + scale, scale)
        case _:
            scale = max(ls, rs)
            return bounded(max(lp - ls, rp - rs) + scale + 1, scale)


def comparison_type(operator: Operator, left: SqlType, right: SqlType) -> SqlType | None:
    """The type in which two operands are compared, or None if they cannot be."""
    equality = operator in (Operator.EQUAL, Operator.NOT_EQUAL, Operator.IS_DISTINCT, Operator.IS_NOT_DISTINCT)
    if left in _TEMPORAL and right is Scalar.STRING:
        return left
    if right in _TEMPORAL and left is Scalar.STRING:
        return right
    if {left, right} == {Scalar.DATE, Scalar.TIMESTAMP}:
        return Scalar.TIMESTAMP
    type_ = common_type(left, right)
    ordered = isinstance(type_, (Scalar, Decimal)) and type_ is not Scalar.BOOLEAN
    return type_ if equality or ordered else None


def castable(source: SqlType, target: SqlType) -> bool:
    if source == target or (target is Scalar.STRING and source is not Scalar.BYTES):
        return True
    if is_number(target):
        return is_number(source) or source is Scalar.STRING
    match source, target:
        case Array(a), Array(b):
            return castable(a, b)
        case Map(ka, va), Map(kb, vb):
            return castable(ka, kb) and castable(va, vb)
        case Struct(fields), Struct(others):
            types = {field.name: field.type for field in fields}
            return all(castable(types[o.name], o.type) for o in others if o.name in types)
        case _:
            return (source, target) in _OTHER_CASTS


def assignable(source: SqlType | None, target: SqlType) -> bool:
    """Whether a value can be passed to a parameter of `target` without a cast."""
    return source is None or common_type(source, target) == target
