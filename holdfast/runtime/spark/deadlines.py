"""Time limits of Spark jobs: a job that takes too long is cancelled, and Spark is ended if that does not help.

Not every task can be cancelled. Spark interrupts the thread of a task, and most operators look for that between two
rows; Java's regular expressions never do, and may backtrack for longer than anyone waits. Such a task keeps its core
for good. As Spark itself does with the process of an executor whose tasks do not end, the process is ended then.
"""

import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from threading import Condition, Thread
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from holdfast.errors import JobTimeout

log = logging.getLogger(__name__)

GRACE_SECONDS = 5.0
"""How long a cancelled job may take to end."""
POLL_SECONDS = 0.1
FAR = 86_400.0
"""Seconds; longer than there is anything to wait for."""
TASK_THREAD = re.compile(r"in stage (\d+)\.\d+ \(TID \d+\)")
"""In the name of a thread that runs, or has run, a task."""
TASK_FRAME = "Executor$TaskRunner"


@dataclass
class _Job:
    due: float
    cancel: Callable[[], None]
    cancelling: Thread | None = None
    """Set once the limit has passed."""


class JobDeadlines:
    """The time limit of jobs, and the thread that watches it; the thread starts with the first job."""

    def __init__(self, limit: timedelta, kill: Callable[[], None]) -> None:
        """`kill` ends Spark's process."""
        self.limit, self._kill = limit, kill
        self._changed = Condition()
        self._jobs: dict[int, _Job] = {}
        self._tokens = count()
        self._thread: Thread | None = None

    @contextmanager
    def over(self, cancel: Callable[[], None]) -> Iterator[None]:
        """Call `cancel` when the block takes longer than the limit, and end Spark if it still runs.

        Raises `JobTimeout` when the block fails after that.
        """
        token, job = next(self._tokens), _Job(time.monotonic() + self.limit.total_seconds(), cancel)
        self._add(token, job)
        try:
            yield
        except Exception as error:
            if self._remove(token):
                raise JobTimeout(self.limit) from error
            raise
        finally:
            self._remove(token)

    def kill(self) -> None:
        """End Spark's process, because a job cannot be cancelled."""
        log.error("Spark job does not end: its process is ended and started again")
        self._kill()

    def _add(self, token: int, job: _Job) -> None:
        with self._changed:
            self._jobs[token] = job
            if self._thread is None:
                self._thread = Thread(target=self._watch, name="spark-deadlines", daemon=True)
                self._thread.start()
            elif len(self._jobs) == 1:
                self._changed.notify()

    def _remove(self, token: int) -> bool:
        """End the watch over a job; returns whether its limit has passed."""
        with self._changed:
            job = self._jobs.pop(token, None)
        if job is None or job.cancelling is None:
            return False
        # It must not cancel the next job.
        job.cancelling.join(GRACE_SECONDS)
        return True

    def _watch(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for job in self._jobs.values():
                    if job.due <= now:
                        try:
                            self._expire(job, now)
                        except Exception:  # The limits of all other jobs depend on this thread.
                            log.exception("Spark job could not be ended")
                due = min((job.due for job in self._jobs.values()), default=now + FAR)
                self._changed.wait(min(FAR, max(0.0, due - now)))

    def _expire(self, job: _Job, now: float) -> None:
        if job.cancelling is None:
            log.warning("Spark job cancelled: limit=%s", self.limit)
            job.due = now + GRACE_SECONDS
            # In a thread of its own: a JVM that does not respond must not stop the watch.
            job.cancelling = Thread(target=_cancel, args=(job.cancel,), name="spark-cancel", daemon=True)
            job.cancelling.start()
        else:
            job.due = now + GRACE_SECONDS
            self.kill()
            job.due = now + FAR


def _cancel(cancel: Callable[[], None]) -> None:
    try:
        cancel()
    except (PySparkException, Py4JError, OSError) as error:
        log.warning("Spark job could not be cancelled: error=%s", error)
    except Exception:
        log.exception("Spark job could not be cancelled")


def tasks_end(context: SparkContext, group: str) -> bool:
    """Whether the tasks of a cancelled job group end soon: the job ends at once, its tasks may run on."""
    deadline = time.monotonic() + GRACE_SECONDS
    while _has_tasks(context, group):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _has_tasks(context: SparkContext, group: str) -> bool:
    """Whether a thread of this JVM runs a task of a job group. Executors in other processes are Spark's to end."""
    jvm: Any = context._jvm
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    traces = jvm.java.lang.Thread.getAllStackTraces()
    for thread in traces.keySet():
        found = TASK_THREAD.search(thread.getName())
        if found and int(found[1]) in stages and TASK_FRAME in jvm.java.util.Arrays.toString(traces.get(thread)):
            return True
    return False
