"""An expression as SQL text for Spark or DuckDB.

Law: both texts compute the same value for every row, of the type that `type_of` returns, and neither ever raises: a
value that cannot be computed is NULL. An expression that DuckDB cannot evaluate as Spark does is not renderable for
DuckDB. Spark runs with ANSI mode off and in UTC.

As in ksqlDB, a comparison, BETWEEN or IN with a NULL operand is false, not NULL.
"""

import decimal
from typing import assert_never

from holdfast.errors import Feature, NotSupported, NotYetSupported, TypeMismatch
from holdfast.runtime.compiler.inference import argument_type, infer, literal_decimal, type_of
from holdfast.runtime.compiler.operators import (
    arithmetic,
    comparison,
    decimal_arithmetic,
    like,
    like_constant,
    negate,
)
from holdfast.runtime.expressions import tree
from holdfast.runtime.expressions.casts import cast, moment_literal, struct
from holdfast.runtime.expressions.coercion import as_decimal, comparison_type
from holdfast.runtime.expressions.lists import adapted_type
from holdfast.runtime.expressions.physical import Dialect, NotRenderable, field_name, physical_type, string_literal
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.expressions.tree import Expression, Operator
from holdfast.runtime.functions.declaration import Arguments, Constant, ScalarForm, TableForm, expand
from holdfast.runtime.functions.parameters import ArgumentType, Chosen, LambdaType, Unit
from holdfast.runtime.functions.registry import CURRENT, Release, resolve
from holdfast.types import Array, Decimal, Map, Scalar, SqlType, Struct

__all__ = ["NotRenderable", "render", "render_filter", "renderable"]

_TEMPORAL = (Scalar.TIME, Scalar.DATE, Scalar.TIMESTAMP)
_COMPARISONS = frozenset(
    {
        Operator.EQUAL,
        Operator.NOT_EQUAL,
        Operator.LESS,
        Operator.LESS_EQUAL,
        Operator.GREATER,
        Operator.GREATER_EQUAL,
    }
)


def render(expression: Expression, scope: Scope, dialect: Dialect, *, release: Release = CURRENT) -> str:
    """The text of an expression; its type is `type_of(expression, scope)`. Raises `NotRenderable` for DuckDB only."""
    type_of(expression, scope, release=release)
    return Renderer(scope, dialect, release).text(expression)


def render_filter(expression: Expression, scope: Scope, dialect: Dialect, *, release: Release = CURRENT) -> str:
    """The text of a condition for WHERE: like `render`, but NULL may replace false, so that indexes can be used."""
    type_ = type_of(expression, scope, release=release)
    if type_ is not Scalar.BOOLEAN:
        raise TypeMismatch(f"a condition must be BOOLEAN, not {type_}", position=expression.position)
    return Renderer(scope, dialect, release).condition(expression)


def renderable(expression: Expression, scope: Scope, dialect: Dialect, *, release: Release = CURRENT) -> bool:
    """Whether a well-typed expression can be rendered."""
    try:
        render(expression, scope, dialect, release=release)
    except NotRenderable:
        return False
    return True


