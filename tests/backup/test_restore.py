"""A restored folder is what was backed up; anything else is refused, and leaves nothing behind."""

import json
import os
from pathlib import Path

import pytest

from holdfast.backup.cut import make_backup
from holdfast.backup.manifest import FILE
from holdfast.backup.restore import read_restored, restore
from holdfast.errors import BackupError, ForeignStore
from holdfast.names import ServiceId

from .backups import CONTENTS, contents, data_folder


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    target = tmp_path / "backup"
    make_backup(data_folder(tmp_path / "data"), target, lambda _: None, lambda: None)
    return target


def refused(backup: Path) -> BackupError:
    target = backup.with_name("restored")
    before = sorted(os.listdir(backup.parent))
    with pytest.raises(BackupError) as raised:
        restore(backup, target, lambda _: None)
    assert sorted(os.listdir(backup.parent)) == before
    return raised.value


def test_a_restored_folder_has_what_was_backed_up_and_says_where_it_comes_from(backup: Path, tmp_path: Path) -> None:
    copied: list[int] = []
    manifest = restore(backup, tmp_path / "restored", copied.append)
    assert contents(tmp_path / "restored") == CONTENTS
    assert sum(copied) == manifest.bytes
    assert not (tmp_path / "restored" / FILE).exists()
    restored = read_restored(tmp_path / "restored")
    assert restored is not None
    assert (restored.service_id, restored.kafka_cluster, restored.embedded) == ("shop", "cluster-1", True)
    again = tmp_path / "again"
    restore(backup, again, lambda _: None)
    assert read_restored(again) != restored
    assert read_restored(tmp_path / "data") is None


def test_a_folder_that_has_something_is_not_overwritten(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "restored").mkdir()
    (tmp_path / "restored" / "mine").touch()
    assert "already exists" in refused(backup).message
    (tmp_path / "restored" / "mine").unlink()
    restore(backup, tmp_path / "restored", lambda _: None)
    assert contents(tmp_path / "restored") == CONTENTS


def test_a_file_that_is_cut_off_or_lacking_is_named(backup: Path) -> None:
    (backup / "store/store.duckdb").write_bytes(b"s" * 4999)
    assert refused(backup).detail == '"store/store.duckdb" has 4,999 bytes instead of 5,000.'
    (backup / "store/store.duckdb").unlink()
    assert refused(backup).detail == '"store/store.duckdb" is missing.'


def test_a_file_with_other_contents_is_named(backup: Path) -> None:
    (backup / "store/store.duckdb").write_bytes(b"s" * 4999 + b"t")
    error = refused(backup)
    assert "is damaged" in error.message
    assert "store/store.duckdb" in (error.detail or "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "is not a backup"),
        ('{"format": 1, "serv', "cannot be read"),
        ('{"format": 2}', "was not made by this release"),
        ('{"format": 1}', "cannot be read"),
        ("[]", "was not made by this release"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_reported(backup: Path, text: str | None, message: str) -> None:
    if text is None:
        (backup / FILE).unlink()
    else:
        (backup / FILE).write_text(text)
    assert message in refused(backup).message


def test_a_manifest_cannot_name_files_outside(backup: Path) -> None:
    manifest = json.loads((backup / FILE).read_text())
    manifest["files"][0]["path"] = "../data/store/store.duckdb"
    (backup / FILE).write_text(json.dumps(manifest))
    assert "is outside the backup" in (refused(backup).detail or "")


def test_a_restored_folder_runs_only_with_its_own_topics(backup: Path, tmp_path: Path) -> None:
    restore(backup, tmp_path / "restored", lambda _: None)
    restored = read_restored(tmp_path / "restored")
    assert restored is not None
    restored.check(ServiceId("shop"), "cluster-1")
    with pytest.raises(ForeignStore, match="another service id"):
        restored.check(ServiceId("default"), "cluster-1")
    with pytest.raises(ForeignStore, match="another Kafka cluster"):
        restored.check(ServiceId("shop"), "cluster-2")
