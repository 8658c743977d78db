"""Statements after binding: every name found, every expression typed, every rule checked.

Expressions here name columns without a qualifier, since a query reads one relation. `COUNT(*)` has become
`COUNT(ROWTIME)`, as in plans.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.catalog.objects import CatalogObject, QueryEntry, TopicSettings
from holdfast.names import ObjectName, TopicName
from holdfast.runtime.expressions.tree import Expression
from holdfast.runtime.plan.formats import Formats, TimestampColumn
from holdfast.sql.statements import (
    Define,
    Describe,
    DescribeFunction,
    ExplainFormat,
    ExplainQuery,
    ObjectKind,
    SetProperty,
    Show,
    Undefine,
    UnsetProperty,
)
from holdfast.types import Column, Schema, SqlType


@dataclass(frozen=True, slots=True)
class BoundColumn:
    """One column of a result."""

    name: str
    expression: Expression
    type: SqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a CREATE makes: the object, its topic and how that is written."""

    kind: ObjectKind
    name: ObjectName
    schema: Schema
    topic: TopicName
    formats: Formats
    timestamp: TimestampColumn | None = None
    topic_settings: TopicSettings = field(default_factory=TopicSettings)
    or_replace: bool = False
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCreateSource:
    """An object over a topic that others write."""

    target: Target


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundQuery:
    """A continuous query. `keys` are the names of the result's key columns, in the order of the key.

    With `group_by`, key *i* is the column whose expression is `group_by[i]`; without, it renames the source's key *i*.
    """

    source: CatalogObject
    projection: tuple[BoundColumn, ...]
    keys: tuple[str, ...]
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    having: Expression | None = None

    @property
    def values(self) -> tuple[BoundColumn, ...]:
        """The value columns of the result."""
        return tuple(column for column in self.projection if column.name not in self.keys)

    @property
    def aggregates(self) -> bool:
        return bool(self.group_by)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCreateAs:
    """An object that a query keeps current."""

    target: Target
    query: BoundQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundInsert:
    """One row for a stream or a table: a value for each of `columns`; ROWTIME may be among them."""

    target: CatalogObject
    columns: tuple[Column, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundDrop:
    """An object to drop, with the query that writes it."""

    target: CatalogObject
    delete_topic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTerminate:
    """Queries to end; what they wrote stays."""

    queries: tuple[QueryEntry, ...]


class SelectKind(StrEnum):
    """How a SELECT answers: once, or on and on."""

    PULL = "PULL"
    PUSH = "PUSH"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundSelect:
    """A query of a client: it reads one object and is not stored."""

    kind: SelectKind
    relation: CatalogObject
    columns: tuple[BoundColumn, ...]
    where: Expression | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class BoundExplain:
    """EXPLAIN of a statement that need not run; `text` is that statement's."""

    statement: "BoundStatement"
    text: str
    format: ExplainFormat


@dataclass(frozen=True, slots=True)
class BoundNothing:
    """A statement that has nothing to do, such as DROP … IF EXISTS of what is not there; `notice` says why."""

    notice: str


BoundStatement = (
    BoundCreateSource
    | BoundCreateAs
    | BoundInsert
    | BoundDrop
    | BoundTerminate
    | BoundSelect
    | BoundExplain
    | BoundNothing
    | Show
    | Describe
    | DescribeFunction
    | ExplainQuery
    | SetProperty
    | UnsetProperty
    | Define
    | Undefine
)
