"""CREATE, ALTER and DROP of streams, tables and materialized views."""

from dataclasses import dataclass, field

from holdfast.errors import Position, SyntaxProblem
from holdfast.runtime.expressions.transform import Name, position_of, unquote
from holdfast.sql.syntax.statements.elements import ColumnDefinition, Identifier, Marker, ObjectKind, Property
from holdfast.sql.syntax.statements.parts import Children, ClausePart, Flag, flags, identifier, pick
from holdfast.sql.syntax.statements.query import Select
from holdfast.types import SqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSource:
    """`CREATE STREAM|TABLE name (columns) WITH (…)` over a topic. `read_only` is `CREATE SOURCE STREAM|TABLE`."""

    kind: ObjectKind
    name: Identifier
    columns: tuple[ColumnDefinition, ...]
    properties: tuple[Property, ...]
    or_replace: bool = False
    if_not_exists: bool = False
    read_only: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAs:
    """`CREATE STREAM|TABLE|MATERIALIZED VIEW name [WITH (…)] AS SELECT …`."""

    kind: ObjectKind
    name: Identifier
    properties: tuple[Property, ...]
    select: Select
    or_replace: bool = False
    if_not_exists: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """`DROP STREAM|TABLE|MATERIALIZED VIEW [IF EXISTS] name [DELETE TOPIC] [CASCADE]`."""

    kind: ObjectKind
    name: Identifier
    if_exists: bool = False
    delete_topic: bool = False
    cascade: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alter:
    """`ALTER STREAM|TABLE name ADD [COLUMN] column type, …` or, except for streams, `SET|RESET (RETAIN HISTORY …)`.

    `retain` is how long history is retained; its value is None for the default.
    """

    kind: ObjectKind
    name: Identifier
    columns: tuple[ColumnDefinition, ...]
    retain: Property | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


RETAIN_HISTORY = "RETAIN_HISTORY"


RelationStatement = CreateSource | CreateAs | Drop | Alter


@dataclass(frozen=True, slots=True)
class _Head:
    """The common beginning of both forms of CREATE."""

    kind: ObjectKind
    name: Identifier
    or_replace: bool
    if_not_exists: bool
    read_only: bool
    position: Position | None


class RelationTransformer:
    """Builds these statements from the rules of the grammar."""

    def create_head(self, children: Children) -> _Head:
        found = flags(children)
        kind = pick(children, ObjectKind)
        assert kind is not None
        return _Head(
            kind,
            identifier(children[-1]),
            "or_replace" in found,
            "if_not_exists" in found,
            "read_only" in found,
            position_of(children[0]),
        )

    def read_only(self, _: Children) -> Flag:
        return Flag("read_only")

    def kind(self, children: Children) -> ObjectKind:
        return ObjectKind(str(children[0]).upper())

    def create_source(self, children: Children) -> CreateSource:
        head, *rest = children
        parts = {part.name: part.value for part in rest}
        return CreateSource(
            kind=head.kind,
            name=head.name,
            columns=parts.get("columns", ()),
            properties=parts.get("with", ()),
            or_replace=head.or_replace,
            if_not_exists=head.if_not_exists,
            read_only=head.read_only,
            position=head.position,
        )

    def create_as(self, children: Children) -> CreateAs:
        head, *rest = children
        if head.read_only:
            raise SyntaxProblem(
                f"a SOURCE {head.kind} cannot be created from a query",
                hint="Leave out SOURCE.",
                position=head.position,
            )
        with_ = pick(rest, ClausePart)
        return CreateAs(
            kind=head.kind,
            name=head.name,
            properties=with_.value if with_ else (),
            select=rest[-1],
            or_replace=head.or_replace,
            if_not_exists=head.if_not_exists,
            position=head.position,
        )

    def table_elements(self, children: Children) -> ClausePart:
        return ClausePart("columns", tuple(children))

    def table_element(self, children: Children) -> ColumnDefinition:
        name: Name = children[0]
        type_: SqlType = children[1]
        marker, header = children[2] if len(children) > 2 else (Marker.NONE, None)
        return ColumnDefinition(str(name), type_, marker, header, name.position)

    def key_marker(self, _: Children) -> tuple[Marker, str | None]:
        return Marker.KEY, None

    def primary_key_marker(self, _: Children) -> tuple[Marker, str | None]:
        return Marker.PRIMARY_KEY, None

    def headers_marker(self, _: Children) -> tuple[Marker, str | None]:
        return Marker.HEADERS, None

    def header_marker(self, children: Children) -> tuple[Marker, str | None]:
        return Marker.HEADERS, unquote(str(children[0]))

    def drop(self, children: Children) -> Drop:
        found = flags(children)
        name = pick(children, Name)
        assert name is not None
        return Drop(
            kind=children[1],
            name=identifier(name),
            if_exists="if_exists" in found,
            delete_topic="delete_topic" in found,
            cascade="cascade" in found,
            position=position_of(children[0]),
        )

    def delete_topic(self, _: Children) -> Flag:
        return Flag("delete_topic")

    def alter(self, children: Children) -> Alter:
        keyword, kind, name, *columns = children
        return Alter(kind=kind, name=identifier(name), columns=tuple(columns), position=position_of(keyword))

    def alter_set(self, children: Children) -> Alter:
        keyword, kind, name, *_, retained = children
        return Alter(kind=kind, name=identifier(name), columns=(), retain=retained, position=position_of(keyword))

    def alter_reset(self, children: Children) -> Alter:
        keyword, kind, name, *_ = children
        position = position_of(keyword)
        retained = Property(RETAIN_HISTORY, None, position)
        return Alter(kind=kind, name=identifier(name), columns=(), retain=retained, position=position)

    def added_column(self, children: Children) -> ColumnDefinition:
        name, type_ = children
        return ColumnDefinition(str(name), type_, position=name.position)

    def create_materialized(self, children: Children) -> CreateAs:
        name, with_, found = pick(children, Name), pick(children, ClausePart), flags(children)
        assert name is not None
        return CreateAs(
            kind=ObjectKind.MATERIALIZED_VIEW,
            name=identifier(name),
            properties=with_.value if with_ else (),
            select=children[-1],
            or_replace="or_replace" in found,
            if_not_exists="if_not_exists" in found,
            position=position_of(children[0]),
        )

    def drop_materialized(self, children: Children) -> Drop:
        name, found = pick(children, Name), flags(children)
        assert name is not None
        return Drop(
            kind=ObjectKind.MATERIALIZED_VIEW,
            name=identifier(name),
            if_exists="if_exists" in found,
            cascade="cascade" in found,
            position=position_of(children[0]),
        )

    def alter_materialized(self, children: Children) -> Alter:
        keyword, _, name, *_, retained = children
        return self.alter_set([keyword, ObjectKind.MATERIALIZED_VIEW, name, retained])

    def reset_materialized(self, children: Children) -> Alter:
        keyword, _, name, *_ = children
        return self.alter_reset([keyword, ObjectKind.MATERIALIZED_VIEW, name])
