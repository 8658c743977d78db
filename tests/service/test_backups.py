"""One backup at a time, of files that stay as they are until it is ended."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.backup.cut import Cut
from holdfast.config import load
from holdfast.errors import BackupError, KafkaError, RequestTimeout
from holdfast.names import ServiceId
from holdfast.runtime.store.duckdb.store import DuckDbStore, open_store
from holdfast.service import backups as module
from holdfast.service.backups import Backups
from holdfast.wall_clock import WallClock


class Broker:
    """Links one file, unless it fails."""

    def __init__(self) -> None:
        self.fails = False

    def link_files(self, into: Path) -> Mapping[Path, int]:
        if self.fails:
            raise KafkaError("no")
        into.mkdir(parents=True)
        (into / "meta.properties").write_bytes(b"meta")
        return {into / "meta.properties": 4}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DuckDbStore]:
    opened = open_store(tmp_path / "store")
    yield opened
    opened.close()


Make = Callable[..., Backups]


@pytest.fixture
def make(tmp_path: Path, store: DuckDbStore) -> Make:
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "broker.json").write_text("{}")
    settings = replace(load({"data_dir": tmp_path}, environment={}), service_id=ServiceId("shop"))

    def make(broker: Any = None, between_ticks: Any = lambda _what, cut: cut()) -> Backups:
        return Backups(settings, "1.0", store, broker, lambda: "cluster", between_ticks, WallClock())

    return make


def test_a_cut_names_the_files_by_their_place_in_a_data_folder(make: Make, store: DuckDbStore, tmp_path: Path) -> None:
    cut = make(Broker()).begin()
    places = {file.path: file.source for file in cut.files}
    assert places["kafka/log/meta.properties"] == "backup/meta.properties"
    assert places["kafka/broker.json"] == "kafka/broker.json"
    assert places["store/store.duckdb"] == "store/store.duckdb"
    assert all((tmp_path / file.source).stat().st_size >= file.bytes for file in cut.files)
    assert (cut.about.service_id, cut.about.store_id, cut.about.kafka_cluster) == ("shop", store.id, "cluster")
    assert (cut.about.embedded, cut.about.release) == (True, "1.0")


def test_with_another_kafka_the_store_alone_is_cut(make: Make) -> None:
    cut = make().begin()
    assert {file.path.split("/")[0] for file in cut.files} == {"store"}
    assert not cut.about.embedded


def test_one_at_a_time(make: Make, tmp_path: Path) -> None:
    backups = make(Broker())
    first = backups.begin()
    with pytest.raises(BackupError, match="another backup"):
        backups.begin()
    assert backups.keep_alive(first.id)
    assert not backups.keep_alive("other")
    assert not backups.end("other")
    assert backups.end(first.id)
    assert not (tmp_path / "backup").exists()
    assert not backups.end(first.id)
    backups.begin()
    backups.close()
    assert not (tmp_path / "backup").exists()


def test_files_are_kept_until_the_end(make: Make, store: DuckDbStore, monkeypatch: pytest.MonkeyPatch) -> None:
    backups = make()
    cut = backups.begin()
    monkeypatch.setattr("holdfast.runtime.store.duckdb.store.CHECKPOINT_BYTES", 0)
    store.put("fact", "one")
    store.compact(limit=1)
    assert store.sizes()["log"] > 0
    backups.end(cut.id)
    store.compact(limit=1)
    assert store.sizes()["log"] == 0


def test_a_backup_that_is_not_heard_of_is_given_up(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.2)
    backups = make()
    cut = backups.begin()
    deadline = time.monotonic() + 30
    while not begins(backups):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not backups.keep_alive(cut.id)
    assert not backups.end(cut.id)


def begins(backups: Backups) -> Cut | None:
    try:
        return backups.begin()
    except BackupError:
        return None


def test_a_cut_that_fails_keeps_nothing(make: Make, store: DuckDbStore, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker()
    broker.fails = True
    backups = make(broker)
    with pytest.raises(KafkaError):
        backups.begin()
    monkeypatch.setattr("holdfast.runtime.store.duckdb.store.CHECKPOINT_BYTES", 0)
    store.put("fact", "one")
    store.compact(limit=1)
    assert store.sizes()["log"] == 0
    broker.fails = False
    assert backups.begin()


def test_what_a_kill_left_of_a_backup_is_removed(make: Make, tmp_path: Path) -> None:
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / "old").touch()
    make()
    assert not (tmp_path / "backup").exists()


def test_a_cut_that_ends_after_its_client_stopped_waiting_keeps_nothing(make: Make, store: DuckDbStore) -> None:
    late: list[Callable[[], Cut]] = []

    def too_late(what: str, cut: Callable[[], Cut]) -> Cut:
        late.append(cut)
        raise RequestTimeout(what, 60, begun=True)

    backups = make(between_ticks=too_late)
    with pytest.raises(RequestTimeout):
        backups.begin()
    late[0]()
    assert store._core.files_pinned is False
