"""Restores a backup to a data folder, and records its origin, which a server checks when it starts."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

from holdfast.backup.files import Progress, copy, new_folder
from holdfast.backup.manifest import Manifest, read_manifest
from holdfast.errors import BackupError, ForeignStore
from holdfast.names import ServiceId

FILE = "restored.json"


@dataclass(frozen=True, slots=True)
class Restored:
    """The origin of a restored data folder; `id` distinguishes it from the folder that was backed up."""

    id: str
    service_id: ServiceId
    kafka_cluster: str
    embedded: bool
    time: int
    made_at: str

    def check(self, service_id: ServiceId, kafka_cluster: str) -> None:
        """Reject topics of another service: the store would drop everything that they do not contain."""
        for what, was, now in (
            ("service id", self.service_id, service_id),
            ("Kafka cluster", self.kafka_cluster, kafka_cluster),
        ):
            if was != now:
                raise ForeignStore(
                    f"the data folder was restored from a backup of another {what}",
                    detail=f"The backup has {was}, but this server starts with {now}.",
                    hint=f"Start it with the {what} of the backup.",
                )


def restore(backup: Path, data_dir: Path, progress: Progress) -> Manifest:
    """Copy a backup to a new data folder and verify every checksum."""
    manifest = read_manifest(backup)
    check_files(backup, manifest)
    about = manifest.about
    with new_folder(data_dir) as partial:
        for file in manifest.files:
            if copy(backup / file.path, partial / file.path, file.bytes, progress) != file.sha256:
                raise BackupError(
                    f'the backup "{backup}" is damaged',
                    detail=f'The checksum of "{file.path}" does not match the manifest.',
                    hint="Use another backup.",
                )
        restored = Restored(
            uuid4().hex[:8], about.service_id, about.kafka_cluster, about.embedded, about.time, about.made_at
        )
        (partial / FILE).write_text(json.dumps(asdict(restored), indent=1), encoding="utf-8")
    return manifest


def check_files(backup: Path, manifest: Manifest) -> None:
    """Report missing or truncated files before anything is copied."""
    for file in manifest.files:
        found = backup / file.path
        size = found.stat().st_size if found.is_file() else None
        if size != file.bytes:
            has = "is missing" if size is None else f"has {size:,} bytes instead of {file.bytes:,}"
            raise BackupError(f'the backup "{backup}" is incomplete', detail=f'"{file.path}" {has}.')


def read_restored(data_dir: Path) -> Restored | None:
    """The origin of a data folder, or None if it was not restored."""
    try:
        return Restored(**json.loads((data_dir / FILE).read_text("utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as cause:
        raise BackupError(f'"{data_dir / FILE}" cannot be read', detail=f"{cause}.") from cause
