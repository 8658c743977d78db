"""A consistent cut of a data folder: which files, and how much of each, to copy while the server keeps running."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from holdfast.backup.files import Progress, copy, new_folder
from holdfast.backup.manifest import FILE, About, BackedUp, Manifest
from holdfast.errors import BackupError


@dataclass(frozen=True, slots=True)
class CutFile:
    """A file to copy: its location, its path in a data folder, and how many of its bytes belong to the cut."""

    source: str
    path: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The files that a server pins for a backup, until the backup ends or sends no keep-alive for `seconds`."""

    id: str
    seconds: float
    data_dir: str
    about: About
    files: Sequence[CutFile]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    def encode(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def decode(document: Mapping[str, Any]) -> "Cut":
        files = [CutFile(**file) for file in document["files"]]
        return Cut(document["id"], document["seconds"], document["data_dir"], About.of(document["about"]), files)


def make_backup(cut: Cut, target: Path, progress: Progress, finish: Callable[[], None]) -> Manifest:
    """Copy a cut. `finish` is called after the last file, and raises if the server has already released the cut."""
    data_dir = Path(cut.data_dir)
    missing = next((file for file in cut.files if not (data_dir / file.source).exists()), None)
    if missing is not None:
        raise BackupError(
            "the server's data folder cannot be read from here",
            detail=f'"{data_dir / missing.source}" does not exist.',
            hint="Run holdfast backup on the server's machine, as a user who can read its data folder.",
        )
    with new_folder(target) as partial:
        copied = [
            BackedUp(file.path, file.bytes, copy(data_dir / file.source, partial / file.path, file.bytes, progress))
            for file in cut.files
        ]
        finish()
        manifest = Manifest(cut.about, copied)
        (partial / FILE).write_text(manifest.encode(), encoding="utf-8")
    return manifest
