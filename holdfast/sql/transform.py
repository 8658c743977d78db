"""From the rules of grammar.lark to statements; a method's name is a rule or an alias of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

from lark import Token

from holdfast.errors import Position, SyntaxProblem
from holdfast.runtime.expressions.transform import ExpressionTransformer, Name, position_of, unquote
from holdfast.runtime.expressions.tree import (
    BooleanLiteral,
    DecimalLiteral,
    DoubleLiteral,
    Expression,
    IntegerLiteral,
    NullLiteral,
    StringLiteral,
)
from holdfast.sql import statements as sql
from holdfast.sql.explain_format import explain_format
from holdfast.types import SqlType

Children = list[Any]
T = TypeVar("T")

LIMIT_MAX = 2**31 - 1
ITEMS = "select list"
ORDER = {
    name: place
    for place, names in enumerate(
        (
            ("JOIN",),
            ("WINDOW",),
            ("WHERE",),
            ("GROUP BY", "GROUP BY ()", "PARTITION BY"),
            ("HAVING",),
            ("ORDER BY",),
            ("EMIT",),
            ("LIMIT",),
        )
    )
    for name in names
}
"""The clauses of a query, by their place in it."""


@dataclass(frozen=True, slots=True)
class _Head:
    """What the two forms of CREATE share."""

    kind: sql.ObjectKind
    name: sql.Identifier
    or_replace: bool
    if_not_exists: bool
    read_only: bool
    position: Position | None


@dataclass(frozen=True, slots=True)
class _Flag:
    name: str


@dataclass(frozen=True, slots=True)
class _Part:
    """One clause of a query until the query is put together."""

    name: str
    value: Any
    position: Position | None = None


def _identifier(name: Name) -> sql.Identifier:
    return sql.Identifier(str(name), name.position)


def _flags(children: Iterable[object]) -> set[str]:
    return {child.name for child in children if isinstance(child, _Flag)}


def _pick(children: Iterable[object], kind: type[T]) -> T | None:
    return next((child for child in children if isinstance(child, kind)), None)


class StatementTransformer(ExpressionTransformer):
    """Builds statements while the parser runs; holds no state."""

    def statement_start(self, children: Children) -> sql.Statement | None:
        return children[0] if children else None

    # ---- CREATE

    def create_head(self, children: Children) -> _Head:
        flags = _flags(children)
        kind = _pick(children, sql.ObjectKind)
        assert kind is not None
        return _Head(
            kind,
            _identifier(children[-1]),
            "or_replace" in flags,
            "if_not_exists" in flags,
            "read_only" in flags,
            position_of(children[0]),
        )

    def or_replace(self, _: Children) -> _Flag:
        return _Flag("or_replace")

    def read_only(self, _: Children) -> _Flag:
        return _Flag("read_only")

    def if_not_exists(self, _: Children) -> _Flag:
        return _Flag("if_not_exists")

    def if_exists(self, _: Children) -> _Flag:
        return _Flag("if_exists")

    def kind(self, children: Children) -> sql.ObjectKind:
        return sql.ObjectKind(str(children[0]).upper())

    def create_source(self, children: Children) -> sql.CreateSource:
        head, *rest = children
        parts = {part.name: part.value for part in rest}
        return sql.CreateSource(
            kind=head.kind,
            name=head.name,
            columns=parts.get("columns", ()),
            properties=parts.get("with", ()),
            or_replace=head.or_replace,
            if_not_exists=head.if_not_exists,
            read_only=head.read_only,
            position=head.position,
        )

    def create_as(self, children: Children) -> sql.CreateAs:
        head, *rest = children
        if head.read_only:
            raise SyntaxProblem(
                f"a SOURCE {head.kind} cannot be created from a query",
                hint="Leave out SOURCE.",
                position=head.position,
            )
        with_ = _pick(rest, _Part)
        return sql.CreateAs(
            kind=head.kind,
            name=head.name,
            properties=with_.value if with_ else (),
            select=rest[-1],
            or_replace=head.or_replace,
            if_not_exists=head.if_not_exists,
            position=head.position,
        )

    def table_elements(self, children: Children) -> _Part:
        return _Part("columns", tuple(children))

    def table_element(self, children: Children) -> sql.ColumnDefinition:
        name: Name = children[0]
        type_: SqlType = children[1]
        marker, header = children[2] if len(children) > 2 else (sql.Marker.NONE, None)
        return sql.ColumnDefinition(str(name), type_, marker, header, name.position)

    def key_marker(self, _: Children) -> tuple[sql.Marker, str | None]:
        return sql.Marker.KEY, None

    def primary_key_marker(self, _: Children) -> tuple[sql.Marker, str | None]:
        return sql.Marker.PRIMARY_KEY, None

    def headers_marker(self, _: Children) -> tuple[sql.Marker, str | None]:
        return sql.Marker.HEADERS, None

    def header_marker(self, children: Children) -> tuple[sql.Marker, str | None]:
        return sql.Marker.HEADERS, unquote(str(children[0]))

    def with_clause(self, children: Children) -> _Part:
        return _Part("with", tuple(children))

    def property(self, children: Children) -> sql.Property:
        name, value = children
        text = unquote(str(name)) if isinstance(name, Token) else str(name)
        return sql.Property(text.upper(), value, position_of(name))

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
        raise AssertionError(f"{value} is no literal")

    # ---- INSERT, DROP, SHOW and the small ones

    def insert_values(self, children: Children) -> sql.InsertValues:
        columns = children[2].value if len(children) > 3 else ()
        return sql.InsertValues(
            target=_identifier(children[1]),
            columns=columns,
            values=tuple(children[-1]),
            position=position_of(children[0]),
        )

    def columns(self, children: Children) -> _Part:
        return _Part("columns", tuple(map(_identifier, children)))

    def insert_select(self, children: Children) -> sql.Refused:
        return sql.Refused("INSERT INTO … SELECT", position_of(children[0]))

    def drop(self, children: Children) -> sql.Drop:
        flags = _flags(children)
        name = _pick(children, Name)
        assert name is not None
        return sql.Drop(
            kind=children[1],
            name=_identifier(name),
            if_exists="if_exists" in flags,
            delete_topic="delete_topic" in flags,
            position=position_of(children[0]),
        )

    def delete_topic(self, _: Children) -> _Flag:
        return _Flag("delete_topic")

    def show(self, children: Children) -> sql.Show:
        return sql.Show(children[1], "extended" in _flags(children), position_of(children[0]))

    def listing(self, children: Children) -> sql.Listing:
        return sql.Listing(str(children[0]).upper())

    def extended(self, _: Children) -> _Flag:
        return _Flag("extended")

    def describe(self, children: Children) -> sql.Describe:
        return sql.Describe(_identifier(children[1]), "extended" in _flags(children), position_of(children[0]))

    def describe_function(self, children: Children) -> sql.DescribeFunction:
        return sql.DescribeFunction(_identifier(children[1]), position_of(children[0]))

    def explain_statement(self, children: Children) -> sql.ExplainStatement:
        return sql.ExplainStatement(children[-1], _pick(children, sql.ExplainFormat), position=position_of(children[0]))

    def explain_query(self, children: Children) -> sql.ExplainQuery:
        return sql.ExplainQuery(_identifier(children[-1]), _pick(children, sql.ExplainFormat), position_of(children[0]))

    def explain_format(self, children: Children) -> sql.ExplainFormat:
        return explain_format(str(children[0]), position_of(children[0]))

    def set_property(self, children: Children) -> sql.SetProperty:
        set_, name, value = children
        return sql.SetProperty(unquote(str(name)), unquote(str(value)), position_of(set_))

    def unset_property(self, children: Children) -> sql.UnsetProperty:
        return sql.UnsetProperty(unquote(str(children[1])), position_of(children[0]))

    def define(self, children: Children) -> sql.Define:
        define, name, value = children
        return sql.Define(_identifier(name), unquote(str(value)), position_of(define))

    def undefine(self, children: Children) -> sql.Undefine:
        return sql.Undefine(_identifier(children[1]), position_of(children[0]))

    def terminate(self, children: Children) -> sql.Terminate:
        query = children[1]
        return sql.Terminate(_identifier(query) if isinstance(query, Name) else None, position_of(children[0]))

    # ---- SELECT

    def select(self, children: Children) -> sql.Select:
        relation = _pick(children, sql.Relation)
        assert relation is not None
        parts = [child for child in children if isinstance(child, _Part)]
        _check_order(parts)
        value = {part.name: part.value for part in parts}
        distinct = [child for child in children if isinstance(child, Token) and child.type == "DISTINCT"]
        clauses = [sql.Clause("DISTINCT", position_of(token)) for token in distinct]
        clauses += [part.value for part in parts if isinstance(part.value, sql.Clause)]
        return sql.Select(
            items=value[ITEMS],
            relation=relation,
            where=value.get("WHERE"),
            group_by=value.get("GROUP BY", ()),
            having=value.get("HAVING"),
            emit=value.get("EMIT"),
            limit=value.get("LIMIT"),
            clauses=tuple(clauses),
            position=position_of(children[0]),
        )

    def select_items(self, children: Children) -> _Part:
        return _Part(ITEMS, tuple(children))

    def bare_item(self, children: Children) -> sql.SelectItem:
        return sql.SelectExpression(children[0], None, position_of(children[0]))

    def named_item(self, children: Children) -> sql.SelectItem:
        return sql.SelectExpression(children[0], str(children[1]), position_of(children[0]))

    def alias(self, children: Children) -> str:
        return str(children[0])

    def keyword_alias(self, children: Children) -> str:
        return str(children[0]).upper()

    def star(self, children: Children) -> sql.SelectItem:
        return sql.SelectStar(None, position_of(children[0]))

    def qualified_star(self, children: Children) -> sql.SelectItem:
        return sql.SelectStar(str(children[0]), position_of(children[0]))

    def fields_star(self, children: Children) -> sql.SelectItem:
        return sql.SelectFields(children[0], position_of(children[0]))

    def relation(self, children: Children) -> sql.Relation:
        return sql.Relation(str(children[0]), str(children[-1]), position_of(children[0]))

    def where(self, children: Children) -> _Part:
        return _Part("WHERE", children[1], position_of(children[0]))

    def group_by(self, children: Children) -> _Part:
        return _Part("GROUP BY", tuple(children[1]), position_of(children[0]))

    def group_by_set(self, children: Children) -> _Part:
        return _Part("GROUP BY", tuple(children[1:]), position_of(children[0]))

    def group_by_nothing(self, children: Children) -> _Part:
        return _clause("GROUP BY ()", children)

    def having(self, children: Children) -> _Part:
        return _Part("HAVING", children[1], position_of(children[0]))

    def emit(self, children: Children) -> _Part:
        return _Part("EMIT", sql.Emit(str(children[1]).upper()), position_of(children[0]))

    def limit(self, children: Children) -> _Part:
        value = int(str(children[1]))
        if value > LIMIT_MAX:
            raise SyntaxProblem(f"a LIMIT must be at most {LIMIT_MAX}", position=position_of(children[1]))
        return _Part("LIMIT", value, position_of(children[0]))

    def join(self, children: Children) -> _Part:
        return _clause("JOIN", children)

    def window(self, children: Children) -> _Part:
        return _clause("WINDOW", children)

    def partition_by(self, children: Children) -> _Part:
        return _clause("PARTITION BY", children)

    def order_by(self, children: Children) -> _Part:
        return _clause("ORDER BY", children)


def _clause(name: str, children: Children) -> _Part:
    position = position_of(_pick(children, Token))
    return _Part(name, sql.Clause(name, position), position)


def _check_order(parts: list[_Part]) -> None:
    """Refuse clauses that are out of order or given twice."""
    written = [part for part in parts if part.name in ORDER]
    for before, after in pairwise(written):
        first, second = ORDER[before.name], ORDER[after.name]
        if before.name == after.name and before.name != "JOIN":
            raise SyntaxProblem(f"{after.name} is given twice", position=after.position)
        if second < first:
            raise SyntaxProblem(f"{after.name} must come before {before.name}", position=after.position)
