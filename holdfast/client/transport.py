"""How both clients use httpx."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from holdfast.client.session import Request, not_an_address, unreachable

CONNECT_SECONDS = 5.0
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20)


@contextmanager
def reaching(server: str) -> Iterator[None]:
    """Tell of a server that is not there in our words."""
    try:
        yield
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as cause:
        raise not_an_address(server, cause) from None
    except httpx.TransportError as cause:
        raise unreachable(server, cause) from None


def connection(server: str, headers: Mapping[str, str] | None) -> dict[str, Any]:
    """The arguments of an httpx client."""
    # A proxy of the environment is for the internet, not for a server whose address was given.
    return {"base_url": server, "headers": headers, "limits": LIMITS, "trust_env": False}


def as_sent(request: Request) -> dict[str, Any]:
    """The arguments of an httpx request."""
    return {
        "method": request.method,
        "url": request.path,
        "content": request.body,
        "headers": request.headers,
        "timeout": httpx.Timeout(request.seconds, connect=CONNECT_SECONDS),
    }
