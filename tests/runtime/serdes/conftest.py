from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.runtime.store.duckdb import DuckDbStore, open_store


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDbStore]:
    opened = open_store(Path(tmp_path_factory.mktemp("reader")))
    yield opened
    opened.close()
