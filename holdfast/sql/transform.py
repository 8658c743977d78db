"""From the rules of grammar.lark to statements; a method's name is a rule or an alias of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lark import Token

from holdfast.errors import BadTime, Position, SyntaxProblem
from holdfast.runtime.expressions.transform import Name, position_of, unquote
from holdfast.runtime.expressions.tree import (
    BooleanLiteral,
    DecimalLiteral,
    DoubleLiteral,
    Expression,
    IntegerLiteral,
    NullLiteral,
    StringLiteral,
)
from holdfast.runtime.plan.windows import WindowTime
from holdfast.sql import statements as sql
from holdfast.sql.explain_format import explain_format
from holdfast.sql.moments import INTERVAL
from holdfast.sql.transform_query import Part, QueryTransformer, pick
from holdfast.types import SqlType

Children = list[Any]


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
class _HoldAt:
    time: Expression


@dataclass(frozen=True, slots=True)
class _MaxLag:
    text: StringLiteral


def _identifier(name: Name) -> sql.Identifier:
    return sql.Identifier(str(name), name.position)


def _query(children: Children) -> sql.Identifier | None:
    """The query that a statement is about; None is every query."""
    return _identifier(children[1]) if isinstance(children[1], Name) else None


def _topic(token: Token) -> str:
    """Topics are called as they are written."""
    return str(token) if token.type == "IDENT" else unquote(str(token))


def _flags(children: Iterable[object]) -> set[str]:
    return {child.name for child in children if isinstance(child, _Flag)}


class StatementTransformer(QueryTransformer):
    """Builds statements while the parser runs; holds no state."""

    def statement_start(self, children: Children) -> sql.Statement | None:
        return children[0] if children else None

    # ---- CREATE

    def create_head(self, children: Children) -> _Head:
        flags = _flags(children)
        kind = pick(children, sql.ObjectKind)
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
        with_ = pick(rest, Part)
        return sql.CreateAs(
            kind=head.kind,
            name=head.name,
            properties=with_.value if with_ else (),
            select=rest[-1],
            or_replace=head.or_replace,
            if_not_exists=head.if_not_exists,
            position=head.position,
        )

    def table_elements(self, children: Children) -> Part:
        return Part("columns", tuple(children))

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

    def with_clause(self, children: Children) -> Part:
        return Part("with", tuple(children))

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

    # ---- SUBSCRIBE

    def subscribe(self, children: Children) -> sql.Subscribe:
        target = next(child for child in children if isinstance(child, sql.Identifier | sql.Select))
        parts = [child for child in children if isinstance(child, Part)]
        value: dict[str, Any] = {}
        for part in parts:
            if part.name in value:
                raise SyntaxProblem(f"{part.name} is given twice", position=part.position)
            value[part.name] = part.value
        options = value.get("WITH", ())
        return sql.Subscribe(
            target=target,
            options=tuple(option for option in options if isinstance(option, sql.Property)),
            hold=next((option for option in options if isinstance(option, sql.Identifier)), None),
            as_of=value.get("AS OF"),
            up_to=value.get("UP TO"),
            key=value.get("ENVELOPE", ()),
            position=position_of(children[0]),
        )

    def subscribed(self, children: Children) -> sql.Identifier | sql.Select:
        target = children[0]
        if isinstance(target, sql.Select):
            return target
        return sql.Identifier(".".join(map(str, children)), target.position)

    def subscribe_with(self, children: Children) -> Part:
        return Part("WITH", tuple(children[1:]), position_of(children[0]))

    def subscribe_option(self, children: Children) -> sql.Property:
        """An option without a value is meant to be so."""
        name, *value = children
        return sql.Property(str(name).upper(), value[0] if value else True, position_of(name))

    def subscribe_hold(self, children: Children) -> sql.Identifier:
        return _identifier(children[0])

    def up_to(self, children: Children) -> Part:
        return Part("UP TO", children[1], position_of(children[0]))

    def envelope(self, children: Children) -> Part:
        return Part("ENVELOPE", tuple(map(_identifier, children[1:])), position_of(children[0]))

    # ---- INSERT, DROP, SHOW and the small ones

    def insert_values(self, children: Children) -> sql.InsertValues:
        columns = children[2].value if len(children) > 3 else ()
        return sql.InsertValues(
            target=_identifier(children[1]),
            columns=columns,
            values=tuple(children[-1]),
            position=position_of(children[0]),
        )

    def columns(self, children: Children) -> Part:
        return Part("columns", tuple(map(_identifier, children)))

    def insert_select(self, children: Children) -> sql.InsertSelect:
        with_ = pick(children, Part)
        return sql.InsertSelect(
            target=_identifier(children[1]),
            properties=with_.value if with_ else (),
            select=children[-1],
            position=position_of(children[0]),
        )

    def drop(self, children: Children) -> sql.Drop:
        flags = _flags(children)
        name = pick(children, Name)
        assert name is not None
        return sql.Drop(
            kind=children[1],
            name=_identifier(name),
            if_exists="if_exists" in flags,
            delete_topic="delete_topic" in flags,
            cascade="cascade" in flags,
            position=position_of(children[0]),
        )

    def create_type(self, children: Children) -> sql.CreateType:
        name = pick(children, Name)
        assert name is not None
        return sql.CreateType(
            name=_identifier(name),
            type=children[-1],
            if_not_exists="if_not_exists" in _flags(children),
            position=position_of(children[0]),
        )

    def drop_type(self, children: Children) -> sql.DropType:
        return sql.DropType(
            name=_identifier(children[-1]),
            if_exists="if_exists" in _flags(children),
            position=position_of(children[0]),
        )

    def create_function(self, children: Children) -> sql.CreateFunction:
        flags = _flags(children)
        name, language = (child for child in children if isinstance(child, Name))
        source = children[-1]
        return sql.CreateFunction(
            name=_identifier(name),
            arguments=tuple(child for child in children if isinstance(child, sql.ColumnDefinition)),
            returns=children[children.index(language) - 1],
            language=_identifier(language),
            source=unquote(str(source)),
            or_replace="or_replace" in flags,
            if_not_exists="if_not_exists" in flags,
            source_position=position_of(source),
            position=position_of(children[0]),
        )

    def function_argument(self, children: Children) -> sql.ColumnDefinition:
        name, type_ = children
        return sql.ColumnDefinition(str(name), type_, position=name.position)

    def drop_function(self, children: Children) -> sql.DropFunction:
        return sql.DropFunction(
            name=_identifier(children[-1]),
            if_exists="if_exists" in _flags(children),
            position=position_of(children[0]),
        )

    def alter(self, children: Children) -> sql.Alter:
        keyword, kind, name, *columns = children
        return sql.Alter(kind=kind, name=_identifier(name), columns=tuple(columns), position=position_of(keyword))

    def alter_set(self, children: Children) -> sql.Alter:
        keyword, kind, name, *_, retained = children
        return sql.Alter(kind=kind, name=_identifier(name), columns=(), retain=retained, position=position_of(keyword))

    def alter_reset(self, children: Children) -> sql.Alter:
        keyword, kind, name, *_ = children
        position = position_of(keyword)
        retained = sql.Property(sql.RETAIN_HISTORY, None, position)
        return sql.Alter(kind=kind, name=_identifier(name), columns=(), retain=retained, position=position)

    def retain_history(self, children: Children) -> sql.Property:
        return sql.Property(sql.RETAIN_HISTORY, unquote(str(children[-1])), position_of(children[0]))

    def added_column(self, children: Children) -> sql.ColumnDefinition:
        name, type_ = children
        return sql.ColumnDefinition(str(name), type_, position=name.position)

    def create_hold(self, children: Children) -> sql.CreateHold:
        keyword, *rest = children
        return sql.CreateHold(
            name=_identifier(rest[0]) if isinstance(rest[0], Name) else None,
            on=next(part for part in rest if isinstance(part, tuple)),
            at=next((part.time for part in rest if isinstance(part, _HoldAt)), None),
            max_lag=next((part.text for part in rest if isinstance(part, _MaxLag)), None),
            position=position_of(keyword),
        )

    def held(self, children: Children) -> tuple[sql.Identifier, ...]:
        return tuple(_identifier(name) for name in children)

    def hold_at(self, children: Children) -> _HoldAt:
        return _HoldAt(children[0])

    def hold_with(self, children: Children) -> _MaxLag:
        lag: _MaxLag = children[0]
        return lag

    def max_lag(self, children: Children) -> _MaxLag:
        """Also with INTERVAL before or after it."""
        text = next(child for child in children if not isinstance(child, Name))
        for word in (child for child in children if isinstance(child, Name)):
            if str(word).upper() != INTERVAL:
                raise BadTime(f"{word} is not a kind of duration", hint="Write '3h'::INTERVAL.", position=word.position)
        return _MaxLag(StringLiteral(unquote(str(text)), position_of(text)))

    def advance_hold(self, children: Children) -> sql.AdvanceHold:
        keyword, name, *to = children
        return sql.AdvanceHold(_identifier(name), to[0] if to else None, position_of(keyword))

    def rename_hold(self, children: Children) -> sql.RenameHold:
        keyword, name, to = children
        return sql.RenameHold(_identifier(name), _identifier(to), position_of(keyword))

    def drop_hold(self, children: Children) -> sql.DropHold:
        return sql.DropHold(_identifier(children[-1]), "if_exists" in _flags(children), position_of(children[0]))

    def cascade(self, _: Children) -> _Flag:
        return _Flag("cascade")

    def delete_topic(self, _: Children) -> _Flag:
        return _Flag("delete_topic")

    def show(self, children: Children) -> sql.Show:
        return sql.Show(children[1], "extended" in _flags(children), position=position_of(children[0]))

    def show_all_topics(self, children: Children) -> sql.Show:
        extended = "extended" in _flags(children)
        return sql.Show(sql.Listing.TOPICS, extended, everything=True, position=position_of(children[0]))

    def describe_all(self, children: Children) -> sql.Show:
        """Describing all is listing them with everything that is known of each."""
        return sql.Show(sql.Listing(str(children[1]).upper()), True, position=position_of(children[0]))

    def listing(self, children: Children) -> sql.Listing:
        return sql.Listing(" ".join(map(str, children)).upper())

    def extended(self, _: Children) -> _Flag:
        return _Flag("extended")

    def describe(self, children: Children) -> sql.Describe:
        return sql.Describe(_identifier(children[1]), "extended" in _flags(children), position_of(children[0]))

    def describe_function(self, children: Children) -> sql.DescribeFunction:
        return sql.DescribeFunction(_identifier(children[1]), position_of(children[0]))

    def explain_statement(self, children: Children) -> sql.ExplainStatement:
        return sql.ExplainStatement(children[-1], pick(children, sql.ExplainFormat), position=position_of(children[0]))

    def explain_query(self, children: Children) -> sql.ExplainQuery:
        return sql.ExplainQuery(_identifier(children[-1]), pick(children, sql.ExplainFormat), position_of(children[0]))

    def explain_timestamp(self, children: Children) -> sql.ExplainTimestamp:
        return sql.ExplainTimestamp(children[-1], position_of(children[0]))

    def create_view(self, children: Children) -> sql.CreateView:
        name, columns = pick(children, Name), pick(children, Part)
        assert name is not None
        return sql.CreateView(
            name=_identifier(name),
            columns=columns.value if columns else (),
            query=children[-1],
            if_not_exists="if_not_exists" in _flags(children),
            position=position_of(children[0]),
        )

    def drop_view(self, children: Children) -> sql.DropView:
        name, flags = pick(children, Name), _flags(children)
        assert name is not None
        return sql.DropView(
            name=_identifier(name),
            if_exists="if_exists" in flags,
            cascade="cascade" in flags,
            position=position_of(children[0]),
        )

    def create_materialized(self, children: Children) -> sql.CreateAs:
        name, with_, flags = pick(children, Name), pick(children, Part), _flags(children)
        assert name is not None
        return sql.CreateAs(
            kind=sql.ObjectKind.MATERIALIZED_VIEW,
            name=_identifier(name),
            properties=with_.value if with_ else (),
            select=children[-1],
            or_replace="or_replace" in flags,
            if_not_exists="if_not_exists" in flags,
            position=position_of(children[0]),
        )

    def drop_materialized(self, children: Children) -> sql.Drop:
        name, flags = pick(children, Name), _flags(children)
        assert name is not None
        return sql.Drop(
            kind=sql.ObjectKind.MATERIALIZED_VIEW,
            name=_identifier(name),
            if_exists="if_exists" in flags,
            cascade="cascade" in flags,
            position=position_of(children[0]),
        )

    def alter_materialized(self, children: Children) -> sql.Alter:
        keyword, _, name, *_, retained = children
        return self.alter_set([keyword, sql.ObjectKind.MATERIALIZED_VIEW, name, retained])

    def reset_materialized(self, children: Children) -> sql.Alter:
        keyword, _, name, *_ = children
        return self.alter_reset([keyword, sql.ObjectKind.MATERIALIZED_VIEW, name])

    def create_index(self, children: Children) -> sql.CreateIndex:
        flags, names = _flags(children), [child for child in children if isinstance(child, Name)]
        parts = {part.name: part.value for part in children if isinstance(part, Part)}
        return sql.CreateIndex(
            name=_identifier(names[0]) if len(names) > 1 else None,
            on=_identifier(names[-1]),
            expressions=parts.get("index_by", ()),
            properties=parts.get("with", ()),
            default="default_index" in flags,
            if_not_exists="if_not_exists" in flags,
            position=position_of(children[0]),
        )

    def default_index(self, _: Children) -> _Flag:
        return _Flag("default_index")

    def index_by(self, children: Children) -> Part:
        return Part("index_by", tuple(children))

    def alter_index(self, children: Children) -> sql.AlterIndex:
        keyword, name, *_, retained = children
        return sql.AlterIndex(name=_identifier(name), retain=retained, position=position_of(keyword))

    def reset_index(self, children: Children) -> sql.AlterIndex:
        position = position_of(children[0])
        retained = sql.Property(sql.RETAIN_HISTORY, None, position)
        return sql.AlterIndex(name=_identifier(children[1]), retain=retained, position=position)

    def drop_index(self, children: Children) -> sql.DropIndex:
        name, flags = pick(children, Name), _flags(children)
        assert name is not None
        return sql.DropIndex(
            name=_identifier(name),
            if_exists="if_exists" in flags,
            cascade="cascade" in flags,
            position=position_of(children[0]),
        )

    def show_indexes(self, children: Children) -> sql.Show:
        name = pick(children, Name)
        on = None if name is None else _identifier(name)
        return sql.Show(sql.Listing.INDEXES, on=on, position=position_of(children[0]))

    def begin(self, children: Children) -> sql.Begin:
        return sql.Begin("only_reads" in _flags(children), position_of(children[0]))

    def only_reads(self, _: Children) -> _Flag:
        return _Flag("only_reads")

    def commit(self, children: Children) -> sql.End:
        return sql.End(str(children[0]).upper(), position_of(children[0]))

    rollback = commit

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
        return sql.Terminate(_query(children), position_of(children[0]))

    def print(self, children: Children) -> sql.Print:
        topic, limit, sample = children[1], pick(children, Part), pick(children, int)
        return sql.Print(
            topic=_topic(topic),
            from_beginning="from_beginning" in _flags(children),
            interval=1 if sample is None else sample,
            limit=limit.value if limit else None,
            position=position_of(children[0]),
            topic_position=position_of(topic),
        )

    def topic(self, children: Children) -> Token:
        token: Token = children[0]
        return token

    def from_beginning(self, _: Children) -> _Flag:
        return _Flag("from_beginning")

    def sample(self, children: Children) -> int:
        number = int(str(children[0]))
        if number < 1:
            raise SyntaxProblem("INTERVAL is 1 or more", position=position_of(children[0]))
        return number

    def assert_topic(self, children: Children) -> sql.AssertTopic:
        with_ = pick(children, Part)
        topic = next(child for child in children[1:] if isinstance(child, Token))
        return sql.AssertTopic(
            topic=_topic(topic),
            exists="not_exists" not in _flags(children),
            properties=with_.value if with_ else (),
            timeout=pick(children, WindowTime),
            position=position_of(children[0]),
        )

    def assert_schema(self, children: Children) -> sql.AssertSchema:
        return sql.AssertSchema(position=position_of(children[0]))

    def not_exists(self, _: Children) -> _Flag:
        return _Flag("not_exists")

    def timeout(self, children: Children) -> WindowTime:
        span: WindowTime = children[0]
        return span

    def pause(self, children: Children) -> sql.Pause:
        return sql.Pause(_query(children), position_of(children[0]))

    def resume(self, children: Children) -> sql.Resume:
        return sql.Resume(_query(children), position_of(children[0]))
