"""Builds the expression tree, types and schemas from Lark's rules; statement transformers inherit it.

A method's name is a rule or an alias of grammar.lark; it takes the children of that rule in order.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from lark import Token, Transformer

from holdfast.errors import Feature, NotYetSupported, Position, SyntaxProblem, UnknownObject
from holdfast.runtime.expressions import tree
from holdfast.runtime.expressions.tree import Expression, Operator
from holdfast.types import Array, Column, Decimal, Map, Role, Scalar, Schema, SqlType, Struct, StructField

Children = list[Any]

SCALARS: Mapping[str, Scalar] = {
    **{scalar.value: scalar for scalar in Scalar},
    "BOOL": Scalar.BOOLEAN,
    "INT": Scalar.INTEGER,
    "INT4": Scalar.INTEGER,
    "INT8": Scalar.BIGINT,
    "FLOAT8": Scalar.DOUBLE,
    "VARCHAR": Scalar.STRING,
    "TEXT": Scalar.STRING,
    "BYTEA": Scalar.BYTES,
    "TIMESTAMPTZ": Scalar.TIMESTAMP,
}

DECIMALS = ("DECIMAL", "NUMERIC", "DEC")
NESTED = ("ARRAY", "MAP", "STRUCT")
BUILT_IN = frozenset({*SCALARS, *DECIMALS, *NESTED})
"""The names of all built-in types."""

# Names of user types (CREATE TYPE), set by the statement layer while it parses.
custom_types: ContextVar[Mapping[str, SqlType]] = ContextVar("custom_types", default=MappingProxyType({}))

# ksqlDB's grammar takes a bare unit as the first argument of these and only these functions.
UNIT_FUNCTIONS = frozenset({"DATEADD", "DATESUB", "TIMEADD", "TIMESUB", "TIMESTAMPADD", "TIMESTAMPSUB"})
UNITS = frozenset(
    f"{unit}{plural}"
    for unit in ("DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "WEEK", "MONTH", "YEAR")
    for plural in ("", "S")
)

MAX_PRECISION = 38


class Name(str):
    """An identifier after case folding, with its position in the text."""

    __slots__ = ("position", "quoted")
    position: Position
    quoted: bool


def position_of(child: object) -> Position | None:
    """Where a token, a name or a finished node begins."""
    if isinstance(child, Token):
        return Position(child.line or 1, child.column or 1, child.start_pos or 0)
    return getattr(child, "position", None)


def unquote(token: str) -> str:
    """The text inside a quoted token; a doubled quote is one quote."""
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote)


class ExpressionTransformer(Transformer[Token, object]):
    """Builds the tree while the parser runs; holds no state."""

    def expression_start(self, children: Children) -> object:
        return children[0]

    type_start = expression_start

    def named_start(self, children: Children) -> tree.NamedExpression:
        expression, name = children
        return tree.NamedExpression(str(name), expression)

    def schema_start(self, children: Children) -> Schema:
        return children[0] if children else Schema(())

    def identifier(self, children: Children) -> Name:
        token = children[0]
        assert isinstance(token, Token)
        quoted = token.type == "QUOTED"
        name = Name(unquote(token) if quoted else token.upper())
        name.position = position_of(token)  # type: ignore[assignment]
        name.quoted = quoted
        return name

    # ---- literals

    def null(self, children: Children) -> Expression:
        return tree.NullLiteral(position_of(children[0]))

    def true(self, children: Children) -> Expression:
        return tree.BooleanLiteral(True, position_of(children[0]))

    def false(self, children: Children) -> Expression:
        return tree.BooleanLiteral(False, position_of(children[0]))

    def integer(self, children: Children) -> Expression:
        return tree.IntegerLiteral(int(str(children[0])), position_of(children[0]))

    def decimal(self, children: Children) -> Expression:
        return tree.DecimalLiteral(str(children[0]), position_of(children[0]))

    def double(self, children: Children) -> Expression:
        return tree.DoubleLiteral(str(children[0]), position_of(children[0]))

    def string(self, children: Children) -> Expression:
        return tree.StringLiteral(unquote(str(children[0])), position_of(children[0]))

    def array(self, children: Children) -> Expression:
        items: tuple[Expression, ...] = tuple(children[1]) if len(children) > 1 else ()
        return tree.ArrayLiteral(items, position_of(children[0]))

    def map(self, children: Children) -> Expression:
        return tree.MapLiteral(tuple(children[1:]), position_of(children[0]))

    def map_entry(self, children: Children) -> tree.MapEntry:
        return tree.MapEntry(*children)

    def struct(self, children: Children) -> Expression:
        return tree.StructLiteral(tuple(children[1:]), position_of(children[0]))

    def struct_entry(self, children: Children) -> tree.NamedExpression:
        return tree.NamedExpression(str(children[0]), children[1])

    # ---- operators

    def binary(self, children: Children) -> Expression:
        left, operator, right = children
        return tree.Binary(Operator(str(operator).upper()), left, right, position_of(left))

    def not_(self, children: Children) -> Expression:
        return tree.Not(children[1], position_of(children[0]))

    def negate(self, children: Children) -> Expression:
        return tree.Negate(children[1], position_of(children[0]))

    def is_null(self, children: Children) -> Expression:
        return tree.IsNull(children[0], len(children) > 1, position_of(children[0]))

    def is_distinct(self, children: Children) -> Expression:
        operator = Operator.IS_NOT_DISTINCT if len(children) == 3 else Operator.IS_DISTINCT
        return tree.Binary(operator, children[0], children[-1], position_of(children[0]))

    def between(self, children: Children) -> Expression:
        negated, (operand, low, high) = _without_not(children)
        return tree.Between(operand, low, high, negated, position_of(operand))

    def in_list(self, children: Children) -> Expression:
        negated, (operand, items) = _without_not(children)
        return tree.InList(operand, tuple(items), negated, position_of(operand))

    def like(self, children: Children) -> Expression:
        negated, (operand, pattern, *escape) = _without_not(children)
        character = unquote(str(escape[0])) if escape else None
        if character is not None and len(character) != 1:
            raise SyntaxProblem("ESCAPE must be a single character", position=position_of(escape[0]))
        return tree.Like(operand, pattern, character, negated, position_of(operand))

    def searched_case(self, children: Children) -> Expression:
        return _case(None, children[1:], position_of(children[0]))

    def simple_case(self, children: Children) -> Expression:
        return _case(children[1], children[2:], position_of(children[0]))

    def when(self, children: Children) -> tree.When:
        return tree.When(*children)

    def cast(self, children: Children) -> Expression:
        return tree.Cast(children[1], children[2], position_of(children[0]))

    def cast_after(self, children: Children) -> Expression:
        return tree.Cast(children[0], children[1], position_of(children[0]))

    # ---- names and calls

    def column(self, children: Children) -> Expression:
        return tree.ColumnRef(str(children[0]), None, position_of(children[0]))

    def qualified_column(self, children: Children) -> Expression:
        return tree.ColumnRef(str(children[1]), str(children[0]), position_of(children[0]))

    def typed_literal(self, children: Children) -> Expression:
        """`DATE '2024-01-31'` is a cast of the string."""
        name, text = children
        literal = tree.StringLiteral(unquote(str(text)), position_of(text))
        return tree.Cast(literal, self.named_type([name]), position_of(name))

    def call(self, children: Children) -> Expression:
        name = str(children[0]).upper()
        arguments: tuple[Expression, ...] = tuple(children[1]) if len(children) > 1 else ()
        if name in UNIT_FUNCTIONS and arguments:
            first = arguments[0]
            if isinstance(first, tree.ColumnRef) and first.qualifier is None and first.name in UNITS:
                arguments = (tree.IntervalUnit(first.name, first.position), *arguments[1:])
        return tree.Call(name, arguments, False, position_of(children[0]))

    def call_star(self, children: Children) -> Expression:
        return tree.Call(str(children[0]).upper(), (), True, position_of(children[0]))

    def arguments(self, children: Children) -> Children:
        return children

    expression_list = arguments

    def lambda_(self, children: Children) -> Expression:
        *parameters, body = children
        names = []
        for parameter in parameters:
            if not isinstance(parameter, tree.ColumnRef) or parameter.qualifier is not None:
                raise SyntaxProblem("the parameters of a lambda must be names", position=position_of(parameter))
            names.append(parameter.name)
        return tree.Lambda(tuple(names), body, position_of(parameters[0]))

    def subscript(self, children: Children) -> Expression:
        return tree.Subscript(children[0], children[1], position_of(children[0]))

    def field_ref(self, children: Children) -> Expression:
        return tree.FieldRef(children[0], str(children[1]), position_of(children[0]))

    # ---- types and schemas

    def named_type(self, children: Children) -> SqlType:
        name, *numbers = children
        parameters = [int(str(number)) for number in numbers]
        assert isinstance(name, Name)
        custom = custom_types.get()
        if name in custom and not parameters:
            return custom[name]
        upper = name.upper()
        if upper in DECIMALS:
            return _decimal(parameters, name.position)
        if upper in SCALARS and (not parameters or (upper == "VARCHAR" and len(parameters) == 1)):
            return SCALARS[upper]
        if parameters:
            raise SyntaxProblem(f"type {upper} takes no parameters", position=name.position)
        known = [*NESTED, "DECIMAL", *SCALARS, *custom]
        raise UnknownObject(name, kind="type", known=sorted(known), position=name.position)

    def text_type(self, children: Children) -> SqlType:
        return self._only(children[0], "VARCHAR", Scalar.STRING, "(STRING)")

    def zoned_type(self, children: Children) -> SqlType:
        return self._only(children[0], "TIMESTAMP", Scalar.TIMESTAMP, "WITH TIME ZONE")

    def precise_type(self, children: Children) -> SqlType:
        return self._only(children[0], "DOUBLE", Scalar.DOUBLE, "PRECISION")

    @staticmethod
    def _only(name: object, expected: str, type_: SqlType, suffix: str) -> SqlType:
        if str(name) != expected:
            raise SyntaxProblem(f"only {expected} can be followed by {suffix}", position=position_of(name))
        return type_

    def array_type(self, children: Children) -> SqlType:
        return Array(children[-1])

    def map_type(self, children: Children) -> SqlType:
        return Map(children[-2], children[-1])

    def struct_type(self, children: Children) -> SqlType:
        return Struct(tuple(child for child in children if isinstance(child, StructField)))

    def struct_field(self, children: Children) -> StructField:
        return StructField(str(children[0]), children[1])

    def schema(self, children: Children) -> Schema:
        return Schema(tuple(children))

    def column_definition(self, children: Children) -> Column:
        name, type_, *role = children
        kind, header = role[0] if role else (Role.VALUE, None)
        return Column(str(name), type_, kind, header)

    def key_role(self, _: Children) -> tuple[Role, str | None]:
        return Role.KEY, None

    primary_key_role = key_role

    def headers_role(self, _: Children) -> tuple[Role, str | None]:
        return Role.HEADERS, None

    def header_role(self, children: Children) -> tuple[Role, str | None]:
        return Role.HEADERS, unquote(str(children[0]))


def _without_not(children: Children) -> tuple[bool, Children]:
    negated = isinstance(children[1], Token) and children[1].type == "NOT"
    return negated, [children[0], *children[2:]] if negated else children


def _case(operand: Expression | None, children: Children, position: Position | None) -> Expression:
    branches = tuple(child for child in children if isinstance(child, tree.When))
    otherwise = children[-1] if len(branches) < len(children) else None
    return tree.Case(operand, branches, otherwise, position)


def _decimal(parameters: list[int], position: Position) -> SqlType:
    if not parameters or len(parameters) > 2:
        raise SyntaxProblem(
            "type DECIMAL takes a precision and a scale", hint="Write DECIMAL(10, 2).", position=position
        )
    precision, scale = (*parameters, 0)[:2]
    if precision > MAX_PRECISION:
        raise NotYetSupported(
            Feature.TYPE,
            f"DECIMAL of more than {MAX_PRECISION} digits",
            f"a DECIMAL has at most {MAX_PRECISION} digits, not {precision}",
            hint="A DOUBLE has a greater range, with 15 exact digits.",
            position=position,
        )
    if precision < 1:
        raise SyntaxProblem(
            f"the precision of a DECIMAL must be between 1 and {MAX_PRECISION}, not {precision}", position=position
        )
    if scale > precision:
        raise SyntaxProblem(
            f"the scale of a DECIMAL must be at most its precision: DECIMAL({precision}, {scale})", position=position
        )
    return Decimal(precision, scale)
