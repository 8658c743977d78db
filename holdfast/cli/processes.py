"""The processes that the command starts: Spark's and the broker's JVMs."""

from collections.abc import Iterator
from contextlib import contextmanager

import psutil

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
