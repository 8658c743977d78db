"""Fixtures of the end-to-end tests."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.kafka.broker import EmbeddedBroker

from .server import Server, servers


@pytest.fixture
def make_server(tmp_path: Path, broker: EmbeddedBroker) -> Iterator[Callable[..., Server]]:
    """Creates servers on the shared broker; all are stopped after the test."""
    with servers(tmp_path, broker.bootstrap) as make:
        yield make
