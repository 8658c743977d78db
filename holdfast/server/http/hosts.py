"""Which names a request may address the server by.

A page of any site can have its own name resolve to the address of a server on its reader's machine, and then post to
it: the browser takes both for one site (DNS rebinding). The name in the Host header gives it away.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address

from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.config import Settings
from holdfast.server.http.responses import problem_response
from holdfast.server.problems import Code, Problem

POLICY_VIOLATION = 1008
"""The close code of a refused WebSocket."""


class AllowedHosts:
    """Passes requests on whose Host is an address of the server, a name of this machine's loopback, or configured.

    A server that listens on loopback has no other addresses. One that does not may be behind any.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._is_local = app, settings.is_local
        self._names = {name.lower() for name in (settings.http_host, *settings.http_names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        host = HTTPConnection(scope).headers.get("host")
        if host is None or self.allows(host):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})
        else:
            problem = Problem(
                Code.FORBIDDEN,
                f'the server does not answer to the name "{host}"',
                hint="Use its address, or add the name to the setting http_names.",
            )
            await problem_response(problem)(scope, Request(scope, receive).receive, send)

    def allows(self, host: str) -> bool:
        name = _name(host).lower().rstrip(".")
        if name in self._names or name == "localhost" or name.endswith(".localhost"):
            return True
        address = _address(name)
        return address is not None and (address.is_loopback or not self._is_local)


def _name(host: str) -> str:
    """A Host without its port: `name`, `name:port`, `[address]:port`."""
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _address(name: str) -> IPv4Address | IPv6Address | None:
    """The IP address that a name is: no site can make that one its own name."""
    try:
        return ip_address(name)
    except ValueError:
        return None
