"""The HTTP application: ksqlDB's endpoints over a service."""

import logging
import time
from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from fastapi import FastAPI, Request, Response
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse
from starlette.routing import Route

from holdfast.errors import HoldfastError, ReadOnlyTransaction
from holdfast.metrics import PULL_SECONDS
from holdfast.names import folded
from holdfast.server.command_status import CommandStatuses
from holdfast.server.http import openapi
from holdfast.server.http.arrow_stream import arrow_parts
from holdfast.server.http.cluster_status import cluster_status
from holdfast.server.http.fast_path import Endpoint, FastPath
from holdfast.server.http.framing import framing_for, wants_progress
from holdfast.server.http.hosts import AllowedHosts
from holdfast.server.http.inserts_stream import InsertsResponse, RowInserter, first_lines
from holdfast.server.http.key_lookups import LookupCache
from holdfast.server.http.metrics import CONTENT_TYPE as METRICS_TYPE
from holdfast.server.http.metrics import CountRequests, ServiceCollector, exposition
from holdfast.server.http.push_sender import PushSender, SenderPool
from holdfast.server.http.requests import (
    LINE_TYPES,
    RowFormat,
    accepted_format,
    as_object,
    check_origin,
    check_type,
    read_object,
    sql_request,
)
from holdfast.server.http.responses import PrintResponse, PushResponse, json_response, problem_response, pull_parts
from holdfast.server.http.websocket import QueryStream, SocketClient
from holdfast.server.problems import Code, Json, Problem, code_of, statement_problem
from holdfast.server.sql_request import SqlRequest
from holdfast.server.statements import Statements
from holdfast.service.push import TooManyPushQueries
from holdfast.service.service import ServiceApi
from holdfast.serving.printer import Printer
from holdfast.sql.properties.session import TRANSACTION, check_property
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect, SelectKind
from holdfast.sql.syntax.statements import Print

MAX_READS = 64
"""Threads that handle reads; further reads wait."""
MAX_CHANGES = 64
"""Threads that handle statements and inserts, which may wait for the coordinator: reads do not wait behind them."""
MAX_REPORTS = 4
"""Threads for metrics and other reports about the server, some of which ask Kafka."""

NO_ARROW = f"Accept {RowFormat.DELIMITED.value}."
POLL_SECONDS = 1.0
"""How often a read of a future time checks whether its client is still connected."""

HEALTH_NAMES = {"store": "metastore", "kafka": "kafka", "ticks": "commandRunner"}
"""ksqlDB's names for the parts."""

log = logging.getLogger(__name__)
T = TypeVar("T")


