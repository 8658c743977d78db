from collections.abc import Iterator
from pathlib import Path

import pytest

from .reading import Reading


@pytest.fixture
def reading(tmp_path: Path) -> Iterator[Reading]:
    """Tables without Spark."""
    opened = Reading(tmp_path)
    yield opened
    opened.close()
