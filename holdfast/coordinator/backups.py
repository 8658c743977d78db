"""Backups of a running server: between two ticks, what its files hold is fixed; copying them is the asker's."""

import logging
import shutil
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock, Timer
from typing import Protocol
from uuid import uuid4

from holdfast.backup.cut import Cut, CutFile
from holdfast.backup.manifest import About, Reached
from holdfast.config import Settings
from holdfast.errors import BackupError
from holdfast.kafka.broker import FOLDER as KAFKA
from holdfast.kafka.broker import IDENTITY, LOG_FOLDER, EmbeddedBroker
from holdfast.runtime.store.port import Moved, Store

log = logging.getLogger(__name__)

FOLDER = "backup"
"""Below the data folder: links to files of the broker, while they are copied."""
SECONDS = 60.0
"""A backup whose maker was not heard of for so long is given up."""


class KeptStore(Store, Protocol):
    """A store whose files can be copied."""

    def keep_files(self) -> Mapping[Path, int]: ...

    def release_files(self) -> None: ...


class Backups:
    """At most one at a time, until it is ended or given up. From any thread.

    `between_ticks` runs a function while no tick does. The store is cut first and the broker after it, with no tick
    between: what the store has read and published, the broker has. Whatever else the broker has is read by a restored
    server as after a kill.
    """

    def __init__(
        self,
        settings: Settings,
        release: str,
        store: KeptStore,
        broker: EmbeddedBroker | None,
        cluster_id: Callable[[], str],
        between_ticks: Callable[[Callable[[], Cut]], Cut],
    ) -> None:
        self._settings, self._release, self._store, self._broker = settings, release, store, broker
        self._cluster_id, self._between_ticks = cluster_id, between_ticks
        self._links = settings.data_dir / FOLDER
        self._lock = Lock()
        self._id: str | None = None
        self._timer: Timer | None = None
        shutil.rmtree(self._links, ignore_errors=True)

    def begin(self) -> Cut:
        """Fix what there is now. `keep` before `seconds` are over, and `end` it."""
        cluster_id = self._cluster_id()
        with self._lock:
            if self._id is not None:
                raise BackupError(
                    "another backup of this server is being made",
                    hint=f"Wait until it is done; one that was broken off is given up after {SECONDS:.0f} s.",
                )
            self._id = id_ = uuid4().hex[:12]
        try:
            made = self._between_ticks(lambda: self._cut(id_, cluster_id))
        except BaseException:
            self.end(id_)
            raise
        self.keep(id_)
        return made

    def keep(self, id_: str) -> bool:
        """Be heard of; False when there is no such backup any more."""
        with self._lock:
            if self._id != id_:
                return False
            self._stop_timer()
            self._timer = Timer(SECONDS, self._give_up, [id_])
            self._timer.daemon = True
            self._timer.start()
            return True

    def end(self, id_: str) -> bool:
        """Let go of the files; False when they were not kept until now."""
        with self._lock:
            if self._id != id_:
                return False
            self._stop_timer()
            self._id = None
            self._store.release_files()
        shutil.rmtree(self._links, ignore_errors=True)
        return True

    def close(self) -> None:
        if self._id is not None:
            self.end(self._id)

    def _cut(self, id_: str, cluster_id: str) -> Cut:
        data_dir = self._settings.data_dir
        kept = [_cut_file(file, file, size, data_dir) for file, size in self._store.keep_files().items()]
        kept += self._broker_files()
        about = About(
            release=self._release,
            service_id=self._settings.service_id,
            store_id=self._store.id,
            time=self._store.committed_time(),
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
            kafka_cluster=cluster_id,
            embedded=self._broker is not None,
            read=_reached(self._store.remap_ends()),
            published=_reached(self._store.published_at(self._store.last_time())),
        )
        return Cut(id_, SECONDS, str(data_dir), about, kept)

    def _broker_files(self) -> list[CutFile]:
        if self._broker is None:
            return []
        data_dir = self._settings.data_dir
        linked = self._broker.link_files(self._links)
        identity = data_dir / KAFKA / IDENTITY
        files = [_cut_file(identity, identity, identity.stat().st_size, data_dir)]
        place = data_dir / KAFKA / LOG_FOLDER
        return files + [
            _cut_file(link, place / link.relative_to(self._links), size, data_dir) for link, size in linked.items()
        ]

    def _give_up(self, id_: str) -> None:
        if self.end(id_):
            log.warning("a backup was given up: its maker was not heard of for %.0f s", SECONDS)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _cut_file(source: Path, place: Path, size: int, data_dir: Path) -> CutFile:
    return CutFile(str(source.relative_to(data_dir)), str(place.relative_to(data_dir)), size)


def _reached(ends: Iterable[Moved]) -> tuple[Reached, ...]:
    return tuple(Reached(end.topic, end.partition, end.end_offset) for end in ends)
