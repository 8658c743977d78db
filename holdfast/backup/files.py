"""Durable copies of files: a new folder exists completely, or not at all."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from holdfast.errors import BackupError

CHUNK = 4 << 20
Progress = Callable[[int], None]
"""Called with the number of bytes copied since the last call."""


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to fill; it becomes `target` when the block succeeds, and is removed otherwise.

    It has a temporary name until its contents are on disk, so that an incomplete copy is never taken for the target.
    """
    check_new(target)
    partial = target.with_name(f"{target.name}.partial-{uuid4().hex[:8]}")
    try:
        try:
            partial.mkdir(parents=True)
            yield partial
            sync_all(partial)
            partial.rename(target)
            sync(target.parent)
        except OSError as cause:
            raise BackupError(f'the folder "{target}" cannot be written', detail=f"{cause}.") from cause
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def check_new(target: Path) -> None:
    """Reject a target that exists, unless it is an empty folder."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupError(
            f'"{target}" already exists and is not an empty folder',
            hint="Name a folder that does not exist yet.",
        )


def copy(source: Path, target: Path, size: int, progress: Progress) -> str:
    """Copy the first `size` bytes and return their SHA-256."""
    digest = hashlib.sha256()
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as reading, target.open("xb") as writing:
        remaining = size
        while remaining:
            chunk = reading.read(min(remaining, CHUNK))
            if not chunk:
                raise BackupError(
                    f'"{source}" is too short', detail=f"It has {size - remaining:,} bytes instead of {size:,}."
                )
            digest.update(chunk)
            writing.write(chunk)
            remaining -= len(chunk)
            progress(len(chunk))
    return digest.hexdigest()


def sync_all(root: Path) -> None:
    """Flush all files to disk. Once at the end is cheaper than after each file."""
    for folder, _, names in os.walk(root):
        for name in names:
            sync(Path(folder, name))
        sync(Path(folder))


def sync(path: Path) -> None:
    """Flush a file's contents, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
