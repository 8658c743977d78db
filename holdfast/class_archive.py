"""Archives of the classes that a JVM loads, which it maps instead of reading, checking and linking them again.

One is made by a JVM at its end. Another Java, or other jars, cannot use it and go on without, so that the name of one
says what it was made from.
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
"""A JVM remarks on each class that it cannot keep."""
KEPT_DAYS = 30
END_SECONDS = 120.0
"""In which a JVM that leaves an archive ends: it takes some seconds."""


def archive_path(folder: Path, name: str, java: Path, jars: Sequence[Path]) -> Path:
    """Where the archive for a `java` and jars is, or would be."""
    digest = hashlib.sha256()
    for file in (java.resolve(), *jars):
        stat = file.stat()
        digest.update(f"{file}\0{stat.st_size}\0{stat.st_mtime_ns}\0".encode())
    return folder / f"{name}-{digest.hexdigest()[:16]}.jsa"


def options(archive: Path | None, given: Sequence[str] = ()) -> list[str]:
    """The JVM's options to use an archive, if there is one and those that were given name none."""
    if archive is None or not archive.is_file() or any(option.startswith((USED, MADE)) for option in given):
        return []
    with suppress(OSError):
        os.utime(archive)
    return [f"{USED}{archive}", *SILENT]


@contextmanager
def making(archive: Path) -> Iterator[list[str]]:
    """The options of a JVM that leaves the archive, and has ended when the block ends."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    _forget_old(archive.parent)
    made = archive.with_name(f"{archive.name}.{os.getpid()}")
    try:
        yield [f"{MADE}{made}", *SILENT]
        if not made.is_file():
            raise StartError("a JVM left no archive of its classes", detail=f"It was to be {archive}.")
        made.replace(archive)
    finally:
        made.unlink(missing_ok=True)


def _forget_old(folder: Path) -> None:
    """Those that nothing has used for long: of a Java or a release that is gone."""
    for old in folder.glob("*.jsa*"):
        with suppress(OSError):
            if old.stat().st_mtime < time.time() - KEPT_DAYS * 86_400:
                old.unlink()
