"""Runs many cases, one after the other, on one Spark."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory

from holdfast.config import Settings
from holdfast.jars import JarSet, fetch_jars, find_java
from holdfast.runtime.spark.archiving import spark_archive
from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.spark.session import BRIEF, JAVA_OPTIONS, open_sessions
from holdfast.testing.case import Case, Malformed
from holdfast.testing.report import Entry
from holdfast.testing.running import run

Found = Case | Malformed


def chosen(cases: Iterable[Found], only: str | None) -> list[Found]:
    """The cases whose `file - name` has the pattern in it, in any case; `*` and `?` stand for any letters."""
    if only is None:
        return list(cases)
    pattern = f"*{only.lower()}*"
    return [case for case in cases if fnmatchcase(f"{case.file} - {case.name}".lower(), pattern)]


def run_all(cases: Iterable[Found], engine: Engine, done: Callable[[Entry], None]) -> list[Entry]:
    """Run the cases in their order; `done` is told of each."""
    entries = []
    for case in cases:
        begun = time.monotonic()
        verdict = run(case, engine)
        entry = Entry(case.file, case.name, verdict, time.monotonic() - begun)
        entries.append(entry)
        done(entry)
    return entries


@contextmanager
def spark_engine(settings: Settings) -> Iterator[Engine]:
    """An engine without Kafka, for as long as the block lasts."""
    java = find_java(settings.java_home)
    jars = fetch_jars(JarSet.SPARK, settings.jar_dir, java=java, ivy_settings=settings.ivy_settings)
    os.environ.setdefault(JAVA_OPTIONS, BRIEF)
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
