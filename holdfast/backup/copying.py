"""Copying files so that a folder is there whole, or not at all."""

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
"""Told how many more bytes are copied."""


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `target` when the block ends well, and else is gone.

    It has another name until all that is in it is on the disk: what a crash leaves is never taken for the target.
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
    """Refuse a place where there is something."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupError(
            f'"{target}" is there already, and is not an empty folder',
            hint="Name a folder that does not exist yet.",
        )


def copy(source: Path, target: Path, size: int, progress: Progress) -> str:
    """Copy the first `size` bytes and give their SHA-256."""
    digest = hashlib.sha256()
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as reading, target.open("xb") as writing:
        left = size
        while left:
            part = reading.read(min(left, CHUNK))
            if not part:
                raise BackupError(
                    f'"{source}" is too short', detail=f"It has {size - left:,} bytes instead of {size:,}."
                )
            digest.update(part)
            writing.write(part)
            left -= len(part)
            progress(len(part))
    return digest.hexdigest()


def sync_all(root: Path) -> None:
    """Have all files on the disk. At the end: one after each file would cost the disk a turn each."""
    for folder, _, names in os.walk(root):
        for name in names:
            sync(Path(folder, name))
        sync(Path(folder))


def sync(path: Path) -> None:
    """Have a file's contents, or the names in a folder, on the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
