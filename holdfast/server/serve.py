"""Runs the HTTP application in a thread of its own."""

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
from holdfast.server.app import make_app
from holdfast.server.protocols import IDLE_SECONDS, Protocol
from holdfast.server.service import Service
from holdfast.server.websocket import MAX_MESSAGE

GRACE_SECONDS = 2
STOP_SECONDS = 10.0
BACKLOG = 4_096
"""Connections that may wait to be accepted; the system may allow fewer."""
FILES = 1 << 16
LOST_AFTER = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""Seconds of silence after which a client is asked for, again, and how often before it counts as gone."""


def listen(settings: Settings) -> socket.socket:
    """Take the HTTP port. Do it before all else is started: a port in use is then told at once."""
    host, port = settings.http_host, settings.http_port
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        taken = socket.socket(family, socket.SOCK_STREAM)
        try:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Connections inherit it: a client whose machine died sends no farewell.
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in LOST_AFTER.items():
                if hasattr(socket, option):
                    taken.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
            taken.bind((host, port))
            # Listening at once makes a second server fail here; clients wait until the application is there.
            taken.listen(BACKLOG)
        except OSError:
            taken.close()
            raise
    except OSError as cause:
        raise StartError(
            f"cannot listen on {host}:{port}",
            detail=f"{cause.strerror or cause}.",
            hint="Choose another port with --http-port, or stop the server that has it.",
        ) from None
    return taken


def address(taken: socket.socket) -> str:
    """The URL that a client on this machine uses."""
    host, port = taken.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class HttpServer:
    """An HTTP server that runs beside the caller."""

    def __init__(self, app: FastAPI, taken: socket.socket) -> None:
        self.url = address(taken)
        self._app = app
        # The socket is ours from here on, whatever becomes of the caller's.
        self._socket = socket.socket(fileno=taken.detach())
        self._failure: BaseException | None = None
        self._server = uvicorn.Server(
            uvicorn.Config(
                app.state.front,
                http=Protocol,
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
        """End the push queries, let other requests finish for a moment, then go."""
        if self._thread.is_alive():
            self._app.state.pushes.close_all()
            self._server.should_exit = True
            self._thread.join(STOP_SECONDS)

    def check(self) -> None:
        """Raise what ended the server, if anything has."""
        if not self._thread.is_alive():
            raise StartError("the HTTP server has ended", detail=str(self._failure) if self._failure else None)

    def _run(self) -> None:
        try:
            allow_many_files()
            self._server.run(sockets=[self._socket])
        except BaseException as failure:
            self._failure = failure
            logging.getLogger(__name__).exception("the HTTP server failed")


def allow_many_files() -> None:
    """Each connection is an open file, and shells allow 1,024 where the machine allows many more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@contextlib.contextmanager
def running(service: Service, taken: socket.socket) -> Iterator[HttpServer]:
    """An HTTP server for as long as the block lasts."""
    server = HttpServer(make_app(service), taken)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def serve(service: Service, settings: Settings, *, stop: threading.Event, taken: socket.socket | None = None) -> None:
    """Serve until `stop` is set; raises what makes the service unable to go on."""
    with running(service, taken or listen(settings)) as server:
        while not stop.wait(0.1):
            failed: HoldfastError | None = service.wait_failed(0.2)
            if failed is not None:
                raise failed
            server.check()
