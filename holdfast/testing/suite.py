"""Runs cases one after the other in one Spark process."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory

from holdfast.config import SPARK_SUBMIT_OPTIONS, Settings
from holdfast.jars import JarSet, fetch_jars, find_java
from holdfast.runtime.spark.archive import spark_archive
from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.spark.session import BRIEF, open_sessions
from holdfast.testing.case import Case, Malformed
from holdfast.testing.report import CaseReport
from holdfast.testing.runner import run

AnyCase = Case | Malformed


def select_cases(cases: Iterable[AnyCase], only: str | None) -> list[AnyCase]:
    """The cases whose `file - name` contains the pattern, ignoring case; `*` and `?` are wildcards."""
    if only is None:
        return list(cases)
    pattern = f"*{only.lower()}*"
    return [case for case in cases if fnmatchcase(f"{case.file} - {case.name}".lower(), pattern)]


def run_all(cases: Iterable[AnyCase], engine: Engine, done: Callable[[CaseReport], None]) -> list[CaseReport]:
    """Run the cases in order; `done` is called after each."""
    entries = []
    for case in cases:
        started = time.monotonic()
        verdict = run(case, engine)
        entry = CaseReport(case.file, case.name, verdict, time.monotonic() - started)
        entries.append(entry)
        done(entry)
    return entries


@contextmanager
def spark_engine(settings: Settings) -> Iterator[Engine]:
    """An engine without Kafka, open during the block."""
    java = find_java(settings.java_home)
    jars = fetch_jars(JarSet.SPARK, settings.jar_dir, java=java, ivy_settings=settings.ivy_settings)
    os.environ.setdefault(SPARK_SUBMIT_OPTIONS, BRIEF)
    with TemporaryDirectory(prefix="holdfast-spark-") as folder:
        sessions = open_sessions(
            master=settings.spark_master,
            jars=jars,
            work_dir=Path(folder),
            properties=settings.spark_properties,
            java=java,
            archive=spark_archive(settings.jar_dir, java, jars),
        )
        try:
            yield Engine(sessions, {})
        finally:
            sessions.stop()
