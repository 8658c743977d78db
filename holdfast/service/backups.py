"""Backups of a running server: file contents are frozen between two ticks, and the client copies them."""

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
from holdfast.runtime.store.port import EndOffset, Store
from holdfast.wall_clock import WallClock

log = logging.getLogger(__name__)

FOLDER = "backup"
"""Subfolder of the data folder with links to the broker's files while they are copied."""
SECONDS = 60.0
"""A backup without a keep-alive for this long is abandoned."""


class PinnableStore(Store, Protocol):
    """A store whose files can be copied."""

    def pin_files(self) -> Mapping[Path, int]: ...

    def unpin_files(self) -> None: ...


class Backups:
    """At most one backup at a time, until it is ended or abandoned. Thread-safe.

    `between_ticks` runs a function while no tick runs. The store is cut before the broker, with no tick in between, so
    the broker has everything that the store has read and published. A restored server reads newer records of the
    broker as it would after a crash.
    """

    def __init__(
        self,
        settings: Settings,
        release: str,
        store: PinnableStore,
        broker: EmbeddedBroker | None,
        cluster_id: Callable[[], str],
        between_ticks: Callable[[str, Callable[[], Cut]], Cut],
        clock: WallClock,
    ) -> None:
        self._settings, self._release, self._store, self._broker = settings, release, store, broker
        self._cluster_id, self._between_ticks, self._clock = cluster_id, between_ticks, clock
        self._links = settings.data_dir / FOLDER
        self._lock = Lock()
        """Protects `_id` and `_timer`."""
        self._id: str | None = None
        self._timer: Timer | None = None
        shutil.rmtree(self._links, ignore_errors=True)

    def begin(self) -> Cut:
        """Freeze the current file contents. Call `keep_alive` at least every `SECONDS`, and `end` when done."""
        cluster_id = self._cluster_id()
        with self._lock:
            if self._id is not None:
                raise BackupError(
                    "another backup of this server is in progress",
                    hint=f"Wait until it is done; an interrupted backup is abandoned after {SECONDS:.0f} s.",
                )
            self._id = id_ = uuid4().hex[:12]
        try:
            cut = self._between_ticks("a backup", lambda: self._cut_for(id_, cluster_id))
        except BaseException:
            self.end(id_)
            raise
        self.keep_alive(id_)
        return cut

    def keep_alive(self, id_: str) -> bool:
        """Keep a backup for another `SECONDS`; False if it no longer exists."""
        with self._lock:
            if self._id != id_:
                return False
            self._stop_timer()
            self._timer = Timer(SECONDS, self._abandon, [id_])
            self._timer.name = "backup-timeout"
            self._timer.daemon = True
            self._timer.start()
            return True

    def end(self, id_: str) -> bool:
        """End a backup and unpin its files; False if it no longer exists."""
        with self._lock:
            if self._id != id_:
                return False
            self._stop_timer()
            self._id = None
            self._store.unpin_files()
        shutil.rmtree(self._links, ignore_errors=True)
        return True

    def close(self) -> None:
        if self._id is not None:
            self.end(self._id)

    def _cut_for(self, id_: str, cluster_id: str) -> Cut:
        cut = self._cut(id_, cluster_id)
        with self._lock:
            # It took longer than its client waited: nobody will copy the files, or end the backup.
            if self._id != id_:
                self._store.unpin_files()
        return cut

    def _cut(self, id_: str, cluster_id: str) -> Cut:
        data_dir = self._settings.data_dir
        files = [_cut_file(file, file, size, data_dir) for file, size in self._store.pin_files().items()]
        files += self._broker_files()
        about = About(
            release=self._release,
            service_id=self._settings.service_id,
            store_id=self._store.id,
            time=self._store.committed_time(),
            made_at=datetime.fromtimestamp(self._clock.now_ms() / 1_000, UTC).isoformat(timespec="seconds"),
            kafka_cluster=cluster_id,
            embedded=self._broker is not None,
            read=_reached(self._store.remap_ends()),
            published=_reached(self._store.published_ends()),
        )
        return Cut(id_, SECONDS, str(data_dir), about, files)

    def _broker_files(self) -> list[CutFile]:
        if self._broker is None:
            return []
        data_dir = self._settings.data_dir
        linked = self._broker.link_files(self._links)
        identity = data_dir / KAFKA / IDENTITY
        files = [_cut_file(identity, identity, identity.stat().st_size, data_dir)]
        logs = data_dir / KAFKA / LOG_FOLDER
        return files + [
            _cut_file(link, logs / link.relative_to(self._links), size, data_dir) for link, size in linked.items()
        ]

    def _abandon(self, id_: str) -> None:
        if self.end(id_):
            log.warning("backup abandoned, no keep-alive: seconds=%.0f", SECONDS)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _cut_file(source: Path, target: Path, size: int, data_dir: Path) -> CutFile:
    return CutFile(str(source.relative_to(data_dir)), str(target.relative_to(data_dir)), size)


def _reached(ends: Iterable[EndOffset]) -> tuple[Reached, ...]:
    return tuple(Reached(end.topic, end.partition, end.offset) for end in ends)
