"""The HTTP application: ksqlDB's endpoints over a service."""

import logging
import time
from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import orjson
from fastapi import FastAPI, Request, Response
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse
from starlette.routing import Route

from holdfast.errors import HoldfastError, ReadOnlyTransaction
from holdfast.metrics import PULL_SECONDS
from holdfast.names import folded
from holdfast.server import openapi
from holdfast.server.cluster import cluster_status
from holdfast.server.framing import framing_for, wants_progress
from holdfast.server.front import Endpoint, Front
from holdfast.server.inserts import InsertsResponse, Writer, first_lines
from holdfast.server.lookups import Lookups
from holdfast.server.metrics import CONTENT_TYPE as METRICS_TYPE
from holdfast.server.metrics import CountRequests, ServiceCollector, exposition
from holdfast.server.print_response import PrintResponse
from holdfast.server.problems import Code, Json, Problem, code_of, statement_problem
from holdfast.server.pushes import Pushes
from holdfast.server.requests import (
    LINE_TYPES,
    Asked,
    Form,
    as_object,
    asked,
    check_origin,
    check_type,
    read_object,
    wanted_form,
)
from holdfast.server.sending import Sending
from holdfast.server.service import Service
from holdfast.server.statements import Statements
from holdfast.server.statuses import Statuses
from holdfast.server.streaming import PushResponse, pull_parts
from holdfast.server.websocket import Client, QueryStream
from holdfast.serving.printed import Printer
from holdfast.sql.bound import BoundSelect, SelectKind
from holdfast.sql.bound_read import BoundRead
from holdfast.sql.session import TRANSACTION, check_property
from holdfast.sql.statements import Print

MAX_REQUESTS = 64
"""Threads that answer requests; more requests than this wait for one."""

LOOK_AGAIN = 1.0
"""Seconds after which a read of a time that is still to come looks whether it is wanted and can be had."""

HEALTH_NAMES = {"store": "metastore", "kafka": "kafka", "ticks": "commandRunner"}
"""What ksqlDB calls the parts."""

log = logging.getLogger(__name__)
T = TypeVar("T")


