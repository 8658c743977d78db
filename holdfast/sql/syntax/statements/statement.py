"""All statements, and those of them that change the catalog."""

from holdfast.sql.syntax.statements.functions import FunctionStatement
from holdfast.sql.syntax.statements.holds import AdvanceHold, HoldStatement
from holdfast.sql.syntax.statements.indexes import IndexStatement
from holdfast.sql.syntax.statements.inserts import InsertSelect, InsertValues
from holdfast.sql.syntax.statements.inspection import InspectionStatement
from holdfast.sql.syntax.statements.query import Select
from holdfast.sql.syntax.statements.query_control import QueryControlStatement
from holdfast.sql.syntax.statements.relations import RelationStatement
from holdfast.sql.syntax.statements.session import SessionStatement
from holdfast.sql.syntax.statements.subscribe import Subscribe
from holdfast.sql.syntax.statements.topics import TopicStatement
from holdfast.sql.syntax.statements.types import TypeStatement
from holdfast.sql.syntax.statements.views import ViewStatement

DdlStatement = (
    RelationStatement
    | InsertSelect
    | TypeStatement
    | FunctionStatement
    | ViewStatement
    | IndexStatement
    | HoldStatement
    | QueryControlStatement
)
"""Statements that change the catalog; `holdfast.sql.bind.ddl` declares each."""
Statement = (
    Select
    | Subscribe
    | InsertValues
    | AdvanceHold
    | DdlStatement
    | InspectionStatement
    | TopicStatement
    | SessionStatement
)
"""Every statement."""
