"""Transforms the rules of grammar.lark to statements; each method is named after a rule or its alias."""

from lark import Token

from holdfast.runtime.expressions.transform import position_of, unquote
from holdfast.runtime.expressions.tree import (
    BooleanLiteral,
    DecimalLiteral,
    DoubleLiteral,
    Expression,
    IntegerLiteral,
    NullLiteral,
    StringLiteral,
)
from holdfast.sql.syntax.statements.elements import Property
from holdfast.sql.syntax.statements.functions import FunctionTransformer
from holdfast.sql.syntax.statements.holds import HoldTransformer
from holdfast.sql.syntax.statements.indexes import IndexTransformer
from holdfast.sql.syntax.statements.inserts import InsertTransformer
from holdfast.sql.syntax.statements.inspection import InspectionTransformer
from holdfast.sql.syntax.statements.parts import Children, ClausePart, Flag, identifier
from holdfast.sql.syntax.statements.query_control import QueryControlTransformer
from holdfast.sql.syntax.statements.relations import RETAIN_HISTORY, RelationTransformer
from holdfast.sql.syntax.statements.session import SessionTransformer
from holdfast.sql.syntax.statements.statement import Statement
from holdfast.sql.syntax.statements.subscribe import SubscribeTransformer
from holdfast.sql.syntax.statements.topics import TopicTransformer
from holdfast.sql.syntax.statements.types import TypeTransformer
from holdfast.sql.syntax.statements.views import ViewTransformer
from holdfast.sql.syntax.transform_query import QueryTransformer


class StatementTransformer(
    SubscribeTransformer,
    RelationTransformer,
    InsertTransformer,
    TypeTransformer,
    FunctionTransformer,
    ViewTransformer,
    IndexTransformer,
    HoldTransformer,
    QueryControlTransformer,
    InspectionTransformer,
    TopicTransformer,
    SessionTransformer,
    QueryTransformer,
):
    """Builds statements while the parser runs; holds no state."""

    def statement_start(self, children: Children) -> Statement | None:
        return children[0] if children else None

    def or_replace(self, _: Children) -> Flag:
        return Flag("or_replace")

    def if_not_exists(self, _: Children) -> Flag:
        return Flag("if_not_exists")

    def if_exists(self, _: Children) -> Flag:
        return Flag("if_exists")

    def with_clause(self, children: Children) -> ClausePart:
        return ClausePart("with", tuple(children))

    def property(self, children: Children) -> Property:
        name, value = children
        text = unquote(str(name)) if isinstance(name, Token) else str(name)
        return Property(text.upper(), value, position_of(name))

    def property_value(self, children: Children) -> str | int | bool | None:
        value: Expression | Token = children[-1]
        if isinstance(value, Token):
            return -int(str(value))
        match value:
            case IntegerLiteral() | StringLiteral() | BooleanLiteral():
                return value.value
            case DecimalLiteral() | DoubleLiteral():
                return value.text
            case NullLiteral():
                return None
        raise AssertionError(f"{value} is not a literal")

    def columns(self, children: Children) -> ClausePart:
        return ClausePart("columns", tuple(map(identifier, children)))

    def retain_history(self, children: Children) -> Property:
        return Property(RETAIN_HISTORY, unquote(str(children[-1])), position_of(children[0]))

    def cascade(self, _: Children) -> Flag:
        return Flag("cascade")
