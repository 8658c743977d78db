"""The canonical text of an expression, as plans store it.

Law: parsing the text gives the same tree.
"""

from typing import assert_never

from holdfast.names import PLAIN, literal, quote
from holdfast.runtime.expressions import tree
from holdfast.runtime.expressions.lexer import OPENERS, RESERVED
from holdfast.runtime.expressions.tree import Expression
from holdfast.types import Array, Map, SqlType, Struct


def format_name(name: str) -> str:
    """A name, in back-quotes if it would not be parsed as the same name."""
    return quote(name) if name in OPENERS else _plain(name)


def _plain(name: str) -> str:
    """A name on its own: MAP and STRUCT are names there, and ARRAY if no `[` follows."""
    return name if PLAIN.match(name) and name not in RESERVED and name != "ARRAY" else quote(name)


def format_type(type_: SqlType) -> str:
    """A type inside an expression; field names are quoted like other names."""
    match type_:
        case Array(element):
            return f"ARRAY<{format_type(element)}>"
        case Map(key, value):
            return f"MAP<{format_type(key)}, {format_type(value)}>"
        case Struct(fields) if fields:
            return f"STRUCT<{', '.join(f'{format_name(f.name)} {format_type(f.type)}' for f in fields)}>"
        case _:
            return str(type_)


def format_named(named: tree.NamedExpression) -> str:
    return f"{format_expression(named.expression)} AS {_plain(named.name)}"


def format_expression(expression: Expression) -> str:
    match expression:
        case tree.NullLiteral():
            return "null"
        case tree.BooleanLiteral(value):
            return "true" if value else "false"
        case tree.IntegerLiteral(number):
            return str(number)
        case tree.DecimalLiteral(text) | tree.DoubleLiteral(text):
            return text
        case tree.StringLiteral(text):
            return literal(text)
        case tree.ColumnRef(name, qualifier):
            return _plain(name) if qualifier is None else f"{format_name(qualifier)}.{format_name(name)}"
        case tree.IntervalUnit(name):
            return name
        case tree.Binary(operator, left, right):
            return f"({format_expression(left)} {operator.value} {format_expression(right)})"
        case tree.Not(operand):
            return f"(NOT {format_expression(operand)})"
        case tree.Negate(operand):
            text = format_expression(operand)
            return f"- {text}" if text.startswith("-") else f"-{text}"
        case tree.IsNull(operand, negated):
            return f"({format_expression(operand)} IS {_not(negated)}NULL)"
        case tree.Between(operand, low, high, negated):
            bounds = f"{format_expression(low)} AND {format_expression(high)}"
            return f"({format_expression(operand)} {_not(negated)}BETWEEN {bounds})"
        case tree.InList(operand, items, negated):
            return f"({format_expression(operand)} {_not(negated)}IN ({_list(items)}))"
        case tree.Like(operand, pattern, escape, negated):
            end = f" ESCAPE {literal(escape)}" if escape is not None else ""
            return f"({format_expression(operand)} {_not(negated)}LIKE {format_expression(pattern)}{end})"
        case tree.Case():
            return _case(expression)
        case tree.Cast(operand, type_):
            return f"CAST({format_expression(operand)} AS {format_type(type_)})"
        case tree.Call(name, arguments, star):
            return f"{format_name(name)}({'*' if star else _list(arguments)})"
        case tree.Subscript(base, index):
            return f"{_base(base)}[{format_expression(index)}]"
        case tree.FieldRef(base, name):
            return f"{_base(base)}->{format_name(name)}"
        case tree.ArrayLiteral(items):
            return f"ARRAY[{_list(items)}]"
        case tree.MapLiteral(entries):
            pairs = (f"{format_expression(entry.key)}:={format_expression(entry.value)}" for entry in entries)
            return f"MAP({', '.join(pairs)})"
        case tree.StructLiteral(fields):
            parts = (f"{format_name(field.name)}:={format_expression(field.expression)}" for field in fields)
            return f"STRUCT({', '.join(parts)})"
        case tree.Lambda(parameters, body):
            return f"({', '.join(map(format_name, parameters))}) => {format_expression(body)}"
        case _:
            assert_never(expression)


def _list(items: tuple[Expression, ...]) -> str:
    return ", ".join(map(format_expression, items))


def _not(negated: bool) -> str:
    return "NOT " if negated else ""


def _base(expression: Expression) -> str:
    """The operand of `[` or `->`; a minus binds less tightly than those."""
    text = format_expression(expression)
    return f"({text})" if isinstance(expression, tree.Negate) else text


def _case(case: tree.Case) -> str:
    parts = ["CASE"]
    if case.operand is not None:
        parts.append(format_expression(case.operand))
    for branch in case.branches:
        parts.append(f"WHEN {format_expression(branch.condition)} THEN {format_expression(branch.result)}")
    if case.otherwise is not None:
        parts.append(f"ELSE {format_expression(case.otherwise)}")
    return f"({' '.join(parts)} END)"
