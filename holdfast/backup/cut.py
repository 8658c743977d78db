"""A data folder at one moment: which files, and how much of each, a backup has to copy while the server runs on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from holdfast.backup.copying import Progress, copy, new_folder
from holdfast.backup.manifest import FILE, About, BackedUp, Manifest
from holdfast.errors import BackupError


@dataclass(frozen=True, slots=True)
class CutFile:
    """A file to copy: where it is, where it belongs in a data folder, and how much of it counts."""

    source: str
    path: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Cut:
    """What a server gives to be copied, until it is told that this is done or it was not asked for `seconds`."""

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
    def decode(told: Mapping[str, Any]) -> "Cut":
        files = [CutFile(**file) for file in told["files"]]
        return Cut(told["id"], told["seconds"], told["data_dir"], About.of(told["about"]), files)


def make_backup(cut: Cut, target: Path, progress: Progress, finish: Callable[[], None]) -> Manifest:
    """Copy a cut. `finish` is called when all is copied, and raises if the server did not keep it for so long."""
    data_dir = Path(cut.data_dir)
    absent = next((file for file in cut.files if not (data_dir / file.source).exists()), None)
    if absent is not None:
        raise BackupError(
            "the server's data folder cannot be read from here",
            detail=f'"{data_dir / absent.source}" is not there.',
            hint="Run holdfast backup on the machine of the server, as a user who can read its data folder.",
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
