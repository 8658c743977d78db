"""Runs the HTTP application on hypercorn, in a thread of its own."""

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Iterator

from fastapi import FastAPI
from hypercorn.asyncio import serve as hypercorn_serve
from hypercorn.config import Config

from holdfast.config import Settings
from holdfast.errors import HoldfastError, StartError
from holdfast.server.app import make_app
from holdfast.server.service import Service

GRACE_SECONDS = 2.0
STOP_SECONDS = 10.0


def listen(settings: Settings) -> socket.socket:
    """Take the HTTP port. Do it before all else is started: a port in use is then told at once."""
    host, port = settings.http_host, settings.http_port
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        taken = socket.socket(family, socket.SOCK_STREAM)
        try:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind((host, port))
            # Listening at once makes a second server fail here; clients wait until the application is there.
            taken.listen(128)
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
        self._socket = taken
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._started.wait(STOP_SECONDS)

    def stop(self) -> None:
        """End the push queries, let other requests finish for a moment, then go."""
        if self._loop is not None and self._thread.is_alive():
            self._app.state.pushes.close_all()
            with contextlib.suppress(RuntimeError):  # the loop may just have ended by itself
                self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(STOP_SECONDS)

    def check(self) -> None:
        """Raise what ended the server, if anything has."""
        if not self._thread.is_alive():
            raise StartError("the HTTP server has ended", detail=str(self._failure) if self._failure else None)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as failure:
            self._failure = failure
            logging.getLogger(__name__).exception("the HTTP server failed")
        finally:
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        config = Config()
        config.bind = [f"fd://{self._socket.detach()}"]
        config.graceful_timeout = GRACE_SECONDS
        config.accesslog = None
        config.errorlog = logging.getLogger("hypercorn.error")
        config.include_server_header = False

        async def stopped() -> None:
            self._started.set()
            await self._stop.wait()

        await hypercorn_serve(self._app, config, shutdown_trigger=stopped)  # type: ignore[arg-type]


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
