from collections.abc import Iterator

import pytest

from holdfast.runtime.spark.engine import Engine
from tests.serving.client_reads import Reading


@pytest.fixture
def reading(engine: Engine) -> Iterator[Reading]:
    opened = Reading(engine)
    yield opened
    opened.close()
