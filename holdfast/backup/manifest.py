"""What a backup is: the file `manifest.json`, which is written last and names all others with their checksums."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import BackupError
from holdfast.names import ServiceId, StoreId

FILE = "manifest.json"
FORMAT = 1
"""A backup of a newer format is refused."""


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A file of a backup, by its place in the data folder."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Reached:
    """Where a partition ended as of the backup's time."""

    topic: str
    partition: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What the backup is of, and as of which time."""

    release: str
    service_id: ServiceId
    store_id: StoreId
    time: int
    """The last tick that it has."""
    made_at: str
    kafka_cluster: str
    embedded: bool
    """Whether it has the topics, too."""
    read: tuple[Reached, ...]
    """How far the topics were read."""
    published: tuple[Reached, ...]
    """How far the sink topics were known to be written."""

    @staticmethod
    def of(told: Mapping[str, Any]) -> "About":
        fields = {name: told[name] for name in About.__slots__}
        return About(**fields | {name: tuple(Reached(**each) for each in told[name]) for name in ("read", "published")})


@dataclass(frozen=True, slots=True)
class Manifest:
    """All that a backup says of itself."""

    about: About
    files: Sequence[BackedUp]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    def encode(self) -> str:
        told = {"format": FORMAT, **asdict(self.about), "files": [asdict(file) for file in self.files]}
        return json.dumps(told, indent=1)


def read_manifest(backup: Path) -> Manifest:
    """The manifest of a backup folder; says what is wrong when there is none that can be used."""
    try:
        told = json.loads((backup / FILE).read_text("utf-8"))
    except FileNotFoundError:
        raise BackupError(
            f'"{backup}" is not a backup',
            detail=f"It has no {FILE}, which a backup gets when it is complete.",
            hint="Name a folder that holdfast backup has made.",
        ) from None
    except (OSError, ValueError) as cause:
        raise BackupError(f'the backup "{backup}" cannot be read', detail=f"{FILE}: {cause}.") from cause
    version = told.get("format") if isinstance(told, dict) else None
    if version != FORMAT:
        raise BackupError(
            f'the backup "{backup}" was not made by this release',
            detail=f"Its format is {version}; this release reads {FORMAT}.",
            hint="Restore it with the release that made it, or a newer one.",
        )
    try:
        found = Manifest(About.of(told), [BackedUp(**file) for file in told["files"]])
    except (KeyError, TypeError) as cause:
        wrong = f"{FILE} lacks or misnames {cause}."
        raise BackupError(f'the backup "{backup}" cannot be read', detail=wrong) from cause
    outside = [file.path for file in found.files if Path(file.path).is_absolute() or ".." in Path(file.path).parts]
    if outside:
        raise BackupError(f'the backup "{backup}" cannot be read', detail=f'"{outside[0]}" is outside of it.')
    return found
