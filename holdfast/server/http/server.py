"""Runs the HTTP application in a background thread."""

import contextlib
import logging
import resource
import socket
import threading
import time
from collections.abc import Iterator

import uvicorn
from fastapi import FastAPI

from holdfast.config import Settings
from holdfast.errors import HoldfastError, StartError
from holdfast.server.http.app import make_app
from holdfast.server.http.connection import IDLE_SECONDS, HttpConnection
from holdfast.server.http.websocket import MAX_MESSAGE
from holdfast.service.service import ServiceApi

GRACE_SECONDS = 2
STOP_SECONDS = 10.0
BACKLOG = 4_096
"""Connections that may wait to be accepted; the operating system may limit it further."""
MAX_OPEN_FILES = 1 << 16
KEEPALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""Idle seconds before the first probe, seconds between probes, and unanswered probes before a client is lost."""


def listen(settings: Settings) -> socket.socket:
    """Bind the HTTP port. Done before anything else starts, so that a port in use is reported immediately."""
    host, port = settings.http_host, settings.http_port
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Connections inherit it: a client whose machine died does not close its connection.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in KEEPALIVE.items():
                if hasattr(socket, option):
                    listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
            listener.bind((host, port))
            # Listen now, so that a second server fails here; clients wait until the application runs.
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as cause:
        raise StartError(
            f"cannot listen on {host}:{port}",
            detail=f"{cause.strerror or cause}.",
            hint="Choose another port with --http-port, or stop the server that uses it.",
        ) from None
    return listener


def address(listener: socket.socket) -> str:
    """The URL that a client on this machine uses."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class HttpServer:
    """An HTTP server in a background thread."""

    def __init__(self, app: FastAPI, listener: socket.socket) -> None:
        self.url = address(listener)
        self._app = app
        # Takes ownership of the caller's socket.
        self._socket = socket.socket(fileno=listener.detach())
        self._failure: BaseException | None = None
        self._server = uvicorn.Server(
            uvicorn.Config(
                app.state.entry,
                http=HttpConnection,
                ws="wsproto",
                ws_max_size=MAX_MESSAGE,
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=BACKLOG,
                timeout_keep_alive=IDLE_SECONDS,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    def start(self) -> None:
        self._thread.start()
        deadline = time.monotonic() + STOP_SECONDS
        while not self._server.started and self._thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.005)

    def stop(self) -> None:
        """End the push queries, wait a moment for other requests, then stop."""
        if self._thread.is_alive():
            self._app.state.senders.stop()
            self._server.should_exit = True
            self._thread.join(STOP_SECONDS)

    def check(self) -> None:
        """Raise the error that stopped the server, if it has stopped."""
        if not self._thread.is_alive():
            raise StartError("the HTTP server has stopped", detail=str(self._failure) if self._failure else None)

    def _run(self) -> None:
        try:
            allow_many_files()
            self._server.run(sockets=[self._socket])
        except BaseException as failure:
            self._failure = failure
            logging.getLogger(__name__).exception("HTTP server failed")


def allow_many_files() -> None:
    """Raise the limit of open files: each connection is one, and shells often allow only 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(MAX_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@contextlib.contextmanager
def running(service: ServiceApi, listener: socket.socket) -> Iterator[HttpServer]:
    """Run an HTTP server until the block ends."""
    server = HttpServer(make_app(service), listener)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def serve(
    service: ServiceApi, settings: Settings, *, stop: threading.Event, listener: socket.socket | None = None
) -> None:
    """Serve until `stop` is set; raises the error that stops the service."""
    with running(service, listener or listen(settings)) as server:
        while not stop.wait(0.1):
            failed: HoldfastError | None = service.wait_failed(0.2)
            if failed is not None:
                raise failed
            server.check()
