"""Transforms the grammar rules of queries to `Select`, and checks the order of their clauses."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from lark import Token

from holdfast.errors import BindError, Position, SyntaxProblem, nearest
from holdfast.runtime.expressions.transform import ExpressionTransformer, position_of, unquote
from holdfast.runtime.expressions.tree import BooleanLiteral, Call, Expression, StringLiteral
from holdfast.runtime.plan.steps import JoinType
from holdfast.runtime.plan.windows import HoppingWindow, SessionWindow, TumblingWindow, WindowTime
from holdfast.sql.syntax import statements as sql
from holdfast.sql.syntax.span import INTERVAL, UNITS, span_of
from holdfast.sql.syntax.statements.parts import Children, ClausePart, Flag, flags, identifier, pick
from holdfast.types import SqlType, Struct, StructField

LIMIT_MAX = 2**31 - 1
ITEMS = "select list"
ORDER = {
    name: rank
    for rank, names in enumerate(
        (
            ("JOIN",),
            ("WINDOW",),
            ("WHERE",),
            ("GROUP BY", "GROUP BY ()"),
            ("PARTITION BY",),
            ("HAVING",),
            ("ORDER BY",),
            ("EMIT",),
            ("LIMIT", "OFFSET"),
            ("AS OF",),
        )
    )
    for name in names
}
"""The required order of the clauses of a query."""
JOINS = {"INNER": JoinType.INNER, "LEFT": JoinType.LEFT, "RIGHT": JoinType.RIGHT, "FULL": JoinType.OUTER}


@dataclass(frozen=True, slots=True)
class Operand:
    """A part of a union, and the clauses after it."""

    part: sql.UnionPart
    ending: dict[str, Any]
    position: Position | None


class QueryTransformer(ExpressionTransformer):
    """Builds queries while the parser runs; holds no state."""

    def select(self, children: Children) -> sql.Select:
        relation, *crossed = [child for child in children if isinstance(child, sql.RelationReference)]
        parts = [child for child in children if isinstance(child, ClausePart)]
        _check_order(parts)
        value = {part.name: part.value for part in parts}
        distinct = [child for child in children if isinstance(child, Token) and child.type == "DISTINCT"]
        joins = [_crossed(each, each.position) for each in crossed]
        joins += [part.value for part in parts if part.name == "JOIN"]
        derived = [each for each in (relation, *(join.relation for join in joins)) if each.query is not None]
        clauses = [sql.Clause("DISTINCT", position_of(token)) for token in distinct]
        clauses += [sql.Clause("a query in FROM", each.position) for each in derived]
        clauses += [part.value for part in parts if isinstance(part.value, sql.Clause)]
        clauses += [sql.Clause(part.name, part.position) for part in parts if part.name in ("ORDER BY", "OFFSET")]
        return sql.Select(
            items=value[ITEMS],
            relation=relation,
            distinct=bool(distinct),
            order_by=value.get("ORDER BY", ()),
            offset=value.get("OFFSET"),
            joins=tuple(joins),
            window=value.get("WINDOW"),
            where=value.get("WHERE"),
            partition_by=value.get("PARTITION BY", ()),
            group_by=value.get("GROUP BY", ()),
            having=value.get("HAVING"),
            emit=value.get("EMIT"),
            limit=value.get("LIMIT"),
            as_of=value.get("AS OF"),
            clauses=tuple(clauses),
            position=position_of(children[0]),
        )

    def query(self, children: Children) -> sql.Select:
        """The first SELECT, with the WITH tables before it and the unions after it."""
        tables = next((child.value for child in children if isinstance(child, ClausePart)), ())
        select = pick(children, sql.Select)
        assert select is not None
        operands = [child for child in children if isinstance(child, Operand)]
        if operands:
            select = _united(select, operands)
        if tables:
            clause = sql.Clause("WITH", tables[0].name.position)
            select = replace(select, tables=tables, clauses=(clause, *select.clauses))
        return select

    def common_tables(self, children: Children) -> ClausePart:
        return ClausePart("tables", tuple(children))

    def common_table(self, children: Children) -> sql.CommonTable:
        name, columns = children[0], pick(children, ClausePart)
        return sql.CommonTable(identifier(name), columns.value if columns else (), children[-1])

    def union_part(self, children: Children) -> Operand:
        """The clauses at the end of a SELECT without parentheses belong to the union, or are misplaced."""
        select: sql.Select = children[-1]
        bare = replace(select, order_by=(), limit=None, offset=None, as_of=None, emit=None)
        return Operand(sql.UnionPart(bare, _is_all(children)), _ending(select), select.position)

    def bracketed_part(self, children: Children) -> Operand:
        select = pick(children, sql.Select)
        assert select is not None
        parts = [child for child in children if isinstance(child, ClausePart)]
        _check_order(parts)
        return Operand(
            sql.UnionPart(select, _is_all(children)), {part.name: part.value for part in parts}, select.position
        )

    # ---- queries inside expressions

    def scalar_query(self, children: Children) -> Expression:
        return _query_ref(children[-1], sql.QueryForm.SCALAR)

    def exists_query(self, children: Children) -> Expression:
        return _query_ref(children[-1], sql.QueryForm.EXISTS)

    def in_query(self, children: Children) -> Expression:
        operand, query = children[0], children[-1]
        return replace(
            _query_ref(query, sql.QueryForm.IN),
            operand=operand,
            negated=len(children) > 2,
            position=position_of(operand),
        )

    # ---- the select list

    def select_items(self, children: Children) -> ClausePart:
        return ClausePart(ITEMS, tuple(children))

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

    # ---- relations

    def relation(self, children: Children) -> sql.RelationReference:
        return sql.RelationReference(str(children[0]), str(children[-1]), position_of(children[0]))

    def schema_relation(self, children: Children) -> sql.RelationReference:
        schema, name, *alias = children
        return sql.RelationReference(
            str(name), str(alias[0] if alias else name), position_of(schema), schema=str(schema)
        )

    def derived_relation(self, children: Children) -> sql.RelationReference:
        query, *alias = children
        return sql.RelationReference("", str(alias[0]) if alias else "", query.position, query=query)

    def cross_join(self, children: Children) -> ClausePart:
        position = position_of(children[0])
        return ClausePart("JOIN", _crossed(children[-1], position), position)

    def join(self, children: Children) -> ClausePart:
        relation = pick(children, sql.RelationReference)
        assert relation is not None
        position = position_of(pick(children, Token))
        kind = pick(children, JoinType) or JoinType.INNER
        join = sql.Join(kind, relation, children[-1], pick(children, sql.Within), position)
        return ClausePart("JOIN", join, position)

    def join_type(self, children: Children) -> JoinType:
        return JOINS[str(children[0]).upper()]

    def within(self, children: Children) -> sql.Within:
        spans = [child for child in children if isinstance(child, WindowTime)]
        grace = pick(children, ClausePart)
        return sql.Within(spans[0], spans[-1], grace.value if grace else None)

    def grace(self, children: Children) -> ClausePart:
        return ClausePart("GRACE PERIOD", children[0])

    def retention(self, children: Children) -> ClausePart:
        return ClausePart("RETENTION", children[0])

    def span(self, children: Children) -> WindowTime:
        number, unit = children
        found = UNITS.get(str(unit).upper().removesuffix("S"))
        if found is None:
            hint = nearest(str(unit), [str(known) for known in UNITS.values()], plural="units")
            raise SyntaxProblem(f'"{unit}" is not a unit of time', hint=hint, position=position_of(unit))
        return span_of(int(str(number)), found, position_of(number))

    # ---- structs

    def struct_field(self, children: Children) -> ClausePart:  # type: ignore[override]
        return ClausePart(str(children[0]), children[1], position_of(children[0]))

    def struct_type(self, children: Children) -> SqlType:
        fields = [child for child in children if isinstance(child, ClausePart)]
        _check_fields([(field.name, field.position) for field in fields])
        return Struct(tuple(StructField(field.name, field.value) for field in fields))

    def struct(self, children: Children) -> Expression:
        _check_fields([(entry.name, entry.expression.position) for entry in children[1:]])
        return super().struct(children)

    # ---- windows

    def window(self, children: Children) -> ClausePart:
        position = position_of(children[0])
        return ClausePart("WINDOW", sql.Window(children[-1], position), position)

    def tumbling(self, children: Children) -> TumblingWindow:
        retention, grace = _options(children)
        return TumblingWindow(size=children[1], retention=retention, grace_period=grace, emit_strategy=None)

    def hopping(self, children: Children) -> HoppingWindow:
        retention, grace = _options(children)
        size, advance = children[1:3]
        return HoppingWindow(size=size, advance_by=advance, retention=retention, grace_period=grace, emit_strategy=None)

    def session(self, children: Children) -> SessionWindow:
        retention, grace = _options(children)
        return SessionWindow(gap=children[1], retention=retention, grace_period=grace, emit_strategy=None)

    # ---- the other clauses

    def where(self, children: Children) -> ClausePart:
        return ClausePart("WHERE", children[1], position_of(children[0]))

    def partition_by(self, children: Children) -> ClausePart:
        return ClausePart("PARTITION BY", tuple(children[1]), position_of(children[0]))

    def partition_by_set(self, children: Children) -> ClausePart:
        return ClausePart("PARTITION BY", tuple(children[1:]), position_of(children[0]))

    def group_by(self, children: Children) -> ClausePart:
        return ClausePart("GROUP BY", tuple(children[1:]), position_of(children[0]))

    def group_by_set(self, children: Children) -> ClausePart:
        return ClausePart("GROUP BY", tuple(children[1:]), position_of(children[0]))

    def group_by_nothing(self, children: Children) -> ClausePart:
        return _clause("GROUP BY ()", children)

    def having(self, children: Children) -> ClausePart:
        return ClausePart("HAVING", children[1], position_of(children[0]))

    def emit(self, children: Children) -> ClausePart:
        return ClausePart("EMIT", sql.Emit(str(children[1]).upper()), position_of(children[0]))

    def limit(self, children: Children) -> ClausePart:
        value = int(str(children[1]))
        if value > LIMIT_MAX:
            raise SyntaxProblem(f"a LIMIT must be at most {LIMIT_MAX}", position=position_of(children[1]))
        return ClausePart("LIMIT", value, position_of(children[0]))

    def as_of(self, children: Children) -> ClausePart:
        position = position_of(children[0])
        return ClausePart("AS OF", sql.AsOf(children[-1], "at_least" in flags(children), position), position)

    def at_least(self, _: Children) -> Flag:
        return Flag("at_least")

    def typed_literal(self, children: Children) -> Expression:
        """`INTERVAL '1 hour'` has no SQL type; it is only used to compute times."""
        name, text = children
        if name.upper() != INTERVAL:
            return super().typed_literal(children)
        return Call(INTERVAL, (StringLiteral(unquote(str(text)), position_of(text)),), False, position_of(name))

    def order_by(self, children: Children) -> ClausePart:
        return ClausePart("ORDER BY", tuple(children[1:]), position_of(children[0]))

    def sort_item(self, children: Children) -> sql.SortItem:
        words = [str(child).upper() for child in children[1:]]
        descending = "DESC" in words
        return sql.SortItem(children[0], descending, "FIRST" in words or (descending and "LAST" not in words))

    def offset(self, children: Children) -> ClausePart:
        return ClausePart("OFFSET", int(str(children[1])), position_of(children[0]))


def _check_fields(fields: Sequence[tuple[str, Position | None]]) -> None:
    seen: set[str] = set()
    for name, position in fields:
        if name in seen:
            raise BindError(
                f'field "{name}" of a STRUCT is declared twice',
                hint="Give one of them another name.",
                position=position,
            )
        seen.add(name)


def _options(children: Children) -> tuple[WindowTime | None, WindowTime | None]:
    """RETENTION and GRACE PERIOD, in either order, each at most once."""
    options: dict[str, WindowTime] = {}
    for part in children:
        if isinstance(part, ClausePart):
            if part.name in options:
                raise SyntaxProblem(f"{part.name} is specified twice", position=position_of(children[0]))
            options[part.name] = part.value
    return options.get("RETENTION"), options.get("GRACE PERIOD")


def _crossed(relation: sql.RelationReference, position: Position | None) -> sql.Join:
    """A cross join."""
    return sql.Join(JoinType.INNER, relation, BooleanLiteral(True, position), None, position)


def _query_ref(query: sql.Select, form: sql.QueryForm) -> sql.QueryRef:
    return sql.QueryRef(f"({form} query)", None, query.position, query=query, form=form)


def _is_all(children: Children) -> bool:
    return any(isinstance(child, Token) and child.type == "ALL" for child in children)


def _ending(select: sql.Select) -> dict[str, Any]:
    """The clauses that apply to all rows of a query."""
    options = {
        "ORDER BY": select.order_by or None,
        "LIMIT": select.limit,
        "OFFSET": select.offset,
        "AS OF": select.as_of,
        "EMIT": select.emit,
    }
    return {name: value for name, value in options.items() if value is not None}


def _united(first: sql.Select, operands: list[Operand]) -> sql.Select:
    """The clauses after the last SELECT apply to the union."""
    before = [(_ending(first), first.position), *((each.ending, each.position) for each in operands[:-1])]
    for ending, position in before:
        for name in ending:
            raise SyntaxProblem(f"{name} must come after the last SELECT of a UNION", position=position)
    ending = operands[-1].ending
    return replace(
        first,
        unions=tuple(operand.part for operand in operands),
        order_by=ending.get("ORDER BY", ()),
        limit=ending.get("LIMIT"),
        offset=ending.get("OFFSET"),
        as_of=ending.get("AS OF"),
        emit=ending.get("EMIT"),
        clauses=(sql.Clause("UNION", operands[0].position), *first.clauses),
    )


def _clause(name: str, children: Children) -> ClausePart:
    position = position_of(pick(children, Token))
    return ClausePart(name, sql.Clause(name, position), position)


def _check_order(parts: list[ClausePart]) -> None:
    """Refuse clauses that are out of order or repeated."""
    clauses = [part for part in parts if part.name in ORDER]
    for before, after in pairwise(clauses):
        first, second = ORDER[before.name], ORDER[after.name]
        if before.name == after.name and before.name != "JOIN":
            raise SyntaxProblem(f"{after.name} is specified twice", position=after.position)
        if second < first:
            raise SyntaxProblem(f"{after.name} must come before {before.name}", position=after.position)
