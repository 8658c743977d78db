"""One real broker for the whole run; topics and services with names of their own keep tests apart."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from holdfast.config import Settings, load
from holdfast.kafka.admin import Admin, TopicSpec
from holdfast.kafka.broker import EmbeddedBroker
from holdfast.kafka.consumer import RangeReader
from holdfast.names import ServiceId, TopicName

numbers = itertools.count(1)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    started = EmbeddedBroker(load({"data_dir": tmp_path_factory.mktemp("broker")}, environment={}))
    started.start()
    yield started
    started.stop()


@pytest.fixture
def settings(broker: EmbeddedBroker, tmp_path) -> Settings:
    """Settings of a server of its own: a new service id, the shared broker."""
    own = load({"data_dir": tmp_path / "data"}, environment={})
    return replace(own.at_kafka(broker.bootstrap), service_id=ServiceId(f"test{next(numbers)}"))


@pytest.fixture
def admin(settings: Settings) -> Admin:
    return Admin(settings)


@pytest.fixture
def ranges(settings: Settings, admin: Admin) -> Iterator[RangeReader]:
    reader = RangeReader(settings, admin)
    yield reader
    reader.close()


@pytest.fixture
def new_topic(admin: Admin) -> Callable[..., TopicName]:
    def create(partitions: int = 1, **config: str) -> TopicName:
        name = TopicName(f"topic{next(numbers)}")
        admin.create(TopicSpec(name=name, partitions=partitions, config=config))
        return name

    return create
