"""`holdfast backup` and `holdfast restore`, with a server that has a data folder of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from holdfast.backup.cut import Cut
from holdfast.cli.main import app
from holdfast.service.backups import Backups
from holdfast.version import VERSION
from holdfast.wall_clock import WallClock
from tests.backup.backups import CONTENTS, about, contents, data_folder
from tests.server.local import LocalService

Run = Callable[..., Result]


class FolderBackups(Backups):
    """Backs up a folder instead of a store; `lost` ones are given up before they are copied."""

    def __init__(self, service: LocalService, cut: Cut) -> None:
        super().__init__(
            service.settings, VERSION, service._store, None, lambda: "cluster", lambda _what, make: make(), WallClock()
        )
        self.cut, self.lost = cut, False

    def begin(self) -> Cut:
        begun = super().begin()
        if self.lost:
            self.end(begun.id)
        return begun

    def _cut(self, id_: str, cluster_id: str) -> Cut:
        del cluster_id
        return Cut(id_, self.cut.seconds, self.cut.data_dir, self.cut.about, self.cut.files)


@pytest.fixture
def backups(service: LocalService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FolderBackups]:
    made = FolderBackups(service, data_folder(tmp_path / "data"))
    monkeypatch.setattr(service, "backups", made)
    yield made
    made.close()


@pytest.fixture
def backup(backups: FolderBackups, url: str, tmp_path: Path) -> Run:
    del backups
    return lambda: CliRunner().invoke(app, ["backup", str(tmp_path / "b"), "--server", url])


def restore(tmp_path: Path) -> Result:
    return CliRunner().invoke(app, ["restore", str(tmp_path / "b"), "--data-dir", str(tmp_path / "restored")])


def test_there_and_back(backup: Run, backups: FolderBackups, tmp_path: Path) -> None:
    result = backup()
    assert result.exit_code == 0, result.output
    assert f'Backed up service "shop" as of 2023-11-14 22:13:20 UTC to {tmp_path / "b"}:' in result.stdout
    assert "the store: 5.0 kB in 1 files" in result.stdout
    assert "the broker's topics: 302 bytes in 2 files" in result.stdout
    assert backups._id is None
    result = restore(tmp_path)
    assert result.exit_code == 0, result.output
    assert f"holdfast start --data-dir {tmp_path / 'restored'} --service-id shop" in result.stdout
    assert contents(tmp_path / "restored") == CONTENTS


def test_a_folder_that_is_there_is_refused_before_the_server_is_asked(backup: Run, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "mine").touch()
    result = backup()
    assert result.exit_code == 1
    assert "already exists" in result.stderr
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["mine"]


def test_a_backup_that_the_server_gave_up_is_none(backup: Run, backups: FolderBackups, tmp_path: Path) -> None:
    backups.lost = True
    result = backup()
    assert result.exit_code == 1
    assert "released its files before they were copied" in result.stderr
    assert not (tmp_path / "b").exists()


def test_a_second_backup_is_refused(backup: Run, backups: FolderBackups) -> None:
    other = backups.begin()
    result = backup()
    assert result.exit_code == 1
    assert "another backup of this server is in progress" in result.stderr
    assert backups.keep_alive(other.id)


def test_a_damaged_backup_is_refused(backup: Run, tmp_path: Path) -> None:
    backup()
    (tmp_path / "b" / "kafka/broker.json").write_bytes(b"[]")
    result = restore(tmp_path)
    assert result.exit_code == 1
    assert "is damaged" in result.stderr
    assert not (tmp_path / "restored").exists()


def test_a_backup_without_topics_says_who_keeps_them(backups: FolderBackups, backup: Run) -> None:
    backups.cut = Cut("b1", 60.0, backups.cut.data_dir, about(embedded=False), backups.cut.files[:1])
    result = backup()
    assert "they are in Kafka cluster cluster-1" in result.stdout
