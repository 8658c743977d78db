"""The way in: endpoints that take a whole request are called at once, all others by way of FastAPI.

FastAPI describes every endpoint, and does more for each request than the answer to a pull by key costs.
"""

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.metrics import REQUESTS

Endpoint = Callable[[Request], Awaitable[Response]]


class Front:
    """`direct` are endpoints of POST by their paths; `failed` gives the answer to what one of them raises."""

    def __init__(
        self,
        app: ASGIApp,
        direct: Mapping[str, Endpoint],
        failed: Callable[[Request, Exception], Awaitable[Response]],
    ) -> None:
        self._app, self._direct, self._failed = app, direct, failed

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
            response = await self._failed(request, error)
        REQUESTS.labels(path, str(response.status_code)).inc()
        await response(scope, receive, send)
