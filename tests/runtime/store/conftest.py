from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.runtime.store.duckdb import DuckDbStore, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DuckDbStore]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()