class Renderer:
    """Renders one dialect over one scope; call `render` for complete expressions."""

    def __init__(self, scope: Scope, dialect: Dialect, release: Release) -> None:
        self.scope = scope
        self.dialect = dialect
        self.release = release
        self.spark = dialect is Dialect.SPARK

    def infer(self, expression: Expression) -> SqlType | None:
        return infer(expression, self.scope, self.release)

    def argument_type(self, argument: Expression) -> ArgumentType:
        return argument_type(argument, self.scope, self.release)

    def known(self, expression: Expression) -> SqlType:
        return type_of(expression, self.scope, release=self.release)

    def as_type(self, expression: Expression, target: SqlType) -> str:
        """The expression's text, cast to `target`."""
        source = self.infer(expression)
        if source is None:
            return f"CAST(NULL AS {physical_type(target, self.dialect)})"
        if isinstance(expression, tree.StringLiteral) and target in _TEMPORAL:
            moment = moment_literal(expression.value, target, self.dialect)
            if moment is not None:
                return moment
        text = self.text(expression)
        return text if source == target else f"({cast(text, source, target, self.dialect)})"

    def text(self, expression: Expression) -> str:
        match expression:
            case tree.NullLiteral():
                return "NULL"
            case tree.BooleanLiteral(value):
                return "TRUE" if value else "FALSE"
            case tree.IntegerLiteral(number):
                return self._integer(number, self.known(expression))
            case tree.DecimalLiteral(digits):
                type_ = physical_type(literal_decimal(expression), self.dialect)
                return f"CAST('{digits}' AS {type_})"
            case tree.DoubleLiteral(digits):
                return f"CAST('{_java_double(float(digits))}' AS DOUBLE)"
            case tree.StringLiteral(value):
                return string_literal(value, self.dialect)
            case tree.ColumnRef():
                return self.scope.find(expression).sql
            case tree.Binary():
                return self._binary(expression)
            case tree.Not(operand):
                return f"(NOT {self.as_type(operand, Scalar.BOOLEAN)})"
            case tree.Negate(operand):
                return self._negate(expression, operand)
            case tree.IsNull(operand, negated):
                return f"({self.text(operand)} IS {'NOT ' if negated else ''}NULL)"
            case tree.Between(operand, low, high, negated):
                bounds = (
                    self._compare(Operator.GREATER_EQUAL, operand, low),
                    self._compare(Operator.LESS_EQUAL, operand, high),
                )
                return self._negated(f"({self._or_false(bounds[0])} AND {self._or_false(bounds[1])})", negated)
            case tree.InList(operand, items, negated):
                return self._negated(self._or_false(self._in(operand, items)), negated)
            case tree.Like(operand, pattern, escape, negated):
                return self._negated(self._like(operand, pattern, escape), negated)
            case tree.Case():
                return self._case(expression)
            case tree.Cast(operand, target):
                return self.as_type(operand, target)
            case tree.Call():
                return self._call(expression)
            case tree.Subscript(base, index):
                return self._subscript(base, index)
            case tree.FieldRef(base, name):
                return self._field(base, name)
            case tree.ArrayLiteral(items):
                return self._array(expression, items)
            case tree.MapLiteral(entries):
                return self._map(expression, entries)
            case tree.StructLiteral(fields):
                parts = [(field_name(i), self.text(f.expression)) for i, f in enumerate(fields)]
                return struct(parts, self.dialect)
            case tree.Lambda() | tree.IntervalUnit():
                raise NotSupported("lambdas and units are only allowed as arguments", position=expression.position)
            case _:
                assert_never(expression)

    def condition(self, expression: Expression) -> str:
        """The text of a condition for which NULL and false are equivalent."""
        match expression:
            case tree.Binary(Operator.AND | Operator.OR as operator, left, right):
                return f"({self.condition(left)} {operator.value} {self.condition(right)})"
            case tree.Binary(operator, left, right) if operator in _COMPARISONS:
                return self._compare(operator, left, right)
            case tree.Between(operand, low, high, False):
                lower = self._compare(Operator.GREATER_EQUAL, operand, low)
                return f"({lower} AND {self._compare(Operator.LESS_EQUAL, operand, high)})"
            case tree.InList(operand, items, False):
                return self._in(operand, items)
            case _:
                return self.as_type(expression, Scalar.BOOLEAN)

    # ---- kinds of expressions

    @staticmethod
    def _or_false(condition: str) -> str:
        return f"COALESCE({condition}, FALSE)"

    @staticmethod
    def _negated(text: str, negated: bool) -> str:
        return f"(NOT {text})" if negated else text

    def _integer(self, number: int, type_: SqlType) -> str:
        if self.spark:
            return f"{number}L" if type_ is Scalar.BIGINT else str(number)
        return f"({number})::{physical_type(type_, self.dialect)}"

    def _negate(self, expression: tree.Negate, operand: Expression) -> str:
        type_ = self.known(expression)
        if isinstance(operand, tree.IntegerLiteral):
            return f"({self._integer(-operand.value, type_)})"
        return negate(type_, self.text(operand), self.dialect)

    def _binary(self, expression: tree.Binary) -> str:
        operator, left, right = expression.operator, expression.left, expression.right
        if operator in (Operator.AND, Operator.OR):
            sides = (self.as_type(side, Scalar.BOOLEAN) for side in (left, right))
            return f"({f' {operator.value} '.join(sides)})"
        if operator is Operator.CONCAT:
            call = tree.Call("CONCAT", (left, right), False, expression.position)
            return self._call(call)
        if operator in _COMPARISONS:
            return self._or_false(self._compare(operator, left, right))
        if operator in (Operator.IS_DISTINCT, Operator.IS_NOT_DISTINCT):
            return self._compare(operator, left, right)
        return self._arithmetic(expression)

    def _arithmetic(self, expression: tree.Binary) -> str:
        result = self.known(expression)
        left, right = expression.left, expression.right
        if isinstance(result, Decimal):
            sides = [self._decimal_side(side, other) for side, other in ((left, right), (right, left))]
            return decimal_arithmetic(expression.operator, sides[0], sides[1], result, self.dialect)
        a, b = self.as_type(left, result), self.as_type(right, result)
        return arithmetic(expression.operator, result, a, b, self.dialect)

    def _decimal_side(self, side: Expression, other: Expression) -> tuple[str, Decimal]:
        type_ = as_decimal(self.infer(side) or self.known(other))
        return self.as_type(side, type_), type_

    def _compare(self, operator: Operator, left: Expression, right: Expression) -> str:
        a, b = self.infer(left), self.infer(right)
        if a is None or b is None:
            return self._compare_null(operator, left, right)
        type_ = comparison_type(operator, a, b)
        assert type_ is not None
        return comparison(operator, type_, self.as_type(left, type_), self.as_type(right, type_), self.dialect)

    def _compare_null(self, operator: Operator, left: Expression, right: Expression) -> str:
        operand = right if self.infer(left) is None else left
        return f"({self.text(operand)} IS {'NOT ' if operator is Operator.IS_DISTINCT else ''}NULL)"

    def _in(self, operand: Expression, items: tuple[Expression, ...]) -> str:
        """One comparison per item, because the items may be compared in different types."""
        target = self.known(operand)
        same, tests = [], []
        for item in items:
            source = self.infer(item)
            if source is None:
                continue
            if isinstance(target, (Array, Map, Struct)):
                type_ = adapted_type(item, source, target, self.infer)
                assert type_ is not None
                sides = (self.as_type(operand, type_), self.as_type(item, type_))
                tests.append(comparison(Operator.EQUAL, type_, *sides, self.dialect))
                continue
            if isinstance(item, tree.StringLiteral) and target is Scalar.BOOLEAN:
                item = tree.BooleanLiteral(item.value.strip().lower()[:1] in "ty")
            elif isinstance(item, tree.StringLiteral) and source != target and target not in _TEMPORAL:
                item = tree.DecimalLiteral(_digits(item.value))
            elif target is Scalar.STRING and source is not Scalar.STRING:
                item = tree.StringLiteral(_literal_text(item))
            if self.infer(item) == target:
                same.append(self.text(item))
            else:
                tests.append(self._compare(Operator.EQUAL, operand, item))
        if same:
            tests.insert(0, f"{self.text(operand)} IN ({', '.join(same)})")
        return (
            f"({' OR '.join(self._or_false(t) for t in tests)})" if len(tests) > 1 else f"({''.join(tests) or 'FALSE'})"
        )

    def _like(self, operand: Expression, pattern: Expression, escape: str | None) -> str:
        text = self.as_type(operand, Scalar.STRING)
        if isinstance(pattern, tree.StringLiteral):
            return like_constant(text, pattern.value, escape, self.dialect)
        if escape is not None:
            message = "ESCAPE needs a constant pattern"
            raise NotYetSupported(
                Feature.EXPRESSION, "ESCAPE of a computed pattern", message, position=pattern.position
            )
        return like(text, self.as_type(pattern, Scalar.STRING), self.dialect)

    def _case(self, case: tree.Case) -> str:
        type_ = self.known(case)
        parts = ["CASE"]
        for branch in case.branches:
            condition = self._branch(case.operand, branch.condition)
            parts.append(f"WHEN {condition} THEN {self.as_type(branch.result, type_)}")
        if case.otherwise is not None:
            parts.append(f"ELSE {self.as_type(case.otherwise, type_)}")
        return f"({' '.join(parts)} END)"

    def _branch(self, operand: Expression | None, condition: Expression) -> str:
        if operand is None:
            return self.condition(condition)
        return "FALSE" if self.infer(condition) is None else self._compare(Operator.EQUAL, operand, condition)

    def _call(self, call: tree.Call) -> str:
        resolved = resolve(call, [self.argument_type(argument) for argument in call.arguments], self.release)
        if isinstance(resolved.form, TableForm):
            raise NotSupported(
                f"table function {call.shown} is not allowed here",
                hint="Table functions belong in the SELECT list of a query that creates a stream.",
                position=call.position,
            )
        if not isinstance(resolved.form, ScalarForm):
            raise NotSupported(
                f"aggregate function {call.shown} is not allowed here",
                hint="Aggregates belong in the SELECT list or HAVING of a grouped query.",
                position=call.position,
            )
        template = resolved.form.template(self.dialect)
        if template is None:
            raise NotRenderable(call.name)
        texts = tuple(self.argument(a, t) for a, t in zip(call.arguments, resolved.types, strict=True))
        constants = tuple(map(constant_of, call.arguments))
        return f"({expand(template, Arguments(texts, resolved.types, constants, resolved.returns))})"

    def argument(self, expression: Expression, chosen: Chosen) -> str:
        """An argument's text, cast to its chosen type; a lambda in the dialect's syntax."""
        if isinstance(chosen, Unit):
            assert isinstance(expression, tree.IntervalUnit)
            return expression.name
        if not isinstance(chosen, LambdaType):
            return self.as_type(expression, chosen)
        assert isinstance(expression, tree.Lambda)
        names = [f"u{len(self.scope.parameters)}_{i}" for i in range(len(chosen.parameters))]
        columns = map(ScopeColumn, expression.parameters, chosen.parameters, names)
        inner = Renderer(self.scope.with_parameters(columns), self.dialect, self.release)
        body = inner.as_type(expression.body, chosen.returns)
        listed = ", ".join(names)
        if not self.spark:
            return f"lambda {listed}: {body}"
        return f"({listed}) -> {body}" if len(names) > 1 else f"{listed} -> {body}"

    def _subscript(self, base: Expression, index: Expression) -> str:
        container, type_ = self.text(base), self.known(base)
        if isinstance(type_, Map):
            key = self.as_type(index, type_.key)
            return f"try_element_at({container}, {key})" if self.spark else f"map_extract_value({container}, {key})"
        position = self.as_type(index, Scalar.INTEGER)
        if not self.spark:
            return f"list_extract({container}, {position})"
        return f"get({container}, CASE WHEN {position} < 0 THEN size({container}) + {position} ELSE {position} - 1 END)"

    def _field(self, base: Expression, name: str) -> str:
        type_ = self.known(base)
        assert isinstance(type_, Struct)
        index = next(i for i, field in enumerate(type_.fields) if field.name == name)
        if self.spark:
            return f"({self.text(base)}).{field_name(index)}"
        return f"struct_extract({self.text(base)}, '{field_name(index)}')"

    def _array(self, expression: Expression, items: tuple[Expression, ...]) -> str:
        type_ = self.known(expression)
        assert isinstance(type_, Array)
        texts = ", ".join(self.as_type(item, type_.element) for item in items)
        return f"array({texts})" if self.spark else f"[{texts}]"

    def _map(self, expression: Expression, entries: tuple[tree.MapEntry, ...]) -> str:
        type_ = self.known(expression)
        assert isinstance(type_, Map)
        pairs = [(self.as_type(e.key, type_.key), self.as_type(e.value, type_.value)) for e in entries]
        computed = [key for entry, (key, _) in zip(entries, pairs, strict=True) if constant_of(entry.key) is None]
        if self.spark:
            return self._spark_map(type_, pairs, computed)
        if computed or len({key for key, _ in pairs}) < len(pairs):
            raise NotRenderable("MAP with keys that may be NULL or repeated")
        return f"MAP {{{', '.join(f'{key}: {value}' for key, value in pairs)}}}"

    @staticmethod
    def _spark_map(type_: Map, pairs: list[tuple[str, str]], computed: list[str]) -> str:
        """A NULL key becomes the string null if keys are STRINGs, as in ksqlDB's formats; otherwise the MAP is NULL."""
        if type_.key is Scalar.STRING:
            pairs = [(f"COALESCE({key}, 'null')" if key in computed else key, value) for key, value in pairs]
        literal = f"map({', '.join(f'{key}, {value}' for key, value in pairs)})"
        if type_.key is Scalar.STRING or not computed:
            return literal
        return f"(CASE WHEN {' AND '.join(f'{key} IS NOT NULL' for key in computed)} THEN {literal} END)"


def constant_of(expression: Expression) -> Constant:
    """The value of a literal; None for any other expression."""
    match expression:
        case tree.IntegerLiteral(value) | tree.BooleanLiteral(value) | tree.StringLiteral(value):
            return value
        case tree.Negate(tree.IntegerLiteral(value)):
            return -value
        case _:
            return None


def _digits(text: str) -> str:
    """A number as a DECIMAL literal: with a decimal point, without an exponent."""
    digits = format(decimal.Decimal(text.strip()), "f")
    return digits if "." in digits else f"{digits}."


def _literal_text(item: Expression) -> str:
    match item:
        case tree.BooleanLiteral(value):
            return "true" if value else "false"
        case tree.IntegerLiteral(number):
            return str(number)
        case tree.DecimalLiteral(text):
            return text
        case _:
            message = "this item of IN must be a literal"
            raise NotYetSupported(Feature.EXPRESSION, "IN with computed items", message, position=item.position)


def _java_double(value: float) -> str:
    return "Infinity" if value == float("inf") else repr(value)
