"""From the rules of queries to `Select`; the order of the clauses is checked here."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

from lark import Token

from holdfast.errors import Position, SyntaxProblem, nearest
from holdfast.runtime.expressions.transform import ExpressionTransformer, position_of, unquote
from holdfast.runtime.expressions.tree import Call, Expression, StringLiteral
from holdfast.runtime.plan.steps import JoinType
from holdfast.runtime.plan.windows import HoppingWindow, SessionWindow, TimeUnit, TumblingWindow, WindowTime
from holdfast.sql import statements as sql
from holdfast.sql.moments import INTERVAL

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
            ("GROUP BY", "GROUP BY ()"),
            ("PARTITION BY",),
            ("HAVING",),
            ("ORDER BY",),
            ("EMIT",),
            ("LIMIT",),
            ("AS OF",),
        )
    )
    for name in names
}
"""The clauses of a query, by their place in it."""
UNITS = {unit.value.removesuffix("S"): unit for unit in TimeUnit if unit.value not in ("NANOSECONDS", "MICROSECONDS")}
JOINS = {"INNER": JoinType.INNER, "LEFT": JoinType.LEFT, "RIGHT": JoinType.RIGHT, "FULL": JoinType.OUTER}


@dataclass(frozen=True, slots=True)
class Part:
    """One clause of a statement until the statement is put together."""

    name: str
    value: Any
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The words AT LEAST were there."""


def pick(children: Iterable[object], kind: type[T]) -> T | None:
    return next((child for child in children if isinstance(child, kind)), None)


class QueryTransformer(ExpressionTransformer):
    """Builds queries while the parser runs; holds no state."""

    def select(self, children: Children) -> sql.Select:
        relation = pick(children, sql.Relation)
        assert relation is not None
        parts = [child for child in children if isinstance(child, Part)]
        _check_order(parts)
        value = {part.name: part.value for part in parts}
        distinct = [child for child in children if isinstance(child, Token) and child.type == "DISTINCT"]
        clauses = [sql.Clause("DISTINCT", position_of(token)) for token in distinct]
        clauses += [part.value for part in parts if isinstance(part.value, sql.Clause)]
        return sql.Select(
            items=value[ITEMS],
            relation=relation,
            joins=tuple(part.value for part in parts if part.name == "JOIN"),
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

    # ---- the select list

    def select_items(self, children: Children) -> Part:
        return Part(ITEMS, tuple(children))

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

    def relation(self, children: Children) -> sql.Relation:
        return sql.Relation(str(children[0]), str(children[-1]), position_of(children[0]))

    def join(self, children: Children) -> Part:
        relation = pick(children, sql.Relation)
        assert relation is not None
        position = position_of(pick(children, Token))
        kind = pick(children, JoinType) or JoinType.INNER
        join = sql.Join(kind, relation, children[-1], pick(children, sql.Within), position)
        return Part("JOIN", join, position)

    def join_type(self, children: Children) -> JoinType:
        return JOINS[str(children[0]).upper()]

    def within(self, children: Children) -> sql.Within:
        spans = [child for child in children if isinstance(child, WindowTime)]
        grace = pick(children, Part)
        return sql.Within(spans[0], spans[-1], grace.value if grace else None)

    def grace(self, children: Children) -> Part:
        return Part("GRACE PERIOD", children[0])

    def retention(self, children: Children) -> Part:
        return Part("RETENTION", children[0])

    def span(self, children: Children) -> WindowTime:
        number, unit = children
        found = UNITS.get(str(unit).upper().removesuffix("S"))
        if found is None:
            hint = nearest(str(unit), [str(known) for known in UNITS.values()], plural="units")
            raise SyntaxProblem(f'"{unit}" is not a unit of time', hint=hint, position=position_of(unit))
        return WindowTime(value=int(str(number)), time_unit=found)

    # ---- windows

    def window(self, children: Children) -> Part:
        position = position_of(children[0])
        return Part("WINDOW", sql.Window(children[-1], position), position)

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

    def where(self, children: Children) -> Part:
        return Part("WHERE", children[1], position_of(children[0]))

    def partition_by(self, children: Children) -> Part:
        return Part("PARTITION BY", tuple(children[1]), position_of(children[0]))

    def partition_by_set(self, children: Children) -> Part:
        return Part("PARTITION BY", tuple(children[1:]), position_of(children[0]))

    def group_by(self, children: Children) -> Part:
        return Part("GROUP BY", tuple(children[1:]), position_of(children[0]))

    def group_by_set(self, children: Children) -> Part:
        return Part("GROUP BY", tuple(children[1:]), position_of(children[0]))

    def group_by_nothing(self, children: Children) -> Part:
        return _clause("GROUP BY ()", children)

    def having(self, children: Children) -> Part:
        return Part("HAVING", children[1], position_of(children[0]))

    def emit(self, children: Children) -> Part:
        return Part("EMIT", sql.Emit(str(children[1]).upper()), position_of(children[0]))

    def limit(self, children: Children) -> Part:
        value = int(str(children[1]))
        if value > LIMIT_MAX:
            raise SyntaxProblem(f"a LIMIT must be at most {LIMIT_MAX}", position=position_of(children[1]))
        return Part("LIMIT", value, position_of(children[0]))

    def as_of(self, children: Children) -> Part:
        position = position_of(children[0])
        return Part("AS OF", sql.AsOf(children[-1], pick(children, AtLeast) is not None, position), position)

    def at_least(self, _: Children) -> AtLeast:
        return AtLeast()

    def typed_literal(self, children: Children) -> Expression:
        """`INTERVAL '1 hour'` is no type of rows: it is read where a time is computed."""
        name, text = children
        if name.upper() != INTERVAL:
            return super().typed_literal(children)
        return Call(INTERVAL, (StringLiteral(unquote(str(text)), position_of(text)),), False, position_of(name))

    def order_by(self, children: Children) -> Part:
        return _clause("ORDER BY", children)


def _options(children: Children) -> tuple[WindowTime | None, WindowTime | None]:
    """RETENTION and GRACE PERIOD, in either order, each at most once."""
    given: dict[str, WindowTime] = {}
    for part in children:
        if isinstance(part, Part):
            if part.name in given:
                raise SyntaxProblem(f"{part.name} is given twice", position=position_of(children[0]))
            given[part.name] = part.value
    return given.get("RETENTION"), given.get("GRACE PERIOD")


def _clause(name: str, children: Children) -> Part:
    position = position_of(pick(children, Token))
    return Part(name, sql.Clause(name, position), position)


def _check_order(parts: list[Part]) -> None:
    """Refuse clauses that are out of order or given twice."""
    written = [part for part in parts if part.name in ORDER]
    for before, after in pairwise(written):
        first, second = ORDER[before.name], ORDER[after.name]
        if before.name == after.name and before.name != "JOIN":
            raise SyntaxProblem(f"{after.name} is given twice", position=after.position)
        if second < first:
            raise SyntaxProblem(f"{after.name} must come before {before.name}", position=after.position)
