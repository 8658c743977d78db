"""Runs statements one after the other and reads the one query of a request: the bridge from SQL to the service."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import assert_never

from holdfast.catalog.objects import CatalogObject, MaterializedView, QueryState
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import (
    HoldfastError,
    NoTransaction,
    NotSupported,
    OpenTransaction,
    UnknownObject,
)
from holdfast.names import ObjectName, TopicName
from holdfast.runtime.functions.registry import function
from holdfast.server import entities
from holdfast.server.indexes import described_index, listed_indexes
from holdfast.server.problems import Code, Json, Problem, statement_problem, too_deep
from holdfast.server.pushes import Pushes
from holdfast.server.requests import Asked
from holdfast.server.service import QueryInfo, Service, Topic
from holdfast.server.statuses import Statuses
from holdfast.sql import statements as sql
from holdfast.sql.bind import bind
from holdfast.sql.bound import (
    BoundAlter,
    BoundAssertTopic,
    BoundCreateAs,
    BoundCreateFunction,
    BoundCreateSource,
    BoundCreateType,
    BoundCreateView,
    BoundDrop,
    BoundDropFunction,
    BoundDropType,
    BoundDropView,
    BoundExplain,
    BoundExplainTimestamp,
    BoundInsert,
    BoundInsertSelect,
    BoundNothing,
    BoundPause,
    BoundResume,
    BoundSelect,
    BoundSubscribe,
    BoundTerminate,
)
from holdfast.sql.bound_hold import BoundAdvanceHold, BoundCreateHold, BoundDropHold, BoundRenameHold
from holdfast.sql.bound_index import BoundAlterIndex, BoundCreateIndex, BoundDropIndex
from holdfast.sql.bound_read import BoundRead
from holdfast.sql.parse import ParsedStatement
from holdfast.sql.session import TRANSACTION
from holdfast.sql.variables import Script
from holdfast.sql.view_columns import view_schema

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
"""The statements that change nothing: a transaction of any kind can have them."""


class WrongEndpoint(NotSupported):
    """A statement that another endpoint takes."""


class Statements:
    """Runs the statements of requests. From any thread."""

    def __init__(self, service: Service, pushes: Pushes, statuses: Statuses) -> None:
        self._service, self._pushes, self._statuses = service, pushes, statuses

    def run(self, asked: Asked) -> list[Json]:
        """The entity of every statement. The first that fails ends the run; those before it have happened."""
        return _Run(self._service, self._pushes, self._statuses, asked).run()

    def read_question(self, asked: Asked) -> tuple[BoundSelect | BoundRead | BoundSubscribe | sql.Print, str]:
        """The one query of a request to /query-stream or /query, and its words."""
        script = Script(asked.text, asked.variables, lambda: self._service.catalog.types)
        current = asked.text
        try:
            parsed = list(script)
            if len(parsed) != 1:
                raise Problem(Code.BAD_REQUEST, f"expected one statement, found {len(parsed)}")
            current = parsed[0].text
            if not isinstance(parsed[0].statement, sql.Select | sql.Subscribe | sql.Print | sql.Refused):
                message, position = "only SELECT, SUBSCRIBE and PRINT can be run here", parsed[0].statement.position
                raise WrongEndpoint(message, hint="Send it to /ksql.", position=position)
            bound = bind(parsed[0].statement, self._service.catalog, asked.properties)
        except HoldfastError as error:
            raise told(error, script, current, ()) from error
        except RecursionError:
            raise statement_problem(too_deep(), current, ()) from None
        assert isinstance(bound, BoundSelect | BoundRead | BoundSubscribe | sql.Print)
        return bound, current


def told(error: HoldfastError, script: Script, text: str, done: Sequence[Json]) -> Problem:
    code = Code.WRONG_ENDPOINT if isinstance(error, WrongEndpoint) else None
    return statement_problem(script.placed(error), text, done, code)


class _Run:
    """One request's statements: properties and variables hold for those that follow."""

    def __init__(self, service: Service, pushes: Pushes, statuses: Statuses, asked: Asked) -> None:
        self._service, self._pushes, self._statuses = service, pushes, statuses
        self._text = asked.text
        self._session = dict(asked.properties)
        self._variables = dict(asked.variables)
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
            raise told(error, script, current, done) from error
        except RecursionError:
            self._fail(too_deep())
            raise statement_problem(too_deep(), current, done) from None
        if not done:
            raise Problem(Code.BAD_REQUEST, "there is no statement")
        return done

    def _fail(self, error: HoldfastError) -> None:
        """What is not done for an error is not half done: a client that has not got the id cannot go on either."""
        transaction = self._session.get(TRANSACTION)
        if transaction is None or isinstance(error, WrongEndpoint | OpenTransaction):
            return
        if transaction == self._opened:
            with suppress(HoldfastError):
                self._service.end_transaction(transaction, commits=False)
        else:
            self._service.fail_transaction(transaction, error.message)

    def _statement(self, parsed: ParsedStatement) -> Json:
        text = parsed.text
        transaction = self._session.get(TRANSACTION)
        if transaction is not None and not isinstance(parsed.statement, IN_TRANSACTIONS):
            changed = self._service.change_in_transaction(transaction, parsed, self._session)
            return entities.queued(text, entities.command_id(changed))
        try:
            bound = bind(parsed.statement, self._service.catalog, self._session)
        except UnknownObject:
            if isinstance(parsed.statement, sql.Terminate) and (ended := self._terminate(parsed.statement, text)):
                return ended
            raise
        match bound:
            case (
                BoundCreateSource()
                | BoundCreateAs()
                | BoundInsertSelect()
                | BoundAlter()
                | BoundCreateType()
                | BoundDropType()
                | BoundCreateFunction()
                | BoundDropFunction()
                | BoundCreateView()
                | BoundDropView()
                | BoundCreateIndex()
                | BoundAlterIndex()
                | BoundDropIndex()
                | BoundDrop()
                | BoundTerminate()
                | BoundPause()
                | BoundResume()
                | BoundCreateHold()
                | BoundRenameHold()
                | BoundDropHold()
            ):
                done = self._service.execute(parsed, self._session)
                command = entities.command_id(bound)
                self._statuses.note(command, done.message, done.query)
                return entities.current_status(text, command, done)
            case BoundAdvanceHold(hold):
                at = self._service.advance_hold(bound)
                return entities.status(text, entities.command_id(bound), f"Hold {hold.name} is at {at}.", -1)
            case BoundNothing(notice):
                return entities.status(text, entities.command_id(bound), notice, -1, warnings=[notice])
            case BoundInsert():
                self._service.insert(bound)
                return entities.status(text, entities.command_id(bound), "1 row inserted.", -1)
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
                shown = sql.ExplainFormat.TEXT
                timed = entities.described_query(text, plan, shown, self._session, bound=query, info=None)
                return entities.query_description(text, timed)
            case BoundExplain() | sql.ExplainQuery():
                return self._explain(bound, text)
            case sql.Describe(name=name) if name.text in self._service.catalog.indexes:
                return described_index(text, self._service.catalog.index(name.text), self._service.queries())
            case sql.Describe(name=name, extended=extended):
                catalog = self._service.catalog
                if name.text in catalog.views:
                    view = catalog.views[ObjectName(name.text)]
                    told = entities.described_view(view, view_schema(view, catalog), extended=extended)
                    return entities.source_description(text, told)
                found = catalog.relation(name.text, position=name.position)
                topics = self._described_topics([found])
                described = entities.described(found, catalog, self._service.queries(), topics, extended=extended)
                return entities.source_description(text, described)
            case sql.DescribeFunction(name=name):
                own = self._service.catalog.functions.get(name.text.upper())
                return entities.described_function(text, function(own.versioned if own else name.text.upper()), own)
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
                "there is a transaction already", hint="End it with COMMIT first.", position=statement.position
            )
        opened = self._service.begin_transaction(read_only=statement.read_only)
        self._opened = self._session[TRANSACTION] = opened
        return entities.transaction(text, opened, "OPEN")

    def _end(self, statement: sql.End, text: str, transaction: str) -> Json:
        try:
            changed = self._service.end_transaction(transaction, commits=statement.commits)
        except HoldfastError as error:
            # Where a statement of an earlier request was is not a place in this one.
            error.position = statement.position
            raise
        named = [(entities.command_id(bound), done) for bound, done in changed]
        for command, done in named:
            self._statuses.note(command, done.message, done.query)
        return entities.transaction(text, transaction, "COMMITTED" if named else "ENDED", named)

    def _terminate(self, statement: sql.Terminate, text: str) -> Json | None:
        """End a push query; None when none has the id."""
        push = self._pushes.find(statement.query.text) if statement.query is not None else None
        if push is None:
            return None
        self._pushes.close(push)
        return entities.status(text, f"terminate/{push.id}/execute", "Query terminated.", -1)

    def _explain(self, asked: BoundExplain | sql.ExplainQuery, text: str) -> Json:
        service, format_ = self._service, asked.format or sql.ExplainFormat.TEXT
        if isinstance(asked, BoundExplain):
            plan, bound = service.explain(asked, format_), asked.statement
            described = entities.described_query(text, plan, format_, self._session, bound=bound, info=None)
            return entities.query_description(text, described)
        entry = service.catalog.query(asked.query.text, position=asked.query.position)
        info = next((query for query in service.queries() if query.id == entry.id), None)
        plan = service.explain(entry, format_)
        described = entities.described_query(text, plan, format_, self._session, bound=None, info=info)
        return entities.query_description(text, described)

    def _described(self, info: QueryInfo) -> Json:
        service, format_ = self._service, sql.ExplainFormat.TEXT
        entry = service.catalog.query(info.id)
        plan = service.explain(entry, format_) if entry.state is not QueryState.INCOMPATIBLE else ""
        return entities.described_query(info.statement, plan, format_, entry.properties, bound=None, info=info)

    def _described_topics(self, found: Iterable[CatalogObject]) -> Mapping[TopicName, Topic]:
        return self._service.described_topics([each.topic for each in found if each.topic is not None])

    def _show(self, asked: sql.Show, text: str) -> Json:
        service, catalog = self._service, self._service.catalog
        match asked.listing:
            case sql.Listing.STREAMS | sql.Listing.TABLES | sql.Listing.MATERIALIZED_VIEWS if asked.extended:
                found = _listed(asked.listing, catalog)
                queries, topics = service.queries(), self._described_topics(found)
                return entities.source_descriptions(
                    text, [entities.described(each, catalog, queries, topics, extended=True) for each in found]
                )
            case sql.Listing.VIEWS:
                return entities.listed_views(text, catalog.views.values())
            case sql.Listing.STREAMS:
                return entities.listed_objects(text, "streams", catalog.streams)
            case sql.Listing.TABLES:
                return entities.listed_objects(text, "tables", _listed(asked.listing, catalog))
            case sql.Listing.MATERIALIZED_VIEWS:
                return entities.listed_materialized_views(text, catalog)
            case sql.Listing.QUERIES if asked.extended:
                return entities.query_descriptions(text, [self._described(info) for info in service.queries()])
            case sql.Listing.QUERIES:
                return entities.listed_queries(text, service.queries(), self._pushes.open())
            case sql.Listing.TOPICS:
                names = entities.shown_topics(service.topics(), internal=asked.everything)
                topics = service.described_topics(names)
                if asked.extended:
                    return entities.listed_topics_extended(text, topics, service.topic_readers())
                return entities.listed_topics(text, topics)
            case sql.Listing.PROPERTIES:
                return entities.listed_properties(text, self._session)
            case sql.Listing.FUNCTIONS:
                return entities.listed_functions(text, catalog.functions.values())
            case sql.Listing.TYPES:
                return entities.listed_types(text, catalog.types)
            case sql.Listing.VARIABLES:
                return entities.variables(text, self._variables)
            case sql.Listing.HOLDS:
                return entities.listed_holds(text, service.holds())
            case sql.Listing.INDEXES:
                on = None if asked.on is None else asked.on.text
                found_on = catalog.indexes.values() if on is None else catalog.indexes_on(on)
                return listed_indexes(text, found_on, service.queries())
            case _:
                assert_never(asked.listing)


def _listed(listing: sql.Listing, catalog: Catalog) -> Sequence[CatalogObject]:
    match listing:
        case sql.Listing.STREAMS:
            return catalog.streams
        case sql.Listing.MATERIALIZED_VIEWS:
            return catalog.materialized_views
        case _:
            return [table for table in catalog.tables if not isinstance(table, MaterializedView)]
