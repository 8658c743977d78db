"""Runs the statements of a /ksql request, one after the other."""

from collections.abc import Mapping
from typing import assert_never

from holdfast.errors import HoldfastError, NotSupported
from holdfast.server import entities
from holdfast.server.problems import Code, Json, Problem, statement_problem, too_deep
from holdfast.server.requests import Asked
from holdfast.server.service import Service
from holdfast.sql import statements as sql
from holdfast.sql.bind import bind
from holdfast.sql.bound import (
    BoundCreateAs,
    BoundCreateSource,
    BoundDrop,
    BoundExplain,
    BoundInsert,
    BoundNothing,
    BoundSelect,
    BoundTerminate,
)
from holdfast.sql.parse import ParsedStatement, statements


def run_statements(service: Service, asked: Asked) -> list[Json]:
    """The entity of every statement. The first that fails ends the run; those before it have happened."""
    done: list[Json] = []
    session = dict(asked.properties)
    current = asked.text
    rest = statements(asked.text)
    try:
        while (parsed := next(rest, None)) is not None:
            current = parsed.text
            done.append(run_statement(service, parsed, session))
            current = asked.text
    except WrongEndpoint as error:
        raise statement_problem(error, current, done, Code.WRONG_ENDPOINT) from None
    except HoldfastError as error:
        raise statement_problem(error, current, done) from error
    except RecursionError:
        raise statement_problem(too_deep(), current, done) from None
    if not done:
        raise Problem(Code.BAD_REQUEST, "there is no statement")
    return done


class WrongEndpoint(NotSupported):
    """A statement that another endpoint takes."""


def run_statement(service: Service, parsed: ParsedStatement, session: dict[str, str]) -> Json:
    """Run one statement; SET and UNSET change `session`, for those that follow."""
    text = parsed.text
    bound = bind(parsed.statement, service.catalog, session)
    match bound:
        case BoundCreateSource() | BoundCreateAs() | BoundDrop() | BoundTerminate():
            return entities.current_status(text, entities.command_id(bound), service.execute(parsed, session))
        case BoundNothing(notice):
            return entities.status(text, entities.command_id(bound), notice, -1, warnings=[notice])
        case BoundInsert():
            service.insert(bound)
            return entities.status(text, entities.command_id(bound), "1 row inserted.", -1)
        case BoundSelect():
            raise WrongEndpoint(
                "a SELECT cannot be run on /ksql",
                hint="Send it to /query-stream.",
                position=parsed.position,
            )
        case BoundExplain() | sql.ExplainQuery():
            return explain(service, bound, text, session)
        case sql.Describe(name=name, extended=extended):
            found = service.catalog.relation(name.text, position=name.position)
            told = entities.described(found, service.catalog, service.queries(), extended=extended)
            return entities.source_description(text, told)
        case sql.Show():
            return show(service, bound, text, session)
        case sql.SetProperty(name=name, value=value):
            session[name] = value
            return entities.properties(text, session)
        case sql.UnsetProperty(name=name):
            session.pop(name, None)
            return entities.properties(text, session)
        case _:
            assert_never(bound)


def explain(service: Service, asked: BoundExplain | sql.ExplainQuery, text: str, session: Mapping[str, str]) -> Json:
    format_ = asked.format or sql.ExplainFormat.TEXT
    if isinstance(asked, BoundExplain):
        plan, bound = service.explain(asked, format_), asked.statement
        return entities.query_description(text, plan, format_, session, bound=bound, info=None)
    entry = service.catalog.query(asked.query.text, position=asked.query.position)
    info = next((query for query in service.queries() if query.id == entry.id), None)
    plan = service.explain(entry, format_)
    return entities.query_description(text, plan, format_, session, bound=None, info=info)


def show(service: Service, asked: sql.Show, text: str, session: Mapping[str, str]) -> Json:
    catalog = service.catalog
    match asked.listing:
        case sql.Listing.STREAMS | sql.Listing.TABLES if asked.extended:
            found = catalog.streams if asked.listing is sql.Listing.STREAMS else catalog.tables
            queries = service.queries()
            return entities.source_descriptions(
                text, [entities.described(each, catalog, queries, extended=True) for each in found]
            )
        case sql.Listing.STREAMS:
            return entities.listed_objects(text, "streams", catalog.streams)
        case sql.Listing.TABLES:
            return entities.listed_objects(text, "tables", catalog.tables)
        case sql.Listing.QUERIES:
            return entities.listed_queries(text, service.queries())
        case sql.Listing.TOPICS:
            return entities.listed_topics(text, service.topics(), internal=asked.extended)
        case sql.Listing.PROPERTIES:
            return entities.properties(text, session)
        case sql.Listing.FUNCTIONS:
            return entities.listed_functions(text)
        case _:
            assert_never(asked.listing)


def read_select(service: Service, asked: Asked) -> BoundSelect:
    """The one query of a request to /query-stream or /query."""
    current = asked.text
    try:
        parsed = list(statements(asked.text))
        if len(parsed) != 1:
            raise Problem(Code.BAD_REQUEST, f"expected one statement, found {len(parsed)}")
        current = parsed[0].text
        if not isinstance(parsed[0].statement, sql.Select | sql.Refused):
            raise WrongEndpoint("only a SELECT can be run here", hint="Send it to /ksql.", position=parsed[0].position)
        bound = bind(parsed[0].statement, service.catalog, asked.properties)
    except WrongEndpoint as error:
        raise statement_problem(error, current, (), Code.WRONG_ENDPOINT) from None
    except HoldfastError as error:
        raise statement_problem(error, current, ()) from error
    except RecursionError:
        raise statement_problem(too_deep(), current, ()) from None
    assert isinstance(bound, BoundSelect)
    return bound
