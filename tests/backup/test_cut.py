"""A backup is there whole, or not at all."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.backup.cut import Cut, make_backup
from holdfast.backup.manifest import FILE, read_manifest
from holdfast.errors import BackupError

from .backups import CONTENTS, about, contents, data_folder


def done() -> None:
    """The server has kept its files."""


def test_a_backup_has_the_files_and_a_manifest_of_them(tmp_path: Path) -> None:
    cut = data_folder(tmp_path / "data")
    copied: list[int] = []
    made = make_backup(cut, tmp_path / "backup", copied.append, done)
    assert contents(tmp_path / "backup") == CONTENTS
    assert sum(copied) == cut.bytes == made.bytes == 5302
    found = read_manifest(tmp_path / "backup")
    assert found == made
    assert found.about == about()
    assert json.loads((tmp_path / "backup" / FILE).read_text())["format"] == 1


def test_a_cut_is_the_same_after_a_way_over_http(tmp_path: Path) -> None:
    cut = data_folder(tmp_path)
    assert Cut.decode(json.loads(json.dumps(cut.encode()))) == cut


def test_only_what_a_file_had_at_the_cut_is_copied(tmp_path: Path) -> None:
    cut = data_folder(tmp_path / "data")
    with (tmp_path / "data" / "kafka/log/t-0/00.log").open("ab") as growing:
        growing.write(b"later")
    make_backup(cut, tmp_path / "backup", lambda _: None, done)
    assert contents(tmp_path / "backup") == CONTENTS


def test_a_server_that_did_not_keep_its_files_leaves_no_backup(tmp_path: Path) -> None:
    def given_up() -> None:
        raise BackupError("it was given up")

    cut = data_folder(tmp_path / "data")
    with pytest.raises(BackupError, match="given up"):
        make_backup(cut, tmp_path / "backup", lambda _: None, given_up)
    assert os.listdir(tmp_path) == ["data"]


def test_a_file_that_became_shorter_leaves_no_backup(tmp_path: Path) -> None:
    cut = data_folder(tmp_path / "data")
    (tmp_path / "data" / "store/store.duckdb").write_bytes(b"s")
    with pytest.raises(BackupError, match="too short"):
        make_backup(cut, tmp_path / "backup", lambda _: None, done)
    assert os.listdir(tmp_path) == ["data"]


def test_files_that_are_not_on_this_machine_are_reported(tmp_path: Path) -> None:
    cut = data_folder(tmp_path / "data")
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    with pytest.raises(BackupError) as raised:
        make_backup(cut, tmp_path / "backup", lambda _: None, done)
    assert "on the server's machine" in str(raised.value.hint)


def test_a_folder_that_has_something_is_not_overwritten(tmp_path: Path) -> None:
    cut = data_folder(tmp_path / "data")
    (tmp_path / "backup").mkdir()
    make_backup(cut, tmp_path / "backup", lambda _: None, done)
    with pytest.raises(BackupError, match="already exists"):
        make_backup(cut, tmp_path / "backup", lambda _: None, done)


KILLED = """
import os, signal, sys
from pathlib import Path
from holdfast.backup.cut import make_backup
from tests.backup.backups import data_folder
root = Path(sys.argv[1])
make_backup(data_folder(root / "data"), root / "backup", lambda _: None, lambda: os.kill(os.getpid(), signal.SIGKILL))
"""


def test_a_kill_while_a_backup_is_made_leaves_nothing_that_looks_like_one(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=Path(__file__).parents[2], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert not (tmp_path / "backup").exists()
    (partial,) = (path for path in tmp_path.iterdir() if path.name != "data")
    with pytest.raises(BackupError, match="is not a backup"):
        read_manifest(partial)
