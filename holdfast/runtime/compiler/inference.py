"""The type of an expression, or an error with the position of the problem."""

import math
from collections.abc import Sequence
from typing import assert_never

from holdfast.errors import Position, TypeMismatch
from holdfast.runtime.expressions import tree
from holdfast.runtime.expressions.coercion import arithmetic_type, castable, common_type, comparison_type
from holdfast.runtime.expressions.lists import adapted_type, list_type
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.expressions.text import format_expression
from holdfast.runtime.expressions.tree import Expression, Operator
from holdfast.runtime.functions.parameters import UNIT, ArgumentType, LambdaArgument, TextConstant
from holdfast.runtime.functions.registry import CURRENT, Release, function, resolve
from holdfast.types import Array, Decimal, Map, Scalar, SqlType, Struct, StructField, is_number

__all__ = ["argument_type", "infer", "literal_decimal", "literal_integer", "type_of"]

ARITHMETIC = (Operator.ADD, Operator.SUBTRACT, Operator.MULTIPLY, Operator.DIVIDE, Operator.MODULUS)
LOGICAL = (Operator.AND, Operator.OR)


def type_of(expression: Expression, scope: Scope, *, release: Release = CURRENT) -> SqlType:
    """The type of an expression; rejects a bare NULL, which has none."""
    type_ = infer(expression, scope, release)
    if type_ is None:
        raise TypeMismatch(
            "the type of NULL is not known here",
            hint="Give it a type, such as CAST(NULL AS STRING).",
            position=expression.position,
        )
    return type_


def infer(expression: Expression, scope: Scope, release: Release = CURRENT) -> SqlType | None:
    """Like `type_of`, but None for NULL."""
    return _Inference(scope, release).infer(expression)


def argument_type(argument: Expression, scope: Scope, release: Release = CURRENT) -> ArgumentType:
    """The type of a call's argument, for resolving the form of the function."""
    match argument:
        case tree.Lambda(parameters, body):

            def returns(types: tuple[SqlType, ...]) -> SqlType | None:
                inner = (ScopeColumn(n, t) for n, t in zip(parameters, types, strict=True))
                return infer(body, scope.with_parameters(inner), release)

            return LambdaArgument(len(parameters), returns)
        case tree.IntervalUnit():
            return UNIT
        case tree.StringLiteral():
            return TextConstant()
        case _:
            return infer(argument, scope, release)


