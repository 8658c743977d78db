"""A backup as a data folder again, and what a server that starts in one has to know."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

from holdfast.backup.copying import Progress, copy, new_folder
from holdfast.backup.manifest import Manifest, read_manifest
from holdfast.errors import BackupError, ForeignStore
from holdfast.names import ServiceId

FILE = "restored.json"


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restored data folder remembers of its backup. `id` tells it from the folder that was backed up."""

    id: str
    service_id: ServiceId
    kafka_cluster: str
    embedded: bool
    time: int
    made_at: str

    def check(self, service_id: ServiceId, kafka_cluster: str) -> None:
        """Refuse topics that are not the store's own: it would drop what they do not know of."""
        for what, was, now in (
            ("service id", self.service_id, service_id),
            ("Kafka cluster", self.kafka_cluster, kafka_cluster),
        ):
            if was != now:
                raise ForeignStore(
                    f"the data folder was restored from a backup of another {what}",
                    detail=f"The backup is of {was}, and this server starts with {now}.",
                    hint=f"Start it with the {what} of the backup.",
                )


def restore(backup: Path, data_dir: Path, progress: Progress) -> Manifest:
    """Make a data folder of a backup, every file compared with its checksum."""
    manifest = read_manifest(backup)
    check_files(backup, manifest)
    about = manifest.about
    with new_folder(data_dir) as partial:
        for file in manifest.files:
            if copy(backup / file.path, partial / file.path, file.bytes, progress) != file.sha256:
                raise BackupError(
                    f'the backup "{backup}" is damaged',
                    detail=f'The contents of "{file.path}" are not those that were backed up.',
                    hint="Use another backup.",
                )
        restored = Restored(
            uuid4().hex[:8], about.service_id, about.kafka_cluster, about.embedded, about.time, about.made_at
        )
        (partial / FILE).write_text(json.dumps(asdict(restored), indent=1), encoding="utf-8")
    return manifest


def check_files(backup: Path, manifest: Manifest) -> None:
    """Tell of files that are lacking or cut off before anything is copied."""
    for file in manifest.files:
        found = backup / file.path
        size = found.stat().st_size if found.is_file() else None
        if size != file.bytes:
            has = "is lacking" if size is None else f"has {size:,} bytes instead of {file.bytes:,}"
            raise BackupError(f'the backup "{backup}" is not whole', detail=f'"{file.path}" {has}.')


def read_restored(data_dir: Path) -> Restored | None:
    """Where a data folder comes from, when it was restored."""
    try:
        return Restored(**json.loads((data_dir / FILE).read_text("utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as cause:
        raise BackupError(f'"{data_dir / FILE}" cannot be read', detail=f"{cause}.") from cause
