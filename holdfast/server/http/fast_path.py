"""The ASGI entry: POST endpoints are called directly, all others through FastAPI.

FastAPI documents every endpoint, but its overhead per request is higher than the cost of a pull query by key.
"""

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.metrics import REQUESTS

Endpoint = Callable[[Request], Awaitable[Response]]


class FastPath:
    """`direct` has POST endpoints by path; `on_error` returns the response to an error that one of them raises."""

    def __init__(
        self,
        app: ASGIApp,
        direct: Mapping[str, Endpoint],
        on_error: Callable[[Request, Exception], Awaitable[Response]],
    ) -> None:
        self._app, self._direct, self._on_error = app, direct, on_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        endpoint = self._direct.get(path) if scope.get("method") == "POST" else None
        if endpoint is None:
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive, send)
        try:
            response = await endpoint(request)
        except Exception as error:
            response = await self._on_error(request, error)
        REQUESTS.labels(path, str(response.status_code)).inc()
        await response(scope, receive, send)
