from collections.abc import Iterator

import httpx
import pytest

from holdfast.server.serve import listen, running

from .fake import ORDERS, TOTALS, FakeService


@pytest.fixture
def service() -> FakeService:
    return FakeService().run(ORDERS + TOTALS)


@pytest.fixture
def url(service: FakeService) -> Iterator[str]:
    with running(service, listen(service.settings)) as server:
        yield server.url


@pytest.fixture
def http(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=10, trust_env=False, verify=False) as client:
        yield client
