"""SHOW, DESCRIBE and EXPLAIN."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from holdfast.errors import Position
from holdfast.runtime.expressions.transform import Name, position_of
from holdfast.sql.syntax.explain_format import ExplainFormat, explain_format
from holdfast.sql.syntax.statements.elements import Identifier
from holdfast.sql.syntax.statements.parts import Children, Flag, flags, identifier, pick
from holdfast.sql.syntax.statements.query import Select

if TYPE_CHECKING:
    from holdfast.sql.syntax.statements.statement import Statement


class Listing(StrEnum):
    """What SHOW can list."""

    VIEWS = "VIEWS"
    MATERIALIZED_VIEWS = "MATERIALIZED VIEWS"
    STREAMS = "STREAMS"
    TABLES = "TABLES"
    QUERIES = "QUERIES"
    TOPICS = "TOPICS"
    PROPERTIES = "PROPERTIES"
    FUNCTIONS = "FUNCTIONS"
    TYPES = "TYPES"
    VARIABLES = "VARIABLES"
    HOLDS = "HOLDS"
    INDEXES = "INDEXES"


@dataclass(frozen=True, slots=True)
class Show:
    """`SHOW listing [EXTENDED]`; `everything` is `SHOW ALL TOPICS`, which includes internal topics.

    `on` is the object whose indexes are listed.
    """

    listing: Listing
    extended: bool = False
    everything: bool = False
    on: Identifier | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Describe:
    name: Identifier
    extended: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DescribeFunction:
    name: Identifier
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ExplainStatement:
    """EXPLAIN of a statement, which is not run; `text` is the statement's text."""

    statement: "Statement"
    format: ExplainFormat | None = None
    text: str = ""
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ExplainQuery:
    """EXPLAIN of a running query."""

    query: Identifier
    format: ExplainFormat | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ExplainTimestamp:
    """`EXPLAIN TIMESTAMP FOR query`: the time at which a query would read, and why."""

    query: Select
    position: Position | None = field(default=None, compare=False, repr=False)


InspectionStatement = Show | Describe | DescribeFunction | ExplainStatement | ExplainQuery | ExplainTimestamp


class InspectionTransformer:
    """Builds these statements from the rules of the grammar."""

    def show(self, children: Children) -> Show:
        return Show(children[1], "extended" in flags(children), position=position_of(children[0]))

    def show_all_topics(self, children: Children) -> Show:
        extended = "extended" in flags(children)
        return Show(Listing.TOPICS, extended, everything=True, position=position_of(children[0]))

    def show_indexes(self, children: Children) -> Show:
        name = pick(children, Name)
        on = None if name is None else identifier(name)
        return Show(Listing.INDEXES, on=on, position=position_of(children[0]))

    def describe_all(self, children: Children) -> Show:
        """`DESCRIBE STREAMS` is `SHOW STREAMS EXTENDED`."""
        return Show(Listing(str(children[1]).upper()), True, position=position_of(children[0]))

    def listing(self, children: Children) -> Listing:
        return Listing(" ".join(map(str, children)).upper())

    def extended(self, _: Children) -> Flag:
        return Flag("extended")

    def describe(self, children: Children) -> Describe:
        return Describe(identifier(children[1]), "extended" in flags(children), position_of(children[0]))

    def describe_function(self, children: Children) -> DescribeFunction:
        return DescribeFunction(identifier(children[1]), position_of(children[0]))

    def explain_statement(self, children: Children) -> ExplainStatement:
        return ExplainStatement(children[-1], pick(children, ExplainFormat), position=position_of(children[0]))

    def explain_query(self, children: Children) -> ExplainQuery:
        return ExplainQuery(identifier(children[-1]), pick(children, ExplainFormat), position_of(children[0]))

    def explain_timestamp(self, children: Children) -> ExplainTimestamp:
        return ExplainTimestamp(children[-1], position_of(children[0]))

    def explain_format(self, children: Children) -> ExplainFormat:
        return explain_format(str(children[0]), position_of(children[0]))
