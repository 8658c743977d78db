"""The manifest of a backup: `manifest.json`, written last, lists all other files with their checksums."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import BackupError
from holdfast.names import ServiceId, StoreId

FILE = "manifest.json"
FORMAT = 1
"""Backups of another format are rejected."""


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A file of a backup, by its path in the data folder."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Reached:
    """The end offset of a partition as of the backup's time."""

    topic: str
    partition: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The service that was backed up, and as of which time."""

    release: str
    service_id: ServiceId
    store_id: StoreId
    time: int
    """The time of the last tick in the backup."""
    made_at: str
    kafka_cluster: str
    embedded: bool
    """Whether the backup contains the topics of an embedded broker."""
    read: tuple[Reached, ...]
    """The offsets up to which source topics were read."""
    published: tuple[Reached, ...]
    """The offsets up to which sink topics were known to be published."""

    @staticmethod
    def of(document: Mapping[str, Any]) -> "About":
        fields = {name: document[name] for name in About.__slots__}
        return About(
            **fields | {name: tuple(Reached(**each) for each in document[name]) for name in ("read", "published")}
        )


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of `manifest.json`."""

    about: About
    files: Sequence[BackedUp]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    def encode(self) -> str:
        document = {"format": FORMAT, **asdict(self.about), "files": [asdict(file) for file in self.files]}
        return json.dumps(document, indent=1)


def read_manifest(backup: Path) -> Manifest:
    """The manifest of a backup folder; raises if there is none that this release can use."""
    try:
        document = json.loads((backup / FILE).read_text("utf-8"))
    except FileNotFoundError:
        raise BackupError(
            f'"{backup}" is not a backup',
            detail=f"It has no {FILE}, which is written when a backup is complete.",
            hint="Name a folder that holdfast backup created.",
        ) from None
    except (OSError, ValueError) as cause:
        raise BackupError(f'the backup "{backup}" cannot be read', detail=f"{FILE}: {cause}.") from cause
    version = document.get("format") if isinstance(document, dict) else None
    if version != FORMAT:
        raise BackupError(
            f'the backup "{backup}" was not made by this release',
            detail=f"Its format is {version}; this release reads {FORMAT}.",
            hint="Restore it with the release that made it, or a newer one.",
        )
    try:
        found = Manifest(About.of(document), [BackedUp(**file) for file in document["files"]])
    except (KeyError, TypeError) as cause:
        detail = f"A field of {FILE} is missing or unknown: {cause}."
        raise BackupError(f'the backup "{backup}" cannot be read', detail=detail) from cause
    outside = [file.path for file in found.files if Path(file.path).is_absolute() or ".." in Path(file.path).parts]
    if outside:
        raise BackupError(f'the backup "{backup}" cannot be read', detail=f'"{outside[0]}" is outside the backup.')
    return found