class _Inference:
    def __init__(self, scope: Scope, release: Release) -> None:
        self.scope = scope
        self.release = release

    def infer(self, expression: Expression) -> SqlType | None:
        match expression:
            case tree.NullLiteral():
                return None
            case tree.BooleanLiteral():
                return Scalar.BOOLEAN
            case tree.IntegerLiteral():
                return literal_integer(expression)
            case tree.DecimalLiteral():
                return literal_decimal(expression)
            case tree.DoubleLiteral(text):
                if math.isinf(float(text)):
                    raise TypeMismatch(
                        f"the number {text} does not fit DOUBLE",
                        detail="The greatest DOUBLE is 1.7976931348623157E308.",
                        position=expression.position,
                    )
                return Scalar.DOUBLE
            case tree.StringLiteral():
                return Scalar.STRING
            case tree.ColumnRef():
                return self.scope.find(expression).type
            case tree.Binary():
                return self._binary(expression)
            case tree.Not(operand):
                self._expect(operand, Scalar.BOOLEAN, "NOT takes a BOOLEAN")
                return Scalar.BOOLEAN
            case tree.Negate(operand):
                return self._negate(expression, operand)
            case tree.IsNull(operand):
                self.infer(operand)
                return Scalar.BOOLEAN
            case tree.Between(operand, low, high):
                for operator, bound in ((Operator.GREATER_EQUAL, low), (Operator.LESS_EQUAL, high)):
                    self._compare(operator, operand, bound)
                return Scalar.BOOLEAN
            case tree.InList(operand, items):
                for item in items:
                    self._in(operand, item)
                return Scalar.BOOLEAN
            case tree.Like(operand, pattern):
                self._expect(operand, Scalar.STRING, "LIKE takes a STRING")
                self._expect(pattern, Scalar.STRING, "LIKE takes a STRING")
                return Scalar.BOOLEAN
            case tree.Case():
                return self._case(expression)
            case tree.Cast(operand, target):
                source = self.infer(operand)
                if source is not None and not castable(source, target):
                    raise TypeMismatch(
                        f"cannot cast {source} to {target}",
                        detail=_casts_of(source),
                        hint=_cast_hint(source, target),
                        position=expression.position,
                    )
                return target
            case tree.Call():
                function(expression.name, self.release, position=expression.position)
                arguments = [argument_type(argument, self.scope, self.release) for argument in expression.arguments]
                return resolve(expression, arguments, self.release).returns
            case tree.Subscript(base, index):
                return self._subscript(expression, self.infer(base), index)
            case tree.FieldRef(base, name):
                return self._field(expression, self.infer(base), name)
            case tree.ArrayLiteral(items):
                return Array(self._element_type(items, expression.position, "ARRAY", "this ARRAY"))
            case tree.MapLiteral(entries):
                return Map(
                    self._element_type(
                        [e.key for e in entries], expression.position, "MAP keys", "the keys of this MAP"
                    ),
                    self._element_type(
                        [e.value for e in entries], expression.position, "MAP values", "the values of this MAP"
                    ),
                )
            case tree.StructLiteral(fields):
                return Struct(tuple(StructField(f.name, self._known(f.expression)) for f in fields))
            case tree.Lambda() | tree.IntervalUnit():
                text = format_expression(expression)
                raise TypeMismatch(f"{text} can only be an argument of a function", position=expression.position)
            case _:
                assert_never(expression)

    def _known(self, expression: Expression) -> SqlType:
        return type_of(expression, self.scope, release=self.release)

    def _expect(self, expression: Expression, expected: SqlType, rule: str, hint: str | None = None) -> None:
        found = self.infer(expression)
        if found not in (expected, None):
            raise TypeMismatch(f"{rule}, not {found}", hint=hint, position=expression.position)

    def _binary(self, expression: tree.Binary) -> SqlType | None:
        operator, left, right = expression.operator, expression.left, expression.right
        if operator in LOGICAL:
            for operand in (left, right):
                self._expect(operand, Scalar.BOOLEAN, f"{operator.value} takes BOOLEANs")
            return Scalar.BOOLEAN
        if operator is Operator.CONCAT:
            for operand in (left, right):
                self._expect(operand, Scalar.STRING, "|| takes STRINGs", hint="Write CAST(… AS STRING).")
            return Scalar.STRING
        if operator in ARITHMETIC:
            return self._arithmetic(expression)
        self._compare(operator, left, right)
        return Scalar.BOOLEAN

    def _arithmetic(self, expression: tree.Binary) -> SqlType:
        left, right = self.infer(expression.left), self.infer(expression.right)
        left, right = left or right, right or left
        type_ = arithmetic_type(expression.operator, left, right) if left is not None and right is not None else None
        if type_ is None:
            raise TypeMismatch(
                f"cannot compute {_show(left)} {expression.operator.value} {_show(right)}",
                hint="Arithmetic needs numbers; + also joins two STRINGs. You may need a CAST.",
                position=expression.position,
            )
        return type_

    def _negate(self, expression: tree.Negate, operand: Expression) -> SqlType | None:
        if isinstance(operand, tree.IntegerLiteral):
            return literal_integer(operand, negative=True)
        type_ = self.infer(operand)
        if type_ is not None and not is_number(type_):
            raise TypeMismatch(f"cannot negate {type_}", position=expression.position)
        return type_

    def _compare(self, operator: Operator, left: Expression, right: Expression) -> None:
        a, b = self.infer(left), self.infer(right)
        distinct = operator in (Operator.IS_DISTINCT, Operator.IS_NOT_DISTINCT)
        if a is None or b is None:
            if distinct:
                return
            raise TypeMismatch(
                "a comparison with NULL is never true",
                hint="Write IS NULL or IS NOT NULL.",
                position=(left if a is None else right).position,
            )
        if comparison_type(operator, a, b) is None:
            raise TypeMismatch(
                f"cannot compare {format_expression(left)} ({a}) with {format_expression(right)} ({b})"
                f" using {operator.value}",
                hint="You may need a CAST."
                if common_type(a, b) is None
                else f"Values of {a} have no order: use = or <>.",
                position=left.position,
            )

    def _case(self, case: tree.Case) -> SqlType | None:
        for branch in case.branches:
            if case.operand is None:
                self._expect(branch.condition, Scalar.BOOLEAN, "WHEN takes a BOOLEAN")
            elif self.infer(branch.condition) is not None:
                self._compare(Operator.EQUAL, case.operand, branch.condition)
        results = [branch.result for branch in case.branches]
        return self._common([*results, *([case.otherwise] if case.otherwise else [])], case.position, "CASE")

    def _in(self, operand: Expression, item: Expression) -> None:
        target, found = self.infer(operand), self.infer(item)
        if found is None:
            return
        if target is None or adapted_type(item, found, target, self.infer) is None:
            self._compare(Operator.EQUAL, operand, item)

    def _element_type(self, items: Sequence[Expression], position: Position | None, what: str, subject: str) -> SqlType:
        found = list_type(items, self.infer, what)
        if found is None:
            raise _untyped(subject, position)
        return found

    def _common(self, items: Sequence[Expression], position: Position | None, what: str) -> SqlType:
        found: SqlType | None = None
        for item in items:
            type_ = self.infer(item)
            merged = common_type(found, type_)
            if merged is None and type_ is not None:
                raise TypeMismatch(
                    f"{what} cannot hold both {found} and {type_}",
                    hint=f"Cast one of them, such as CAST(… AS {Scalar.STRING}).",
                    position=item.position,
                )
            found = merged
        if found is None:
            raise _untyped(f"this {what}", position)
        return found

    def _subscript(self, expression: tree.Subscript, base: SqlType | None, index: Expression) -> SqlType:
        match base:
            case Array(element):
                if self.infer(index) not in (Scalar.INTEGER, Scalar.BIGINT, None):
                    raise TypeMismatch("the index of an ARRAY must be a whole number", position=index.position)
                return element
            case Map(key, value):
                if common_type(self.infer(index), key) != key:
                    raise TypeMismatch(f"the keys of this MAP are {key}", position=index.position)
                return value
        raise TypeMismatch(f"{_show(base)} has no elements", position=expression.position)

    def _field(self, expression: tree.FieldRef, base: SqlType | None, name: str) -> SqlType:
        if not isinstance(base, Struct):
            raise TypeMismatch(f"{_show(base)} has no fields", position=expression.position)
        columns = tuple(ScopeColumn(field.name, field.type) for field in base.fields)
        return (
            Scope(columns, format_expression(expression.base))
            .find(tree.ColumnRef(name, None, expression.position))
            .type
        )


