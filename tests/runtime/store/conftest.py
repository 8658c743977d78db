from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.runtime.store.duckdb import DuckDbStore, open_store, read


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DuckDbStore]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How DuckDB ran each statement of a read."""
    found: list[str] = []
    ran = read._run

    def run(cursor, sql, parameters, fetch):
        found.append(cursor.execute(f"EXPLAIN ANALYZE {sql}", list(parameters) or None).fetchall()[0][1])
        return ran(cursor, sql, parameters, fetch)

    monkeypatch.setattr(read, "_run", run)
    return found
