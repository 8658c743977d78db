"""Opening the one DuckDB file of a data folder: its settings, its schema version, its id.

An older version is migrated in one transaction after the file was copied; a newer one is refused. A database without a
folder is in memory alone.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import uuid4

import duckdb

from holdfast.errors import StoreError
from holdfast.names import StoreId
from holdfast.runtime.store.duckdb.errors import cannot_open
from holdfast.runtime.store.duckdb.statements import one

FILE = "store.duckdb"
IN_MEMORY = ":memory:"
VERSION = 4
CALCULATOR_MEMORY = "512MB"

MIGRATIONS: Mapping[int, Sequence[str]] = {
    1: ("ALTER TABLE ledger ADD COLUMN time UBIGINT", "ALTER TABLE ledger ADD COLUMN changes BLOB"),
    2: ("ALTER TABLE objects ADD COLUMN grouped INTEGER DEFAULT 0",),
    # The collections of windowed tables get their groups when their queries start.
    3: ("ALTER TABLE objects ADD COLUMN ordered INTEGER",),
}
"""By the version they start from, the statements that lead to the next one."""

_SCHEMA = (
    "CREATE TABLE meta (version INTEGER, id VARCHAR)",
    "CREATE TABLE objects "
    "(kind VARCHAR, name VARCHAR, number INTEGER, key VARCHAR[], value VARCHAR[], window_ms BIGINT, "
    "grouped INTEGER, ordered INTEGER)",
    "CREATE TABLE ledger (n UBIGINT, entries VARCHAR, time UBIGINT, changes BLOB USING COMPRESSION uncompressed)",
    "CREATE TABLE facts (key VARCHAR, value VARCHAR)",
)


def open_database(folder: Path, *, memory_limit: str | None, threads: int) -> tuple[duckdb.DuckDBPyConnection, StoreId]:
    """The database of a folder, created if missing, in this release's version."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        database = _connect(folder / FILE, memory_limit, threads, spill=folder / "spill")
    except (OSError, duckdb.Error) as problem:
        raise cannot_open(folder, problem) from problem
    try:
        version = _version(database)
        if version is not None and version < VERSION:
            database.close()
            _copy(folder / FILE, version)
            database = _connect(folder / FILE, memory_limit, threads, spill=folder / "spill")
            _migrate(database, version)
        elif version is None:
            _create(database)
        elif version > VERSION:
            raise StoreError(
                f"the store in {folder} was written by a newer release",
                detail=f"Its schema version is {version}; this release knows {VERSION}.",
                hint="Use the newer release, or another data folder.",
            )
        _lock(database)
        return database, _id(database)
    except (OSError, duckdb.Error) as problem:
        database.close()
        raise cannot_open(folder, problem) from problem
    except StoreError:
        database.close()
        raise


def open_in_memory(*, threads: int) -> tuple[duckdb.DuckDBPyConnection, StoreId]:
    """A database that is gone when it is closed."""
    database = _connect(IN_MEMORY, None, threads)
    _create(database)
    _lock(database)
    return database, _id(database)


def open_calculator() -> duckdb.DuckDBPyConnection:
    """A database without tables, for expressions over a few rows."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": 1,
        "memory_limit": CALCULATOR_MEMORY,
        "python_enable_replacements": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    calculator = duckdb.connect(IN_MEMORY, config=config)
    _lock(calculator)
    return calculator


def _lock(database: duckdb.DuckDBPyConnection) -> None:
    """Last, because nothing can be set after it."""
    database.execute("SET enable_external_access = false")
    database.execute("SET lock_configuration = true")


def data_bytes(folder: Path | None) -> int:
    """How long the file is."""
    file = None if folder is None else folder / FILE
    return file.stat().st_size if file is not None and file.exists() else 0


def wal_bytes(folder: Path | None) -> int:
    """The size of DuckDB's log: what is committed but not yet checkpointed into the file."""
    if folder is None:
        return 0
    try:
        return (folder / f"{FILE}.wal").stat().st_size
    except FileNotFoundError:
        return 0


def file_sizes(folder: Path | None) -> dict[Path, int]:
    """The files of the store and how long they are: the data, and the log if there is one."""
    if folder is None:
        return {}
    found = {folder / FILE: data_bytes(folder), folder / f"{FILE}.wal": wal_bytes(folder)}
    return {file: size for file, size in found.items() if size}


def _connect(
    file: Path | str, memory_limit: str | None, threads: int, spill: Path | None = None
) -> duckdb.DuckDBPyConnection:
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": threads,
        "temp_directory": "" if spill is None else str(spill),
        # What a large tick used goes back to the system soon: 190 MB after one of 1,000,000 rows.
        "allocator_background_threads": True,
        "python_enable_replacements": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        # Row ids move in checkpoints and a checkpoint stops the ticks, so only the store starts one.
        "checkpoint_threshold": "1TB",
        # A join of a few keys looks them up in the index, also when they are more than 50 (DuckDB's default);
        # above a thousandth of the rows a scan is faster.
        "dynamic_or_filter_threshold": 2500,
        "index_scan_max_count": 100,
        "index_scan_percentage": 0.001,
    }
    if memory_limit is not None:
        config["memory_limit"] = memory_limit
    return duckdb.connect(str(file), config=config)


def _version(database: duckdb.DuckDBPyConnection) -> int | None:
    tables = database.execute("SELECT table_name FROM duckdb_tables() WHERE NOT temporary").fetchall()
    if not tables:
        return None
    if ("meta",) not in tables:
        raise StoreError("the file is a DuckDB database, but not a store", detail="It has no table named meta.")
    return int(one(database, "SELECT version FROM meta")[0])


def _id(database: duckdb.DuckDBPyConnection) -> StoreId:
    return StoreId(one(database, "SELECT id FROM meta")[0])


def _create(database: duckdb.DuckDBPyConnection) -> None:
    database.execute("BEGIN")
    for statement in _SCHEMA:
        database.execute(statement)
    database.execute("INSERT INTO meta VALUES (?, ?)", [VERSION, str(uuid4())])
    database.execute("COMMIT")


def _copy(file: Path, version: int) -> None:
    """The database is closed, so its log is checkpointed: the file alone is the whole store."""
    target = file.with_name(f"{file.name}.version-{version}")
    partial = target.with_name(f"{target.name}.partial")
    shutil.copy2(file, partial)
    partial.replace(target)


def _migrate(database: duckdb.DuckDBPyConnection, version: int) -> None:
    database.execute("BEGIN")
    for start in range(version, VERSION):
        for statement in MIGRATIONS[start]:
            database.execute(statement)
    database.execute("UPDATE meta SET version = ?", [VERSION])
    database.execute("COMMIT")


def set_aside(folder: Path) -> None:
    """Move a folder's store out of the way, to be built again; it is not deleted."""
    number = 1
    while (target := folder.with_name(f"{folder.name}.set-aside-{number}")).exists():
        number += 1
    if folder.exists():
        folder.rename(target)
