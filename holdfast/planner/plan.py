"""From bound statements to plans. Pure: the same statement and number give the same plan."""

from holdfast.catalog.objects import Stream
from holdfast.names import ObjectName, QueryId
from holdfast.planner.index import plan_index
from holdfast.planner.query import plan_insert, plan_steps
from holdfast.planner.upgrade import check_upgrade
from holdfast.runtime.functions.user import PYTHON, UserFunction
from holdfast.runtime.plan.codec import decode
from holdfast.runtime.plan.ddl import (
    AlterIndex,
    AlterSource,
    CreateFunction,
    CreateMaterializedView,
    CreateStream,
    CreateTable,
    CreateView,
    DdlCommand,
    DropFunction,
    DropIndex,
    DropSource,
    DropType,
    DropView,
    FunctionKind,
    RegisterType,
    SourceType,
    TypeText,
)
from holdfast.runtime.plan.document import Plan, QueryPlan
from holdfast.runtime.plan.sources import SchemaText
from holdfast.runtime.plan.steps import Step
from holdfast.sql.bound import (
    BoundAlter,
    BoundCreateAs,
    BoundCreateFunction,
    BoundCreateSource,
    BoundCreateType,
    BoundCreateView,
    BoundDrop,
    BoundDropFunction,
    BoundDropType,
    BoundDropView,
    BoundInsertSelect,
    Target,
)
from holdfast.sql.bound_index import BoundAlterIndex, BoundCreateIndex, BoundDropIndex
from holdfast.sql.bound_query import BoundQuery
from holdfast.sql.statements import ObjectKind
from holdfast.types import Schema

Plannable = (
    BoundCreateSource
    | BoundCreateAs
    | BoundInsertSelect
    | BoundDrop
    | BoundCreateType
    | BoundDropType
    | BoundCreateFunction
    | BoundDropFunction
    | BoundCreateView
    | BoundDropView
    | BoundCreateIndex
    | BoundAlterIndex
    | BoundDropIndex
    | BoundAlter
)
"""The statements that become commands with a plan."""


def plan(bound: Plannable, *, text: str, number: int) -> Plan:
    """The plan of a statement; `text` is what the user wrote, `number` makes its query id unique."""
    match bound:
        case BoundCreateSource():
            return _ddl(text, _create(bound.target))
        case BoundCreateAs():
            steps = plan_steps(bound.query, bound.target)
            id_ = bound.replaces.id if bound.replaces else query_id(bound.target, number)
            query = _query(bound.query, bound.target.name, steps, id_)
            if bound.replaces is not None and (before := decode(bound.replaces.plan).query) is not None:
                check_upgrade(before, query, bound.position)
            return Plan(statement_text=text, ddl_command=_create(bound.target), query_plan=query)
        case BoundInsertSelect():
            id_ = QueryId(bound.query_id or f"INSERTQUERY_{number}")
            query = _query(bound.query, bound.target.name, plan_insert(bound.query, bound.target), id_)
            return Plan(statement_text=text, ddl_command=None, query_plan=query)
        case BoundDrop():
            return _ddl(text, DropSource(source_name=bound.target.name))
        case BoundCreateType():
            return _ddl(text, RegisterType(type=TypeText(str(bound.type)), type_name=bound.name))
        case BoundDropType():
            return _ddl(text, DropType(type_name=bound.name))
        case BoundCreateFunction():
            return _ddl(text, _create_function(bound.function))
        case BoundCreateView():
            return _ddl(text, CreateView(view_name=bound.name, sources=bound.sources, definition=text))
        case BoundDropView():
            return _ddl(text, DropView(view_name=bound.name))
        case BoundCreateIndex():
            return plan_index(bound, text=text, number=number)
        case BoundAlterIndex():
            return _ddl(text, AlterIndex(index_name=bound.index.name))
        case BoundDropIndex():
            return _ddl(text, DropIndex(index_name=bound.index.name))
        case BoundDropFunction():
            return _ddl(text, DropFunction(function_name=bound.name))
        case BoundAlter():
            return _ddl(text, _alter(bound))


def _ddl(text: str, command: DdlCommand) -> Plan:
    return Plan(statement_text=text, ddl_command=command, query_plan=None)


def _create_function(function: UserFunction) -> CreateFunction:
    return CreateFunction(
        function_name=function.name,
        kind=FunctionKind.AGGREGATE if function.aggregate else FunctionKind.SCALAR,
        arguments=SchemaText(str(Schema(function.parameters))),
        returns=TypeText(str(function.returns)),
        language=PYTHON,
        body=function.source,
    )


def _alter(bound: BoundAlter) -> AlterSource:
    return AlterSource(
        source_name=bound.target.name,
        ksql_type=SourceType.STREAM if isinstance(bound.target, Stream) else SourceType.TABLE,
        new_columns=tuple(SchemaText(str(column)) for column in bound.columns),
    )


def _query(query: BoundQuery, sink: ObjectName, steps: Step, id_: QueryId) -> QueryPlan:
    return QueryPlan(
        sources=tuple(sorted(source.object.name for source in query.sources)),
        sink=sink,
        physical_plan=steps,
        query_id=id_,
        runtime_id=None,
    )


def query_id(target: Target, number: int) -> QueryId:
    """`CSAS_NAME_n`, `CTAS_NAME_n` or `CMVAS_NAME_n`."""
    initials = "".join(word[0] for word in target.kind.split())
    return QueryId(f"C{initials}AS_{target.name.upper()}_{number}")


def _create(target: Target) -> DdlCommand:
    if target.topic is None:
        return CreateMaterializedView(
            source_name=target.name,
            schema=SchemaText(str(target.schema)),
            window_info=target.window,
            or_replace=target.or_replace,
        )
    create = CreateStream if target.kind is ObjectKind.STREAM else CreateTable
    return create(
        source_name=target.name,
        schema=SchemaText(str(target.schema)),
        timestamp_column=target.timestamp,
        topic_name=target.topic,
        formats=target.formats,
        window_info=target.window,
        or_replace=target.or_replace,
        is_source=target.read_only,
    )
