"""`holdfast backup` and `holdfast restore`, with a server that has a data folder of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from holdfast.backup.cut import Cut
from holdfast.cli.main import app
from holdfast.server.serve import listen, running
from tests.backup.making import CONTENTS, about, contents, data_folder
from tests.server.fake import FakeBackups, FakeService

Run = Callable[..., Result]


class FolderBackups(FakeBackups):
    """Hands out a cut of a folder; `lost` ones are given up before they are copied."""

    def __init__(self, cut: Cut) -> None:
        super().__init__()
        self._cut, self.lost = cut, False

    def begin(self) -> Cut:
        super().begin()
        self.id = None if self.lost else self._cut.id
        return self._cut


@pytest.fixture
def backups(tmp_path: Path) -> FolderBackups:
    return FolderBackups(data_folder(tmp_path / "data"))


@pytest.fixture
def backup(backups: FolderBackups, tmp_path: Path) -> Iterator[Run]:
    service = FakeService()
    service.backups = backups
    with running(service, listen(service.settings)) as server:
        yield lambda: CliRunner().invoke(app, ["backup", str(tmp_path / "b"), "--server", server.url])


def restore(tmp_path: Path) -> Result:
    return CliRunner().invoke(app, ["restore", str(tmp_path / "b"), "--data-dir", str(tmp_path / "restored")])


def test_there_and_back(backup: Run, backups: FolderBackups, tmp_path: Path) -> None:
    result = backup()
    assert result.exit_code == 0, result.output
    assert f'Service "shop" as of 2023-11-14 22:13:20 UTC is in {tmp_path / "b"}:' in result.stdout
    assert "the store: 5.0 kB in 1 files" in result.stdout
    assert "the broker's topics: 302 bytes in 2 files" in result.stdout
    assert backups.id is None
    result = restore(tmp_path)
    assert result.exit_code == 0, result.output
    assert f"holdfast start --data-dir {tmp_path / 'restored'} --service-id shop" in result.stdout
    assert contents(tmp_path / "restored") == CONTENTS


def test_a_folder_that_is_there_is_refused_before_the_server_is_asked(backup: Run, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "mine").touch()
    result = backup()
    assert result.exit_code == 1
    assert "is there already" in result.stderr
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["mine"]


def test_a_backup_that_the_server_gave_up_is_none(backup: Run, backups: FolderBackups, tmp_path: Path) -> None:
    backups.lost = True
    result = backup()
    assert result.exit_code == 1
    assert "did not keep its files until they were copied" in result.stderr
    assert not (tmp_path / "b").exists()


def test_a_second_backup_is_refused(backup: Run, backups: FolderBackups) -> None:
    backups.id = "other"
    result = backup()
    assert result.exit_code == 1
    assert "another backup of this server is being made" in result.stderr
    assert backups.id == "other"


def test_a_damaged_backup_is_refused(backup: Run, tmp_path: Path) -> None:
    backup()
    (tmp_path / "b" / "kafka/broker.json").write_bytes(b"[]")
    result = restore(tmp_path)
    assert result.exit_code == 1
    assert "is damaged" in result.stderr
    assert not (tmp_path / "restored").exists()


def test_a_backup_without_topics_says_who_keeps_them(backups: FolderBackups, backup: Run) -> None:
    backups._cut = Cut("b1", 60.0, backups._cut.data_dir, about(embedded=False), backups._cut.files[:1])
    result = backup()
    assert "Kafka cluster cluster-1 keeps them" in result.stdout