class Api:
    """The endpoints: one method each."""

    def __init__(self, service: ServiceApi) -> None:
        self.service = service
        self.senders = SenderPool(service)
        self.statuses = CommandStatuses()
        self.statements = Statements(service, self.statuses)
        self.collector = ServiceCollector(service)
        self.reads = anyio.CapacityLimiter(MAX_READS)
        self.changes = anyio.CapacityLimiter(MAX_CHANGES)
        self.reports = anyio.CapacityLimiter(MAX_REPORTS)
        self.lookups = LookupCache(service, self.threaded)

    async def threaded(
        self, call: Callable[..., T], *arguments: Any, limiter: anyio.CapacityLimiter | None = None
    ) -> T:
        """Run a blocking call in a thread: of those for reads, or of another `limiter`."""
        return await anyio.to_thread.run_sync(call, *arguments, limiter=limiter or self.reads)

    # -- statements and queries ----------------------------------------------------------------------

    async def ksql(self, request: Request) -> Response:
        sql = sql_request(await read_object(request), "ksql")
        return json_response(await self.threaded(self.statements.run, sql, limiter=self.changes))

    async def query_stream(self, request: Request) -> Response:
        body = await read_object(request)
        format_ = accepted_format(request.headers.get("accept"), default=RowFormat.DELIMITED)
        return await self._run_query(sql_request(body, "sql", "ksql"), format_, request)

    async def query(self, request: Request) -> Response:
        return await self._run_query(
            sql_request(await read_object(request), "ksql", "sql"), RowFormat.STREAMED, request
        )

    async def over_websocket(self, sql: SqlRequest, client: SocketClient) -> Response:
        return await self._run_query(sql, RowFormat.DELIMITED, client)

    async def _run_query(self, sql: SqlRequest, format_: RowFormat, request: Request | SocketClient) -> Response:
        as_arrow = format_ is RowFormat.ARROW
        framing = framing_for(format_, sql.options)
        catalog = self.service.catalog
        plain = not sql.properties and not sql.variables and not as_arrow
        split, reader, key = self.lookups.find(sql.text) if plain else (None, None, ())
        if reader is not None:
            try:
                with PULL_SECONDS.time():
                    return Response(await reader.content(key, framing), media_type=framing.media_type)
            except HoldfastError as error:
                raise statement_problem(error, sql.text, ()) from error
        bound, text = await self.threaded(self.statements.read_query, sql)
        if isinstance(bound, Print):
            return await self._print(bound, text, format_)
        if split is not None and isinstance(bound, BoundSelect):
            self.lookups.add(split, bound, catalog)
        try:
            if isinstance(bound, BoundRead) or (isinstance(bound, BoundSelect) and bound.kind is SelectKind.PULL):
                bound = await self._until_final(bound, request)
                with PULL_SECONDS.time():
                    result = await self.threaded(self.service.pull, bound, sql.properties.get(TRANSACTION))
                parts = arrow_parts(result) if as_arrow else pull_parts(result, framing)
                return StreamingResponse(parts, media_type=format_.value)
            if as_arrow:
                raise Problem(Code.NOT_ACCEPTABLE, "only pull queries are sent as Arrow", hint=NO_ARROW)
            if TRANSACTION in sql.properties:
                raise ReadOnlyTransaction(
                    "a push query cannot be run in a transaction", hint="End it with COMMIT first."
                )
            if self.senders.stopping:
                raise Problem(Code.SHUTTING_DOWN, "the server is shutting down")
            push = await self.threaded(self.service.push, bound, sql.options, text)
        except TooManyPushQueries as error:
            raise Problem(Code.TOO_MANY_PUSH_QUERIES, error.message, hint=error.hint) from error
        except HoldfastError as error:
            raise statement_problem(error, text, ()) from error
        progress = wants_progress(sql.options)
        return PushResponse(PushSender(push, framing, self.senders, limit=bound.limit, progress=progress))

    async def _print(self, statement: Print, text: str, format_: RowFormat) -> Response:
        """Respond with lines of text; no other form is supported."""
        if format_ in (RowFormat.ARRAY, RowFormat.ARROW):
            name = "JSON" if format_ is RowFormat.ARRAY else "Arrow"
            raise Problem(Code.NOT_ACCEPTABLE, f"the lines of PRINT cannot be sent as {name}", hint=NO_ARROW)
        try:
            tail = await self.threaded(self.service.print_topic, statement)
        except HoldfastError as error:
            raise statement_problem(error, text, ()) from error
        return PrintResponse(tail, Printer(interval=statement.interval, limit=statement.limit), self.senders)

    async def _until_final(
        self, bound: BoundSelect | BoundRead, request: Request | SocketClient
    ) -> BoundSelect | BoundRead:
        """Wait for an AS OF in the future without occupying a thread; ends when the client disconnects.

        Returns the query with `now()` evaluated when the request arrived.
        """
        if bound.as_of is None:
            return bound
        bound = await self.threaded(self.service.dated, bound)
        while (left := await self.threaded(self.service.left_ms, bound)) > 0:
            if self.senders.stopping or await request.is_disconnected():
                raise Problem(Code.SHUTTING_DOWN, "the query was cancelled before its AS OF time")
            await anyio.sleep(min(left / 1000, POLL_SECONDS))
        return bound

    async def close_query(self, request: Request) -> Response:
        id = (await read_object(request)).get("queryId")
        if not isinstance(id, str):
            raise Problem(Code.BAD_REQUEST, '"queryId" is missing or not a string')
        push = self.service.find_push(id)
        if push is None:
            raise Problem(Code.BAD_REQUEST, f'no push query has the id "{id}"')
        await self.threaded(self.service.close_push, push.id)
        return json_response({})

    async def inserts_stream(self, request: Request) -> Response:
        check_origin(request)
        check_type(request, LINE_TYPES)
        format_ = accepted_format(request.headers.get("accept"), default=RowFormat.DELIMITED)
        first, rows, rest = await first_lines(request.stream())
        head = as_object(first, "the first line")
        inserter = await self.threaded(self._inserter, head.get("target"))
        return InsertsResponse(
            rows, rest, inserter, self.changes, RowFormat.DELIMITED if format_ is RowFormat.STREAMED else format_
        )

    def _inserter(self, target: object) -> RowInserter:
        if not isinstance(target, str):
            raise Problem(Code.BAD_REQUEST, '"target" in the first line is missing or not a string')
        try:
            found = self.service.catalog.relation(folded(target))
            return RowInserter(found, self.service.insert_rows, lambda: time.time_ns() // 1_000_000)
        except HoldfastError as error:
            raise Problem(Code.BAD_REQUEST, error) from error

    async def backup(self, request: Request) -> Response:
        """Start a backup, keep it alive, or end it."""
        body, backups = await read_object(request), self.service.backups
        id = body.get("id")
        if id is None:
            return json_response((await self.threaded(backups.begin, limiter=self.changes)).encode())
        if not isinstance(id, str):
            raise Problem(Code.BAD_REQUEST, '"id" must be a string')
        if not await self.threaded(backups.end if body.get("end") is True else backups.keep_alive, id):
            raise Problem(
                Code.NOT_FOUND, f'no backup has the id "{id}"', hint="It has ended or timed out; start a new one."
            )
        return json_response({"id": id})

    # -- server status --------------------------------------------------------------------------------

    async def info(self) -> Response:
        info = {
            "version": self.service.version,
            "kafkaClusterId": await self.threaded(lambda: self.service.cluster_id, limiter=self.reports),
            "ksqlServiceId": self.service.settings.service_id,
            "serverStatus": "RUNNING",
        }
        return json_response({"KsqlServerInfo": info})

    async def healthcheck(self) -> Response:
        # Not in a thread: it must not wait for one, and it only looks at what the parts have noted.
        health = self.service.health()
        details: dict[str, Json] = {name: {"isHealthy": True} for name in HEALTH_NAMES.values()}
        for part, notice in health.notices.items():
            details[HEALTH_NAMES.get(part, part)] = {"isHealthy": True, "message": notice}
        for part, problem in health.problems.items():
            details[HEALTH_NAMES.get(part, part)] = {"isHealthy": False, "message": problem}
        state = {"isHealthy": health.healthy, "details": details, "serverState": "READY"}
        return json_response(state, status=200 if health.healthy else 503)

    async def cluster_status(self, request: Request) -> Response:
        host, port = request.scope.get("server") or ("localhost", 0)
        queries, lags = await self.threaded(lambda: (self.service.queries(), self.service.lags()), limiter=self.reports)
        return json_response(cluster_status(f"{host}:{port}", queries, lags, time.time_ns() // 1_000_000))

    async def is_valid_property(self, name: str) -> Response:
        try:
            check_property(name, None)
        except HoldfastError as error:
            raise Problem(Code.BAD_REQUEST, error) from error
        return json_response(True)

    async def metrics(self) -> Response:
        return Response(await self.threaded(exposition, self.collector, limiter=self.reports), media_type=METRICS_TYPE)

    async def all_statuses(self) -> Response:
        every = self.statuses.all(self.service.catalog)
        return json_response({"commandStatuses": dict.fromkeys(every, "SUCCESS")})

    async def one_status(self, type: str, entity: str, action: str) -> Response:
        return json_response(self.statuses.one(self.service.catalog, type, entity, action).body)


def make_app(service: ServiceApi) -> FastAPI:
    """The application of a service.

    `app.state.entry` is the ASGI entry point of a server; `app.state.senders` ends the open push queries when it stops.
    """
    app = FastAPI(
        title="Holdfast",
        version=service.version,
        description="ksqlDB's HTTP interface with extensions: see the page on HTTP in the documentation.",
        docs_url="/docs",
        redoc_url=None,
        redirect_slashes=False,
    )
    api = Api(service)
    app.state.senders = api.senders
    rows = {"delimited": openapi.DELIMITED_LINES, "json": openapi.PARTS, "streamed": openapi.STREAMED_PARTS,
            "arrow": openapi.BINARY}  # fmt: skip
    post_errors, responses = openapi.POST_ERRORS, openapi.responses

    direct: dict[str, Endpoint] = {}

    def post(path: str, summary: str, endpoint: Endpoint, body: Json, documented: openapi.Responses) -> None:
        direct[path] = endpoint
        app.post(path, summary=summary, openapi_extra=body, responses=documented, response_class=Response)(endpoint)

    def get(path: str, summary: str, endpoint: Callable[..., Any], documented: openapi.Responses) -> None:
        app.get(path, summary=summary, responses=documented, response_class=Response)(endpoint)

    post("/ksql", "Run statements in order", api.ksql, openapi.STATEMENTS,
         responses(*post_errors, json=openapi.an_array(openapi.ENTITY)))  # fmt: skip
    post("/query-stream", "Run a pull or push query", api.query_stream, openapi.QUERY_STREAM,
         responses(406, *post_errors, **rows))  # fmt: skip
    post("/query", "Run a query, with ksqlDB's streamed rows", api.query, openapi.QUERY,
         responses(*post_errors, streamed=openapi.STREAMED_PARTS))  # fmt: skip
    post(
        "/close-query",
        "End a push query",
        api.close_query,
        openapi.CLOSE,
        responses(*post_errors, json=openapi.ANY_OBJECT),
    )
    post("/inserts-stream", "Insert rows, each acknowledged", api.inserts_stream, openapi.INSERTS,
         responses(406, *post_errors, delimited=openapi.TEXT, json=openapi.an_array(openapi.ANY_OBJECT)))  # fmt: skip
    post("/backup", "Start a backup, keep it alive, or end it", api.backup, openapi.BACKUP,
         responses(404, *post_errors, json=openapi.BACKUP_STARTED))  # fmt: skip
    get("/info", "Version and ids of the server", api.info, responses(500, json=openapi.INFO))
    get("/healthcheck", "Health of the server and its parts", api.healthcheck,
        {**responses(500, json=openapi.HEALTH), 503: openapi.UNHEALTHY})  # fmt: skip
    get("/clusterStatus", "Lag of queries behind their topics", api.cluster_status,
        responses(500, json=openapi.CLUSTER_STATUS))  # fmt: skip
    get("/is_valid_property/{name}", "Whether SET accepts a property", api.is_valid_property,
        responses(400, 500, json=openapi.BOOLEAN))  # fmt: skip
    get("/metrics", "Prometheus metrics", api.metrics, responses(500, text=openapi.TEXT))
    get("/status", "Status of all commands", api.all_statuses, responses(500, json=openapi.COMMAND_STATUSES))
    get("/status/{type}/{entity}/{action}", "Status of a command", api.one_status,
        responses(404, 500, json=openapi.COMMAND_STATUS))  # fmt: skip

    app.add_api_websocket_route("/ws/query-stream", QueryStream(api.over_websocket).__call__)

    @app.get("/", include_in_schema=False)
    async def root() -> Response:
        return RedirectResponse("/info")

    endpoints = {route.path for route in app.routes if isinstance(route, Route)}
    app.add_middleware(CountRequests, endpoint_of=lambda path: path if path in endpoints else family(path))
    app.add_exception_handler(Problem, on_problem)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(HoldfastError, on_error)
    app.add_exception_handler(Exception, on_unexpected)
    app.state.entry = AllowedHosts(FastPath(app, direct, error_response), service.settings)
    return app


async def error_response(request: Request, error: Exception) -> Response:
    match error:
        case Problem():
            return await on_problem(request, error)
        case HoldfastError():
            return await on_error(request, error)
        case _:
            return await on_unexpected(request, error)


def family(path: str) -> str:
    """The endpoint of a path with parameters."""
    first = path.split("/", 2)[1] if path.startswith("/") else ""
    return f"/{first}" if first in ("status", "is_valid_property") else "other"


async def on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    if error.status >= 500:
        log.error("request failed: method=%s path=%s error=%s", request.method, request.url.path, error, exc_info=error)
    return problem_response(error)


async def on_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HoldfastError)
    return await on_problem(request, Problem(code_of(error), error))


async def on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = request.url.path
    match error.status_code:
        case 404:
            routes = (route for route in request.app.routes if getattr(route, "include_in_schema", True))
            known = ", ".join(sorted({route.path for route in routes}))
            return problem_response(
                Problem(Code.NOT_FOUND, f'endpoint "{path}" does not exist', hint=f"The endpoints are {known}.")
            )
        case 405:
            problem = Problem(Code.WRONG_METHOD, f'endpoint "{path}" does not support {request.method}')
            response = problem_response(problem)
            response.headers.update(error.headers or {})
            return response
        case status:
            return problem_response(Problem(status * 100, str(error.detail)))


async def on_unexpected(request: Request, error: Exception) -> Response:
    problem = Problem(Code.SERVER_ERROR, "the request failed inside the server", hint="See the server's log.")
    log.error("request failed: method=%s path=%s", request.method, request.url.path, exc_info=error)
    return problem_response(problem)