class Api:
    """The endpoints; each is a method that answers a request."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.pushes = Pushes(service)
        self.statuses = Statuses()
        self.statements = Statements(service, self.pushes, self.statuses)
        self.collector = ServiceCollector(service, self.pushes)
        self.limiter = anyio.CapacityLimiter(MAX_REQUESTS)
        self.lookups = Lookups(service, self.threaded)

    async def threaded(self, call: Callable[..., T], *arguments: Any) -> T:
        return await anyio.to_thread.run_sync(call, *arguments, limiter=self.limiter)

    # -- statements and queries ----------------------------------------------------------------------

    async def ksql(self, request: Request) -> Response:
        told = asked(await read_object(request), "ksql")
        return json_response(await self.threaded(self.statements.run, told))

    async def query_stream(self, request: Request) -> Response:
        body = await read_object(request)
        form = wanted_form(request.headers.get("accept"), otherwise=Form.DELIMITED)
        return await self._answer(asked(body, "sql", "ksql"), form, request)

    async def query(self, request: Request) -> Response:
        return await self._answer(asked(await read_object(request), "ksql", "sql"), Form.STREAMED, request)

    async def over_websocket(self, told: Asked, client: Client) -> Response:
        return await self._answer(told, Form.DELIMITED, client)

    async def _answer(self, told: Asked, form: Form, request: Request | Client) -> Response:
        framing = framing_for(form, told.options)
        catalog = self.service.catalog
        plain = not told.properties and not told.variables
        found, reader, key = self.lookups.find(told.text) if plain else (None, None, ())
        if reader is not None:
            try:
                with PULL_SECONDS.time():
                    return Response(await reader.content(key, framing), media_type=framing.media_type)
            except HoldfastError as error:
                raise statement_problem(error, told.text, ()) from error
        bound, text = await self.threaded(self.statements.read_question, told)
        if isinstance(bound, Print):
            return await self._print(bound, text, form)
        if found is not None and isinstance(bound, BoundSelect):
            self.lookups.learn(found, bound, catalog)
        try:
            if isinstance(bound, BoundRead) or (isinstance(bound, BoundSelect) and bound.kind is SelectKind.PULL):
                bound = await self._until_final(bound, request)
                with PULL_SECONDS.time():
                    result = await self.threaded(self.service.pull, bound, told.properties.get(TRANSACTION))
                return StreamingResponse(pull_parts(result, framing), media_type=framing.media_type)
            if TRANSACTION in told.properties:
                raise ReadOnlyTransaction(
                    "a query that goes on cannot be run in a transaction", hint="End it with COMMIT first."
                )
            push = await self.threaded(self.pushes.start, bound, text, told.properties)
        except HoldfastError as error:
            raise statement_problem(error, text, ()) from error
        progress = wants_progress(told.options)
        return PushResponse(Sending(push, framing, self.pushes, limit=bound.limit, progress=progress))

    async def _print(self, asked: Print, text: str, form: Form) -> Response:
        """Lines of text, which have no place in a JSON array."""
        if form is Form.ARRAY:
            hint = f"Accept {Form.DELIMITED.value}."
            raise Problem(Code.NOT_ACCEPTABLE, "the lines of PRINT cannot be sent as JSON", hint=hint)
        try:
            tail = await self.threaded(self.service.print_topic, asked)
        except HoldfastError as error:
            raise statement_problem(error, text, ()) from error
        return PrintResponse(tail, Printer(interval=asked.interval, limit=asked.limit), self.pushes)

    async def _until_final(self, bound: BoundSelect | BoundRead, request: Request | Client) -> BoundSelect | BoundRead:
        """Wait for a time that is still to come, without a thread; a client that goes does not wait.

        Gives the query with `now()` as what it was when the query came.
        """
        if bound.as_of is None:
            return bound
        bound = await self.threaded(self.service.dated, bound)
        while (left := await self.threaded(self.service.left_ms, bound)) > 0:
            if self.pushes.stopping or await request.is_disconnected():
                raise Problem(Code.SHUTTING_DOWN, "the query ended before its time came")
            await anyio.sleep(min(left / 1000, LOOK_AGAIN))
        return bound

    async def close_query(self, request: Request) -> Response:
        id = (await read_object(request)).get("queryId")
        if not isinstance(id, str):
            raise Problem(Code.BAD_REQUEST, '"queryId" must be given, and be a text')
        push = self.pushes.find(id)
        if push is None:
            raise Problem(Code.BAD_REQUEST, f'no push query has the id "{id}"')
        await self.threaded(self.pushes.close, push)
        return json_response({})

    async def inserts_stream(self, request: Request) -> Response:
        check_origin(request)
        check_type(request, LINE_TYPES)
        form = wanted_form(request.headers.get("accept"), otherwise=Form.DELIMITED)
        first, rows, rest = await first_lines(request.stream())
        head = as_object(first, "the first line")
        writer = await self.threaded(self._writer, head.get("target"))
        return InsertsResponse(rows, rest, writer, self.limiter, Form.DELIMITED if form is Form.STREAMED else form)

    def _writer(self, target: object) -> Writer:
        if not isinstance(target, str):
            raise Problem(Code.BAD_REQUEST, '"target" must be given in the first line, and be a text')
        try:
            found = self.service.catalog.relation(folded(target))
            return Writer(found, self.service.insert_rows, lambda: time.time_ns() // 1_000_000)
        except HoldfastError as error:
            raise Problem(Code.BAD_REQUEST, error) from error

    async def backup(self, request: Request) -> Response:
        """Begin a backup, keep it going, or end it."""
        body, backups = await read_object(request), self.service.backups
        id = body.get("id")
        if id is None:
            return json_response((await self.threaded(backups.begin)).encode())
        if not isinstance(id, str):
            raise Problem(Code.BAD_REQUEST, '"id" must be a text')
        if not await self.threaded(backups.end if body.get("end") is True else backups.keep, id):
            raise Problem(Code.NOT_FOUND, f'no backup has the id "{id}"', hint="It was given up; begin another.")
        return json_response({"id": id})

    # -- about the server ----------------------------------------------------------------------------

    async def info(self) -> Response:
        told = {
            "version": self.service.version,
            "kafkaClusterId": await self.threaded(lambda: self.service.cluster_id),
            "ksqlServiceId": self.service.settings.service_id,
            "serverStatus": "RUNNING",
        }
        return json_response({"KsqlServerInfo": told})

    async def healthcheck(self) -> Response:
        health = await self.threaded(self.service.health)
        details: dict[str, Json] = {name: {"isHealthy": True} for name in HEALTH_NAMES.values()}
        for part, problem in health.problems.items():
            details[HEALTH_NAMES.get(part, part)] = {"isHealthy": False, "message": problem}
        told = {"isHealthy": health.healthy, "details": details, "serverState": "READY"}
        return json_response(told, status=200 if health.healthy else 503)

    async def cluster_status(self, request: Request) -> Response:
        host, port = request.scope.get("server") or ("localhost", 0)
        queries, lags = await self.threaded(lambda: (self.service.queries(), self.service.lags()))
        return json_response(cluster_status(f"{host}:{port}", queries, lags, time.time_ns() // 1_000_000))

    async def is_valid_property(self, name: str) -> Response:
        try:
            check_property(name, None)
        except HoldfastError as error:
            raise Problem(Code.BAD_REQUEST, error) from error
        return json_response(True)

    async def metrics(self) -> Response:
        return Response(await self.threaded(exposition, self.collector), media_type=METRICS_TYPE)

    async def all_statuses(self) -> Response:
        every = self.statuses.all(self.service.catalog)
        return json_response({"commandStatuses": dict.fromkeys(every, "SUCCESS")})

    async def one_status(self, type: str, entity: str, action: str) -> Response:
        return json_response(self.statuses.one(self.service.catalog, type, entity, action).body)


def make_app(service: Service) -> FastAPI:
    """The application of a service.

    `app.state.front` is what a server calls, `app.state.pushes` has the push queries that are open.
    """
    app = FastAPI(
        title="Holdfast",
        version=service.version,
        description="ksqlDB's HTTP interface, and more of it: see the page on HTTP in the documentation.",
        docs_url="/docs",
        redoc_url=None,
        redirect_slashes=False,
    )
    api = Api(service)
    app.state.pushes = api.pushes
    rows = {"delimited": openapi.DELIMITED_LINES, "json": openapi.PARTS, "streamed": openapi.STREAMED_PARTS}
    posted, asking = openapi.POSTED, (400, 500)
    answers = openapi.answers

    direct: dict[str, Endpoint] = {}

    def post(path: str, does: str, endpoint: Endpoint, body: Json, told: openapi.Answers) -> None:
        direct[path] = endpoint
        app.post(path, summary=does, openapi_extra=body, responses=told, response_class=Response)(endpoint)

    def get(path: str, does: str, endpoint: Callable[..., Any], told: openapi.Answers) -> None:
        app.get(path, summary=does, responses=told, response_class=Response)(endpoint)

    post("/ksql", "Run statements, one after the other", api.ksql, openapi.STATEMENTS,
         answers(*posted, json=openapi.an_array(openapi.ENTITY)))  # fmt: skip
    post("/query-stream", "Answer a SELECT, once or on and on", api.query_stream, openapi.QUERY_STREAM,
         answers(406, *posted, **rows))  # fmt: skip
    post("/query", "Answer a SELECT as streamed rows", api.query, openapi.QUERY,
         answers(*posted, streamed=openapi.STREAMED_PARTS))  # fmt: skip
    post("/close-query", "End a push query", api.close_query, openapi.CLOSE, answers(*posted, json=openapi.ANY_OBJECT))
    post("/inserts-stream", "Insert rows, each answered", api.inserts_stream, openapi.INSERTS,
         answers(406, *posted, delimited=openapi.TEXT, json=openapi.an_array(openapi.ANY_OBJECT)))  # fmt: skip
    post("/backup", "Begin a backup, keep it going, or end it", api.backup, openapi.BACKUP,
         answers(404, *posted, json=openapi.BEGUN))  # fmt: skip
    get("/info", "What this server is", api.info, answers(500, json=openapi.INFO))
    get("/healthcheck", "Whether this server works", api.healthcheck,
        {**answers(500, json=openapi.HEALTH), 503: openapi.ILL})  # fmt: skip
    get("/clusterStatus", "How far queries are behind their topics", api.cluster_status,
        answers(500, json=openapi.CLUSTER_STATUS))  # fmt: skip
    get("/is_valid_property/{name}", "Whether SET takes a property", api.is_valid_property,
        answers(*asking, json=openapi.FLAG))  # fmt: skip
    get("/metrics", "Figures for Prometheus", api.metrics, answers(500, text=openapi.TEXT))
    get("/status", "What became of commands", api.all_statuses, answers(500, json=openapi.COMMAND_STATUSES))
    get("/status/{type}/{entity}/{action}", "What became of a command", api.one_status,
        answers(404, 500, json=openapi.COMMAND_STATUS))  # fmt: skip

    app.add_api_websocket_route("/ws/query-stream", QueryStream(api.over_websocket).__call__)

    @app.get("/", include_in_schema=False)
    async def root() -> Response:
        return RedirectResponse("/info")

    endpoints = {route.path for route in app.routes if isinstance(route, Route)}
    app.add_middleware(CountRequests, known=lambda path: path if path in endpoints else family(path))
    app.add_exception_handler(Problem, on_problem)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(HoldfastError, on_error)
    app.add_exception_handler(Exception, on_surprise)
    app.state.front = Front(app, direct, answer_to)
    return app


async def answer_to(request: Request, error: Exception) -> Response:
    match error:
        case Problem():
            return await on_problem(request, error)
        case HoldfastError():
            return await on_error(request, error)
        case _:
            return await on_surprise(request, error)


def family(path: str) -> str:
    """The endpoint of a path with parameters."""
    first = path.split("/", 2)[1] if path.startswith("/") else ""
    return f"/{first}" if first in ("status", "is_valid_property") else "other"


def json_response(body: object, status: int = 200) -> Response:
    return Response(orjson.dumps(body), status_code=status, media_type="application/json")


def problem_response(problem: Problem) -> Response:
    return json_response(problem.body, problem.status)


async def on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    if error.status >= 500:
        log.error("%s %s: %s", request.method, request.url.path, error, exc_info=error)
    return problem_response(error)


async def on_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HoldfastError)
    return await on_problem(request, Problem(code_of(error), error))


async def on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = request.url.path
    match error.status_code:
        case 404:
            shown = (route for route in request.app.routes if getattr(route, "include_in_schema", True))
            known = ", ".join(sorted({route.path for route in shown}))
            return problem_response(
                Problem(Code.NOT_FOUND, f'there is no endpoint "{path}"', hint=f"There are {known}.")
            )
        case 405:
            problem = Problem(Code.WRONG_METHOD, f'endpoint "{path}" does not take {request.method}')
            response = problem_response(problem)
            response.headers.update(error.headers or {})
            return response
        case status:
            return problem_response(Problem(status * 100, str(error.detail)))


async def on_surprise(request: Request, error: Exception) -> Response:
    problem = Problem(Code.SERVER_ERROR, "the request failed inside the server", hint="The server's log says why.")
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return problem_response(problem)
