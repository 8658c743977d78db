"""The HTTP application: ksqlDB's endpoints over a service."""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import orjson
from fastapi import FastAPI, Request, Response
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from holdfast.errors import HoldfastError
from holdfast.server.framing import PROGRESS, framing_for
from holdfast.server.problems import Code, Json, Problem, code_of, statement_problem
from holdfast.server.requests import Asked, Form, asked, read_object, wanted_form
from holdfast.server.service import Service
from holdfast.server.statements import read_select, run_statements
from holdfast.server.streaming import PushResponse, pull_parts
from holdfast.serving.results import Push
from holdfast.sql.bound import SelectKind

MAX_PUSHES = 256
"""Each open push query has a thread that waits for its rows."""
MAX_REQUESTS = 64

HEALTH_NAMES = {"store": "metastore", "kafka": "kafka", "ticks": "commandRunner"}
"""What ksqlDB calls the parts."""

log = logging.getLogger(__name__)
T = TypeVar("T")


class Pushes:
    """The push queries that are being sent; all end when the server stops."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._open: dict[str, Push] = {}
        self._stopping = False
        self.limiter = anyio.CapacityLimiter(MAX_PUSHES)

    def check_room(self) -> None:
        if self._stopping:
            raise Problem(Code.SHUTTING_DOWN, "the server is shutting down")
        if len(self._open) >= MAX_PUSHES:
            raise Problem(
                Code.TOO_MANY_PUSH_QUERIES,
                f"{MAX_PUSHES} push queries are open, and there can be no more",
                hint="Close one with /close-query, or by closing its connection.",
            )

    def add(self, push: Push) -> None:
        self._open[push.id] = push

    def close(self, push: Push) -> None:
        self._open.pop(push.id, None)
        if not self._service.close_push(push.id):
            push.close()

    def close_all(self) -> None:
        self._stopping = True
        for push in list(self._open.values()):
            self.close(push)


def make_app(service: Service) -> FastAPI:
    """The application of a service. `app.state.pushes` has the push queries that are open."""
    app = FastAPI(title="Holdfast", version=service.version, docs_url="/docs", redoc_url=None)
    pushes = app.state.pushes = Pushes(service)
    requests = anyio.CapacityLimiter(MAX_REQUESTS)

    async def threaded(call: Callable[..., T], *arguments: Any) -> T:
        return await anyio.to_thread.run_sync(call, *arguments, limiter=requests)

    async def answer(told: Asked, form: Form) -> Response:
        bound = await threaded(read_select, service, told)
        framing = framing_for(form, told.options)
        try:
            if bound.kind is SelectKind.PULL:
                result = await threaded(service.pull, bound)
                return StreamingResponse(pull_parts(result, framing), media_type=framing.media_type)
            pushes.check_room()
            push = await threaded(service.push, bound, told.properties)
        except HoldfastError as error:
            raise statement_problem(error, told.text, ()) from error
        pushes.add(push)
        return PushResponse(
            push,
            framing,
            limit=bound.limit,
            progress=told.options.get(PROGRESS, "").lower() == "true",
            limiter=pushes.limiter,
            close=pushes.close,
        )

    @app.post("/ksql", summary="Run statements, one after the other", openapi_extra=body_schema("ksql"))
    async def ksql(request: Request) -> Response:
        told = asked(await read_object(request), "ksql")
        return json_response(await threaded(run_statements, service, told))

    @app.post("/query-stream", summary="Answer a SELECT, once or on and on", openapi_extra=body_schema("sql"))
    async def query_stream(request: Request) -> Response:
        form = wanted_form(request.headers.get("accept"), otherwise=Form.DELIMITED)
        return await answer(asked(await read_object(request), "sql", "ksql"), form)

    @app.post("/query", summary="Answer a SELECT as streamed rows", openapi_extra=body_schema("ksql"))
    async def query(request: Request) -> Response:
        return await answer(asked(await read_object(request), "ksql", "sql"), Form.STREAMED)

    @app.post("/close-query", summary="End a push query", openapi_extra=body_schema("queryId"))
    async def close_query(request: Request) -> Response:
        id = (await read_object(request)).get("queryId")
        if not isinstance(id, str):
            raise Problem(Code.BAD_REQUEST, '"queryId" must be given, and be a text')
        if not await threaded(service.close_push, id):
            raise Problem(Code.BAD_REQUEST, f'no push query has the id "{id}"')
        return json_response({})

    @app.get("/", include_in_schema=False)
    async def root() -> Response:
        return RedirectResponse("/info")

    @app.get("/info", summary="What this server is")
    async def info() -> Response:
        told = {
            "version": service.version,
            "kafkaClusterId": await threaded(lambda: service.cluster_id),
            "ksqlServiceId": service.settings.service_id,
            "serverStatus": "RUNNING",
        }
        return json_response({"KsqlServerInfo": told})

    @app.get("/healthcheck", summary="Whether this server works; 503 when it does not")
    async def healthcheck() -> Response:
        health = await threaded(service.health)
        details: dict[str, Json] = {name: {"isHealthy": True} for name in HEALTH_NAMES.values()}
        for part, problem in health.problems.items():
            details[HEALTH_NAMES.get(part, part)] = {"isHealthy": False, "message": problem}
        told = {"isHealthy": health.healthy, "details": details, "serverState": "READY"}
        return json_response(told, status=200 if health.healthy else 503)

    app.add_exception_handler(Problem, on_problem)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(HoldfastError, on_error)
    app.add_exception_handler(Exception, on_surprise)
    return app


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
            hint = "There are /ksql, /query-stream, /query, /close-query, /info and /healthcheck."
            return problem_response(Problem(Code.NOT_FOUND, f'there is no endpoint "{path}"', hint=hint))
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


def body_schema(text: str) -> Json:
    """What OpenAPI says of a body; it is read by hand, for its size and for errors of ksqlDB's shape."""
    properties: Json = {text: {"type": "string"}}
    if text != "queryId":
        free = {"type": "object", "additionalProperties": True}
        properties |= {"streamsProperties" if text == "ksql" else "properties": free, "requestProperties": free}
    schema = {"type": "object", "required": [text], "properties": properties}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
