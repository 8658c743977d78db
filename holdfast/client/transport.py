"""httpx settings and errors, shared by both clients."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from holdfast.client.session import Request, not_an_address, unreachable

CONNECT_SECONDS = 5.0
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20)


@contextmanager
def translate_errors(server: str) -> Iterator[None]:
    """Translate httpx's errors about an unreachable server."""
    try:
        yield
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as cause:
        raise not_an_address(server, cause) from None
    except httpx.TransportError as cause:
        raise unreachable(server, cause) from None


def connection(server: str, headers: Mapping[str, str] | None) -> dict[str, Any]:
    """The arguments of an httpx client."""
    # Proxy settings in the environment do not apply: the server is given by its address.
    return {"base_url": server, "headers": headers, "limits": LIMITS, "trust_env": False}


def httpx_arguments(request: Request) -> dict[str, Any]:
    """The arguments of an httpx request."""
    return {
        "method": request.method,
        "url": request.path,
        "content": request.body,
        "headers": request.headers,
        "timeout": httpx.Timeout(request.seconds, connect=CONNECT_SECONDS),
    }
