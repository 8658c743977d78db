"""Runs the statements of a request in order, or binds its single query: the bridge from SQL to the service."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import assert_never

from holdfast.catalog.commands import CommandAction, CommandId, CommandType
from holdfast.catalog.objects import CatalogObject, MaterializedView, QueryState
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import (
    HoldfastError,
    NoTransaction,
    NotSupported,
    OpenTransaction,
    UnknownObject,
)
from holdfast.kafka.port import Topic
from holdfast.names import ObjectName, TopicName
from holdfast.runtime.functions.registry import function
from holdfast.server import descriptions, entities, listings
from holdfast.server.command_status import CommandStatuses
from holdfast.server.index_entities import described_index, listed_indexes
from holdfast.server.problems import Code, Json, Problem, statement_problem, too_deep
from holdfast.server.sql_request import SqlRequest
from holdfast.service.ddl import Done
from holdfast.service.service import ServiceApi
from holdfast.service.status import QueryInfo
from holdfast.sql.bind.assert_topic import BoundAssertTopic
from holdfast.sql.bind.ddl import ddl_kind
from holdfast.sql.bind.ddl_kind import BoundDdl
from holdfast.sql.bind.explain_timestamp import BoundExplainTimestamp
from holdfast.sql.bind.hold import BoundAdvanceHold
from holdfast.sql.bind.insert import BoundInsert
from holdfast.sql.bind.nothing import BoundNothing
from holdfast.sql.bind.statement import BoundExplain, bind
from holdfast.sql.properties.session import TRANSACTION
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.read.subscribe import BoundSubscribe
from holdfast.sql.read.view_columns import view_schema
from holdfast.sql.syntax import statements as sql
from holdfast.sql.syntax.parse import ParsedStatement
from holdfast.sql.syntax.variables import Script

IN_TRANSACTIONS = (
    sql.Select,
    sql.Show,
    sql.Describe,
    sql.DescribeFunction,
    sql.ExplainStatement,
    sql.ExplainQuery,
    sql.ExplainTimestamp,
    sql.SetProperty,
    sql.UnsetProperty,
    sql.Define,
    sql.Undefine,
    sql.Begin,
    sql.End,
    sql.Refused,
)
"""Statements that change nothing, which are allowed in every transaction."""


class WrongEndpoint(NotSupported):
    """The statement belongs to another endpoint."""


class Statements:
    """Runs the statements of requests. Thread-safe."""

    def __init__(self, service: ServiceApi, statuses: CommandStatuses) -> None:
        self._service, self._statuses = service, statuses

    def run(self, request: SqlRequest) -> list[Json]:
        """Run the statements; returns their entities. Stops at the first failure; earlier statements stay in effect."""
        return _StatementRun(self._service, self._statuses, request).run()

    def read_query(self, request: SqlRequest) -> tuple[BoundSelect | BoundRead | BoundSubscribe | sql.Print, str]:
        """The single query of a request to /query-stream or /query, bound, and its text."""
        script = Script(request.text, request.variables, lambda: self._service.catalog.types)
        current = request.text
        try:
            parsed = list(script)
            if len(parsed) != 1:
                raise Problem(Code.BAD_REQUEST, f"expected one statement, found {len(parsed)}")
            current = parsed[0].text
            if not isinstance(parsed[0].statement, sql.Select | sql.Subscribe | sql.Print | sql.Refused):
                message, position = "only SELECT, SUBSCRIBE and PRINT can be run here", parsed[0].statement.position
                raise WrongEndpoint(message, hint="Send it to /ksql.", position=position)
            bound = bind(parsed[0].statement, self._service.catalog, request.properties)
        except HoldfastError as error:
            raise problem_of(error, script, current, ()) from error
        except RecursionError:
            raise statement_problem(too_deep(), current, ()) from None
        assert isinstance(bound, BoundSelect | BoundRead | BoundSubscribe | sql.Print)
        return bound, current


def problem_of(error: HoldfastError, script: Script, text: str, done: Sequence[Json]) -> Problem:
    code = Code.WRONG_ENDPOINT if isinstance(error, WrongEndpoint) else None
    return statement_problem(script.placed(error), text, done, code)


class _StatementRun:
    """The statements of one request. Properties and variables apply to the statements after them."""

    def __init__(self, service: ServiceApi, statuses: CommandStatuses, request: SqlRequest) -> None:
        self._service, self._statuses = service, statuses
        self._text = request.text
        self._session = dict(request.properties)
        self._variables = dict(request.variables)
        self._opened: str | None = None

    def run(self) -> list[Json]:
        done: list[Json] = []
        script = Script(self._text, self._variables, lambda: self._service.catalog.types)
        current, rest = self._text, iter(script)
        try:
            while (parsed := next(rest, None)) is not None:
                current = parsed.text
                done.append(self._statement(parsed))
                current = self._text
        except HoldfastError as error:
            self._fail(error)
            raise problem_of(error, script, current, done) from error
        except RecursionError:
            self._fail(too_deep())
            raise statement_problem(too_deep(), current, done) from None
        if not done:
            raise Problem(Code.BAD_REQUEST, "the request has no statement")
        return done

    def _fail(self, error: HoldfastError) -> None:
        """Fail the transaction. One that this request opened is closed, as the client never received its id."""
        transaction = self._session.get(TRANSACTION)
        if transaction is None or isinstance(error, WrongEndpoint | OpenTransaction):
            return
        if transaction == self._opened:
            with suppress(HoldfastError):
                self._service.end_transaction(transaction, commits=False)
        else:
            self._service.fail_transaction(transaction, error.message)

    def _statement(self, parsed: ParsedStatement) -> Json:
        text, statement = parsed.text, parsed.statement
        transaction = self._session.get(TRANSACTION)
        if transaction is not None and not isinstance(statement, IN_TRANSACTIONS):
            changed = self._service.change_in_transaction(transaction, parsed, self._session)
            return entities.queued(text, None if isinstance(changed, BoundNothing) else ddl_kind(changed).id(changed))
        if isinstance(statement, sql.DdlStatement):
            return self._execute(parsed)
        bound = bind(statement, self._service.catalog, self._session)
        match bound:
            case BoundDdl() | BoundNothing():
                raise AssertionError(f"{type(bound).__name__} is DDL, which is not bound here")
            case BoundAdvanceHold(hold):
                at = self._service.advance_hold(bound)
                command = CommandId(CommandType.HOLD, hold.name, CommandAction.ALTER)
                return entities.status(text, command, f"Hold {hold.name} is at {at}.")
            case BoundInsert():
                self._service.insert(bound)
                command = CommandId(bound.target.KIND, bound.target.name, CommandAction.EXECUTE)
                return entities.status(text, command, "1 row inserted.")
            case BoundAssertTopic():
                self._service.assert_topic(bound)
                return entities.asserted_topic(text, bound)
            case sql.Print():
                hint = "Send it to /query-stream."
                raise WrongEndpoint("PRINT cannot be run on /ksql", hint=hint, position=parsed.statement.position)
            case BoundSelect() | BoundRead() | BoundSubscribe():
                hint, what = "Send it to /query-stream.", "SUBSCRIBE" if isinstance(bound, BoundSubscribe) else "SELECT"
                raise WrongEndpoint(f"a {what} cannot be run on /ksql", hint=hint, position=parsed.statement.position)
            case sql.Begin():
                return self._begin(bound, text)
            case sql.End(word=word):
                if transaction is None:
                    raise NoTransaction(f"there is no transaction to {word.lower()}", position=bound.position)
                self._session.pop(TRANSACTION)
                return self._end(bound, text, transaction)
            case BoundExplainTimestamp(query=query):
                plan = self._service.explain_timestamp(query)
                format_ = sql.ExplainFormat.TEXT
                described = descriptions.described_query(text, plan, format_, self._session, bound=query, info=None)
                return descriptions.query_description(text, described)
            case BoundExplain() | sql.ExplainQuery():
                return self._explain(bound, text)
            case sql.Describe(name=name) if name.text in self._service.catalog.indexes:
                return described_index(text, self._service.catalog.index(name.text), self._service.queries())
            case sql.Describe(name=name, extended=extended):
                catalog = self._service.catalog
                if name.text in catalog.views:
                    view = catalog.views[ObjectName(name.text)]
                    described = descriptions.described_view(view, view_schema(view, catalog), extended=extended)
                    return descriptions.source_description(text, described)
                found = catalog.relation(name.text, position=name.position)
                topics = self._described_topics([found])
                described = descriptions.described(found, catalog, self._service.queries(), topics, extended=extended)
                return descriptions.source_description(text, described)
            case sql.DescribeFunction(name=name):
                user = self._service.catalog.functions.get(name.text.upper())
                return descriptions.described_function(
                    text, function(user.versioned if user else name.text.upper()), user
                )
            case sql.Show():
                return self._show(bound, text)
            case sql.SetProperty(name=name, value=value):
                self._session[name] = value
                return entities.properties(text, self._session)
            case sql.UnsetProperty(name=name):
                self._session.pop(name, None)
                return entities.properties(text, self._session)
            case sql.Define(name=variable, value=value):
                self._variables[variable.text.upper()] = value
                return entities.variables(text, self._variables)
            case sql.Undefine(name=variable):
                self._variables.pop(variable.text.upper(), None)
                return entities.variables(text, self._variables)
            case _:
                assert_never(bound)

    def _begin(self, statement: sql.Begin, text: str) -> Json:
        if TRANSACTION in self._session:
            raise OpenTransaction(
                "a transaction is already open", hint="End it with COMMIT first.", position=statement.position
            )
        opened = self._service.begin_transaction(read_only=statement.read_only)
        self._opened = self._session[TRANSACTION] = opened
        return entities.transaction(text, opened, "OPEN")

    def _end(self, statement: sql.End, text: str, transaction: str) -> Json:
        try:
            changed = self._service.end_transaction(transaction, commits=statement.commits)
        except HoldfastError as error:
            # Its position refers to an earlier request.
            error.position = statement.position
            raise
        for done in changed:
            self._record_status(done)
        return entities.transaction(text, transaction, "COMMITTED" if changed else "ENDED", changed)

    def _execute(self, parsed: ParsedStatement) -> Json:
        """Run a DDL statement. TERMINATE of an unknown query may name a push query."""
        try:
            done = self._service.execute(parsed, self._session)
        except UnknownObject:
            if isinstance(parsed.statement, sql.Terminate):
                ended = self._terminate(parsed.statement, parsed.text)
                if ended is not None:
                    return ended
            raise
        self._record_status(done)
        return entities.current_status(parsed.text, done)

    def _record_status(self, done: Done) -> None:
        if done.command is not None:
            self._statuses.record(entities.command_id(done.command), done.message, done.query)

    def _terminate(self, statement: sql.Terminate, text: str) -> Json | None:
        """End a push query; None if no push query has the id."""
        push = self._service.find_push(statement.query.text) if statement.query is not None else None
        if push is None:
            return None
        self._service.close_push(push.id)
        command = CommandId(CommandType.TERMINATE, push.id, CommandAction.EXECUTE)
        return entities.status(text, command, "Query terminated.")

    def _explain(self, explained: BoundExplain | sql.ExplainQuery, text: str) -> Json:
        service, format_ = self._service, explained.format or sql.ExplainFormat.TEXT
        if isinstance(explained, BoundExplain):
            plan, bound = service.explain(explained, format_), explained.statement
            described = descriptions.described_query(text, plan, format_, self._session, bound=bound, info=None)
            return descriptions.query_description(text, described)
        entry = service.catalog.query(explained.query.text, position=explained.query.position)
        info = next((query for query in service.queries() if query.id == entry.id), None)
        plan = service.explain(entry, format_)
        described = descriptions.described_query(text, plan, format_, self._session, bound=None, info=info)
        return descriptions.query_description(text, described)

    def _described(self, info: QueryInfo) -> Json:
        service, format_ = self._service, sql.ExplainFormat.TEXT
        entry = service.catalog.query(info.id)
        plan = service.explain(entry, format_) if entry.state is not QueryState.INCOMPATIBLE else ""
        return descriptions.described_query(info.statement, plan, format_, entry.properties, bound=None, info=info)

    def _described_topics(self, found: Iterable[CatalogObject]) -> Mapping[TopicName, Topic]:
        return self._service.described_topics([each.topic for each in found if each.topic is not None])

    def _show(self, show: sql.Show, text: str) -> Json:
        service, catalog = self._service, self._service.catalog
        match show.listing:
            case sql.Listing.STREAMS | sql.Listing.TABLES | sql.Listing.MATERIALIZED_VIEWS if show.extended:
                found = _listed(show.listing, catalog)
                queries, topics = service.queries(), self._described_topics(found)
                return descriptions.source_descriptions(
                    text, [descriptions.described(each, catalog, queries, topics, extended=True) for each in found]
                )
            case sql.Listing.VIEWS:
                return listings.listed_views(text, catalog.views.values())
            case sql.Listing.STREAMS:
                return listings.listed_objects(text, "streams", catalog.streams)
            case sql.Listing.TABLES:
                return listings.listed_objects(text, "tables", _listed(show.listing, catalog))
            case sql.Listing.MATERIALIZED_VIEWS:
                return listings.listed_materialized_views(text, catalog)
            case sql.Listing.QUERIES if show.extended:
                return descriptions.query_descriptions(text, [self._described(info) for info in service.queries()])
            case sql.Listing.QUERIES:
                return listings.listed_queries(text, service.queries(), service.open_pushes())
            case sql.Listing.TOPICS:
                names = listings.visible_topics(service.topics(), internal=show.everything)
                topics = service.described_topics(names)
                if show.extended:
                    return listings.listed_topics_extended(text, topics, service.topic_readers())
                return listings.listed_topics(text, topics)
            case sql.Listing.PROPERTIES:
                return listings.listed_properties(text, self._session)
            case sql.Listing.FUNCTIONS:
                return listings.listed_functions(text, catalog.functions.values())
            case sql.Listing.TYPES:
                return listings.listed_types(text, catalog.types)
            case sql.Listing.VARIABLES:
                return entities.variables(text, self._variables)
            case sql.Listing.HOLDS:
                return listings.listed_holds(text, service.holds())
            case sql.Listing.INDEXES:
                on = None if show.on is None else show.on.text
                found_on = catalog.indexes.values() if on is None else catalog.indexes_on(on)
                return listed_indexes(text, found_on, service.queries())
            case _:
                assert_never(show.listing)


def _listed(listing: sql.Listing, catalog: Catalog) -> Sequence[CatalogObject]:
    match listing:
        case sql.Listing.STREAMS:
            return catalog.streams
        case sql.Listing.MATERIALIZED_VIEWS:
            return catalog.materialized_views
        case _:
            return [table for table in catalog.tables if not isinstance(table, MaterializedView)]