def _casts_of(source: SqlType) -> str:
    """The possible targets of a cast, as a sentence."""
    if isinstance(source, Array | Map | Struct):
        return "A nested type can be cast to STRING, or to a type of the same kind."
    plain = [str(scalar) for scalar in Scalar if scalar != source and castable(source, scalar)]
    if castable(source, Decimal(1, 0)):
        plain.append("DECIMAL")
    return f"{source} can be cast to {', '.join(plain)}." if plain else f"{source} cannot be cast to another type."


def _cast_hint(source: SqlType, target: SqlType) -> str | None:
    if source is Scalar.BOOLEAN and is_number(target):
        return "Write CASE WHEN … THEN 1 ELSE 0 END."
    if Scalar.BYTES in (source, target) and Scalar.STRING in (source, target):
        return f"Write {'FROM' if source is Scalar.BYTES else 'TO'}_BYTES(…, 'utf8')."
    if source is Scalar.BIGINT and target is Scalar.TIMESTAMP:
        return "Write FROM_UNIXTIME(…)."
    return None


def _untyped(what: str, position: Position | None) -> TypeMismatch:
    return TypeMismatch(
        f"the type of {what} is not known",
        hint="Give one of its values a type, such as CAST(NULL AS STRING).",
        position=position,
    )


def _show(type_: SqlType | None) -> str:
    return "NULL" if type_ is None else str(type_)


def literal_integer(literal: tree.IntegerLiteral, *, negative: bool = False) -> Scalar:
    """INTEGER if it fits 32 bits, else BIGINT; the least value of each type fits only with its minus sign."""
    value = -literal.value if negative else literal.value
    if -(2**31) <= value < 2**31:
        return Scalar.INTEGER
    if -(2**63) <= value < 2**63:
        return Scalar.BIGINT
    raise TypeMismatch(
        f"the number {value} does not fit BIGINT",
        hint="Write it as a DECIMAL, with a decimal point.",
        position=literal.position,
    )


def literal_decimal(literal: tree.DecimalLiteral) -> Decimal:
    """The type with as many digits as written, without leading zeros."""
    integer, _, fraction = literal.text.partition(".")
    digits = len(integer.lstrip("0")) + len(fraction)
    if digits > 38:
        raise TypeMismatch("a DECIMAL has at most 38 digits", position=literal.position)
    return Decimal(max(digits, 1), len(fraction))
