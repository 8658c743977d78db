"""Class data sharing archives: a JVM maps its classes from one instead of loading and verifying them at each start.

A JVM writes its archive when it exits. A JVM with another Java or other jars cannot use it, so the archive's name
contains a digest of both.
"""

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.errors import StartError

USED = "-XX:SharedArchiveFile="
MADE = "-XX:ArchiveClassesAtExit="
SILENT = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""Without these a JVM logs each class that it cannot archive."""
RETENTION_DAYS = 30
END_SECONDS = 120.0
"""Time limit for the exit of a JVM that writes an archive, which takes a few seconds."""


def archive_path(folder: Path, name: str, java: Path, jars: Sequence[Path]) -> Path:
    """The path of the archive for a `java` and jars; it may not exist."""
    digest = hashlib.sha256()
    for file in (java.resolve(), *jars):
        stat = file.stat()
        digest.update(f"{file}\0{stat.st_size}\0{stat.st_mtime_ns}\0".encode())
    return folder / f"{name}-{digest.hexdigest()[:16]}.jsa"


def options(archive: Path | None, others: Sequence[str] = ()) -> list[str]:
    """The JVM options that use an archive; none if it does not exist or the other options already name one."""
    if archive is None or not archive.is_file() or any(option.startswith((USED, MADE)) for option in others):
        return []
    with suppress(OSError):
        os.utime(archive)
    return [f"{USED}{archive}", *SILENT]


@contextmanager
def making(archive: Path) -> Iterator[list[str]]:
    """Yields the options for a JVM that writes the archive; it must have exited when the block ends."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    _remove_old(archive.parent)
    partial = archive.with_name(f"{archive.name}.{os.getpid()}")
    try:
        yield [f"{MADE}{partial}", *SILENT]
        if not partial.is_file():
            raise StartError("the JVM did not write a class archive", detail=f"Expected {archive}.")
        partial.replace(archive)
    finally:
        partial.unlink(missing_ok=True)


def _remove_old(folder: Path) -> None:
    """Remove archives unused for `RETENTION_DAYS`, such as those of an old Java."""
    for old in folder.glob("*.jsa*"):
        with suppress(OSError):
            if old.stat().st_mtime < time.time() - RETENTION_DAYS * 86_400:
                old.unlink()
