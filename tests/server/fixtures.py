"""Fixtures for tests of a service over HTTP."""

from collections.abc import Iterator

import httpx
import pytest

from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.spark.engine_pair import EnginePair
from holdfast.runtime.spark.session import Sessions
from tests.server.local import LocalService, SharedServer


@pytest.fixture(scope="session")
def engines(sessions: Sessions, engine: Engine) -> EnginePair:
    """The engines shared by all services of these tests."""
    return EnginePair(ticks=engine, reads=Engine(sessions.isolated(), {}))


@pytest.fixture(scope="module")
def shared(engines: EnginePair) -> Iterator[SharedServer]:
    server = SharedServer(engines)
    yield server
    server.close()


@pytest.fixture
def service(shared: SharedServer) -> Iterator[LocalService]:
    yield shared.service()
    shared.reset()


@pytest.fixture
def url(service: LocalService, shared: SharedServer) -> str:
    del service
    return shared.url


@pytest.fixture
def http(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=10, trust_env=False, verify=False) as client:
        yield client
