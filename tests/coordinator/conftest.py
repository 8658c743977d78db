import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.app import Service
from holdfast.config import Settings, load
from holdfast.kafka.port import TopicSpec
from holdfast.names import TopicName
from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.spark.engine_pair import EnginePair
from holdfast.runtime.spark.session import Sessions

from .hold_world import World
from .servers import Servers

numbers = itertools.count(1)


@pytest.fixture
def world(engine: Engine) -> Iterator[World]:
    made = World(engine)
    yield made
    made.close()


@pytest.fixture(scope="session")
def engines(sessions: Sessions) -> EnginePair:
    """Engines without Kafka, for services that run one after the other."""
    return EnginePair.open(sessions, {})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a server with an in-memory Kafka; its service id is unique, because metrics are per process."""
    return load({"data_dir": tmp_path / "data", "service_id": f"stepped{next(numbers)}"}, environment={})


@pytest.fixture
def servers(settings: Settings, engines: EnginePair) -> Iterator[Servers]:
    made = Servers(settings, engines)
    yield made
    made.stop()


@pytest.fixture
def service(servers: Servers) -> Service:
    """A stepped server."""
    return servers.start()


@pytest.fixture
def new_topic(servers: Servers) -> Callable[..., TopicName]:
    def create(partitions: int = 1, **config: str) -> TopicName:
        name = TopicName(f"topic{next(numbers)}")
        servers.topics.create(TopicSpec(name=name, partitions=partitions, config=config))
        return name

    return create
