"""DuckDB's errors, translated for users."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from holdfast.errors import ReadError, StoreEnded, StoreError, StoreLocked

_FULL = ("no space left on device", "disk quota exceeded", "file size limit", "max_temp_directory_size")


def translate(problem: duckdb.Error) -> StoreError:
    """The store's error, with a hint on what to do."""
    text = str(problem)
    # DuckDB does nothing more after what it calls fatal.
    fatal = isinstance(problem, duckdb.FatalException) or "database has been invalidated" in text
    if any(sign in text.lower() for sign in _FULL):
        then = "start the server again" if fatal else "the server continues without a restart"
        return (StoreEnded if fatal else StoreError)(
            "the disk of the data folder is full",
            detail=_first_line(text),
            hint=f"Free some space, then {then}: everything committed is still there.",
        )
    if isinstance(problem, duckdb.OutOfMemoryException):
        return StoreError(
            "the store is out of memory", detail=_first_line(text), hint="Raise the store's memory limit."
        )
    if fatal or isinstance(problem, (duckdb.IOException, duckdb.InternalException)):
        return (StoreEnded if fatal else StoreError)(
            "the store cannot be read or written",
            detail=_first_line(text),
            hint="Check the disk of the data folder, then start the server again: everything committed is still there.",
        )
    return StoreError("the store refuses an operation", detail=_first_line(text))


@contextmanager
def translate_errors() -> Iterator[None]:
    try:
        yield
    except duckdb.Error as problem:
        raise translate(problem) from problem


@contextmanager
def translate_read_errors(timeout: float) -> Iterator[None]:
    """For reads: a wrong expression is the reader's problem, not the store's."""
    try:
        yield
    except duckdb.InterruptException as problem:
        raise ReadError(
            f"the query took longer than {timeout:g} seconds", hint="Ask for less, or raise the timeout."
        ) from problem
    except (duckdb.IOException, duckdb.FatalException, duckdb.InternalException) as problem:
        raise translate(problem) from problem
    except duckdb.OutOfMemoryException as problem:
        raise ReadError("the query needs more memory than the store may use", detail=_first_line(problem)) from problem
    except duckdb.Error as problem:
        raise ReadError("the query failed", detail=_first_line(problem)) from problem


def cannot_open(folder: Path, problem: Exception) -> StoreError:
    text = str(problem)
    if "lock" in text.lower() and "conflicting" in text.lower():
        return StoreLocked(
            f"another process has the data folder {folder}",
            detail=_first_line(text),
            hint="Stop the other server, or give this one another data folder.",
        )
    if "not a valid duckdb database" in text.lower() or "serialization" in text.lower():
        return StoreError(
            f"the store in {folder} is not readable",
            detail=_first_line(text),
            hint="Restore the folder from a copy, or start with --rebuild.",
        )
    return StoreError(
        f"the store cannot be opened in {folder}",
        detail=_first_line(text),
        hint="Check that the folder exists, that it may be written, and that its disk has space.",
    )


def _first_line(problem: object) -> str:
    return str(problem).strip().splitlines()[0].rstrip(".") + "."
