"""Opening a store: lock, version, migration, and folders that cannot be used."""

import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from holdfast.errors import StoreEnded, StoreError, StoreLocked
from holdfast.runtime.store.duckdb import errors, open_store
from holdfast.runtime.store.duckdb.disk import files
from holdfast.runtime.store.port import Time
from tests.runtime.store.rows import LAYOUT, QUERY, TABLE, snapshot, upserts

OPEN_AND_WAIT = """
import sys
from pathlib import Path
from holdfast.runtime.store.duckdb import open_store
store = open_store(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
"""


def test_a_second_process_gets_an_error_that_the_folder_is_taken(tmp_path):
    other = subprocess.Popen(
        [sys.executable, "-c", OPEN_AND_WAIT, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(StoreLocked, match="another process has the data folder") as raised:
            open_store(tmp_path)
        assert str(other.pid) in raised.value.detail
    finally:
        other.communicate(b"")
    open_store(tmp_path).close()


def test_the_id_is_made_once(tmp_path):
    ids = []
    for _ in range(2):
        store = open_store(tmp_path)
        ids.append(store.id)
        store.close()
    assert ids[0] == ids[1]


def test_a_newer_store_is_refused_and_left_alone(tmp_path):
    open_store(tmp_path).close()
    set_version(tmp_path, files.VERSION + 1)
    before = (tmp_path / files.FILE).read_bytes()
    with pytest.raises(StoreError, match="newer release") as raised:
        open_store(tmp_path)
    assert raised.value.hint
    assert (tmp_path / files.FILE).read_bytes() == before


def test_an_older_store_is_migrated_and_its_copy_kept(tmp_path, monkeypatch):
    store = open_store(tmp_path)
    store.create_collection(TABLE, LAYOUT, window_ms=0)
    store.set_upper([TABLE], Time(1))
    commit(store, 5, ("a", 1))
    store.close()
    now = files.VERSION
    monkeypatch.setattr(files, "VERSION", now + 2)
    steps = {now: ["ALTER TABLE facts ADD COLUMN since UBIGINT"], now + 1: ["ALTER TABLE facts DROP COLUMN since"]}
    monkeypatch.setattr(files, "MIGRATIONS", steps)
    store = open_store(tmp_path)
    assert snapshot(store, TABLE, 5) == [("a", 1, "x", 0)]
    store.close()
    assert version_of(tmp_path / files.FILE) == now + 2
    assert version_of(tmp_path / f"{files.FILE}.version-{now}") == now


def test_a_store_of_version_1_has_all_it_had_and_takes_ticks(tmp_path):
    store = open_store(tmp_path)
    store.create_collection(TABLE, LAYOUT, window_ms=1000)
    store.create_outbox(QUERY, LAYOUT)
    store.set_upper([TABLE], Time(1))
    commit(store, 5, ("a", 1), ("b", 1))
    commit(store, 6, ("a", 2))
    store.close()
    with duckdb.connect(str(tmp_path / files.FILE)) as database:
        # Version 1 had no changes in its ledger, which a store that was closed does not have either.
        for column in ("time", "changes"):
            database.execute(f"ALTER TABLE ledger DROP COLUMN {column}")
        for column in ("grouped", "ordered"):
            database.execute(f"ALTER TABLE objects DROP COLUMN {column}")
    set_version(tmp_path, 1)
    store = open_store(tmp_path)
    commit(store, 7, ("a", 3))
    assert [snapshot(store, TABLE, at) for at in (5, 6, 7)] == [[("a", a, "x", 0), ("b", 1, "x", 0)] for a in (1, 2, 3)]
    store.close()


def test_a_migration_that_fails_leaves_the_old_store(tmp_path, monkeypatch):
    open_store(tmp_path).close()
    steps = {files.VERSION: ["ALTER TABLE facts DROP COLUMN value", "ALTER TABLE none DROP x"]}
    monkeypatch.setattr(files, "MIGRATIONS", steps)
    monkeypatch.setattr(files, "VERSION", files.VERSION + 1)
    with pytest.raises(StoreError):
        open_store(tmp_path)
    monkeypatch.undo()
    store = open_store(tmp_path)
    store.put("a", "b")
    assert store.get("a") == "b"
    store.close()


def test_a_file_that_is_not_a_database_is_refused(tmp_path):
    (tmp_path / files.FILE).write_text("hello" * 1000)
    with pytest.raises(StoreError, match="is not readable"):
        open_store(tmp_path)


def test_a_database_of_someone_else_is_refused(tmp_path):
    duckdb.connect(str(tmp_path / files.FILE)).execute("CREATE TABLE t (a INTEGER)").close()
    with pytest.raises(StoreError, match="not a store"):
        open_store(tmp_path)


def test_a_folder_that_cannot_be_created_is_reported(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be opened") as raised:
        open_store(tmp_path / "file" / "folder")
    assert "may be written" in raised.value.hint


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)], capture_output=True).returncode:
        pytest.skip("needs the right to mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_reported_and_the_store_goes_on_when_there_is_room(small_disk):
    store = open_store(small_disk)
    store.create_collection(TABLE, LAYOUT, window_ms=0)
    store.set_upper([TABLE], Time(1))
    commit(store, 5, ("a", 1))
    (small_disk / "filling").write_bytes(b"x" * (free_bytes(small_disk) - 100_000))
    for _ in range(2):
        with pytest.raises(StoreError, match="disk of the data folder is full") as raised:
            commit(store, 6, *((f"key {i}" * 20, i) for i in range(20_000)))
        assert "continues without a restart" in raised.value.hint
        assert snapshot(store, TABLE, 5) == [("a", 1, "x", 0)]
    (small_disk / "filling").unlink()
    commit(store, 7, ("b", 2))
    rows = [("a", 1, "x", 0), ("b", 2, "x", 0)]
    assert snapshot(store, TABLE, 7) == rows
    store.close()
    store = open_store(small_disk)
    assert snapshot(store, TABLE, 7) == rows
    store.close()


def test_a_full_disk_that_ended_the_store_asks_for_a_restart():
    full = errors.translate(duckdb.FatalException("the database has been invalidated: No space left on device"))
    assert isinstance(full, StoreEnded)
    assert full.message == "the disk of the data folder is full"
    assert "start the server again" in full.hint


def commit(store, time, *rows):
    stage = store.stage()
    stage.upsert(QUERY, TABLE, upserts(LAYOUT, *(((k,), (v, "x"), 0) for k, v in rows)))
    stage.commit(Time(time))


def free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def version_of(file: Path) -> int:
    with duckdb.connect(str(file)) as database:
        return database.execute("SELECT version FROM meta").fetchall()[0][0]


def set_version(folder: Path, version: int) -> None:
    with duckdb.connect(str(folder / files.FILE)) as database:
        database.execute("UPDATE meta SET version = ?", [version])


def test_the_files_of_a_store_that_runs_on_can_be_copied(tmp_path):
    """What is copied later, in any order and while ticks go on, is the store at the time it was fixed."""
    store = open_store(tmp_path / "store")
    store.create_collection(TABLE, LAYOUT, window_ms=1_000)
    rows = 60_000
    commit_many(store, range(rows), at=1)
    commit_many(store, range(0, rows, 3), at=2)
    expected = snapshot(store, TABLE, 2)
    kept = store.pin_files()
    # Enough that DuckDB writes blocks before a commit, and would run a checkpoint.
    for at in range(3, 7):
        commit_many(store, range(at, 2 * rows, 2), at=at)
        store.compact(limit=rows)
    (tmp_path / "copy").mkdir()
    for file, size in kept.items():
        with file.open("rb") as source:
            (tmp_path / "copy" / file.name).write_bytes(source.read(size))
    log_while_kept = store.sizes()["log"]
    later = snapshot(store, TABLE, 6)
    store.unpin_files()
    store.close()
    assert log_while_kept > 0

    copied = open_store(tmp_path / "copy")
    assert (copied.id, copied.committed_time()) == (store.id, 2)
    assert snapshot(copied, TABLE, 2) == expected
    commit_many(copied, range(10), at=9)
    copied.close()
    again = open_store(tmp_path / "store")
    assert snapshot(again, TABLE, 6) == later
    again.close()


def commit_many(store, keys, *, at):
    stage = store.stage()
    stage.upsert(QUERY, TABLE, upserts(LAYOUT, *(((f"key {n}",), (n * at, f"row {n} at {at}"), at) for n in keys)))
    stage.commit(Time(at))
    store.set_upper([TABLE], Time(at + 1))


def test_no_checkpoint_runs_while_files_are_pinned(tmp_path, monkeypatch):
    monkeypatch.setattr("holdfast.runtime.store.duckdb.store.CHECKPOINT_BYTES", 0)
    store = open_store(tmp_path)
    store.create_collection(TABLE, LAYOUT, window_ms=1_000)
    store.pin_files()
    before = (tmp_path / files.FILE).read_bytes()
    commit_many(store, range(10), at=1)
    store.compact(limit=10)
    assert (tmp_path / files.FILE).read_bytes() == before
    store.unpin_files()
    store.compact(limit=10)
    assert store.sizes()["log"] == 0
    store.close()
