from collections.abc import Iterator

import pytest

from holdfast.server.serve import listen, running
from tests.server.fake import ORDERS, TOTALS, FakeService


@pytest.fixture
def service() -> FakeService:
    return FakeService().run(ORDERS + TOTALS)


@pytest.fixture
def url(service: FakeService) -> Iterator[str]:
    with running(service, listen(service.settings)) as server:
        yield server.url
