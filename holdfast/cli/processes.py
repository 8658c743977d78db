"""The processes that the command starts: Spark's and the broker's JVMs."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from threading import Timer

import psutil

log = logging.getLogger(__name__)

END_SECONDS = 10.0


@contextmanager
def end_started_processes() -> Iterator[None]:
    """End the processes that were started in the block and are still running after it.

    A JVM normally ends with us, but one that is interrupted while it starts may fail and keep running.
    """
    own = psutil.Process()
    before = {child.pid for child in own.children(recursive=True)}
    try:
        yield
    finally:
        started = [child for child in own.children(recursive=True) if child.pid not in before]
        for end in (psutil.Process.terminate, psutil.Process.kill):
            for process in started:
                try:
                    end(process)
                except psutil.NoSuchProcess:
                    continue
            _, started = psutil.wait_procs(started, timeout=END_SECONDS)


@contextmanager
def ended_after(limit: timedelta) -> Iterator[None]:
    """End this process and its children with status 1 if the block takes longer than a limit.

    What is committed is durable, so the next start continues as after a kill.
    """
    timer = Timer(limit.total_seconds(), _exit, [limit])
    timer.name, timer.daemon = "stop-timeout", True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _exit(limit: timedelta) -> None:
    log.critical("server did not stop in time, and is ended: stop_timeout=%gs", limit.total_seconds())
    try:
        # Without waiting for them: a stop that continues once its job has failed must not race with this exit.
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                child.kill()
    finally:
        os._exit(1)
