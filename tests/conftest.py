"""Shared by all tests: one Spark and one broker for the whole run. Unique names keep tests apart."""

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from lanes import (
    pytest_collection_modifyitems,
    pytest_terminal_summary,
    pytest_unconfigure,
    pytest_xdist_make_scheduler,
)
from pyspark.sql import SparkSession

from holdfast.app import Service
from holdfast.config import Settings, load
from holdfast.jars import JarSet, fetch_jars, find_java
from holdfast.kafka.broker import EmbeddedBroker
from holdfast.kafka.client_properties import spark_kafka_options
from holdfast.kafka.librdkafka.admin import Admin
from holdfast.kafka.librdkafka.cluster import KafkaCluster
from holdfast.kafka.librdkafka.consumer import RangeReader
from holdfast.kafka.port import TopicSpec
from holdfast.names import ServiceId, TopicName
from holdfast.runtime.spark.archive import spark_archive
from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.spark.session import BRIEF, Sessions, open_sessions
from holdfast.runtime.store.duckdb.store import open_store

__all__ = [
    "pytest_collection_modifyitems",
    "pytest_terminal_summary",
    "pytest_unconfigure",
    "pytest_xdist_make_scheduler",
]

# Helper modules in these folders also assert; rewriting makes their failures show the values.
pytest.register_assert_rewrite("client", "conformance", "coordinator", "e2e", "runtime", "server", "serving")
# For the JVMs of Spark, its launcher and the brokers: two lanes on two cores leave no time for the threads of G1.
os.environ.setdefault("JDK_JAVA_OPTIONS", f"{BRIEF} -XX:+UseSerialGC")
numbers = itertools.count(1)


@pytest.fixture(scope="session")
def conformance() -> Path:
    """ksqlDB's and Kafka Streams' test data, read in place and never copied."""
    named = os.environ.get("HOLDFAST_CONFORMANCE_DIR")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "conformance"
    if not folder.is_dir():
        pytest.skip(f"the conformance data is not at {folder}; set HOLDFAST_CONFORMANCE_DIR")
    return folder


@pytest.fixture(scope="session")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    own = load({"data_dir": tmp_path_factory.mktemp("spark")}, environment={})
    jars = fetch_jars(JarSet.SPARK, own.jar_dir, java=find_java())
    archive = spark_archive(own.jar_dir, find_java(), jars)
    opened = open_sessions(master="local[2]", jars=jars, work_dir=own.data_dir / "work", archive=archive)
    yield opened
    opened.stop()


@pytest.fixture
def spark(sessions: Sessions) -> SparkSession:
    """The session of small ticks: another one after a test that has ended Spark."""
    sessions.restart()
    return sessions.small


@pytest.fixture(scope="session")
def engine(sessions: Sessions) -> Engine:
    """The engine without Kafka."""
    return Engine(sessions, {})


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    started = EmbeddedBroker(load({"data_dir": tmp_path_factory.mktemp("broker")}, environment={}))
    started.start()
    yield started
    started.stop()


@pytest.fixture(scope="session")
def kafka_engine(sessions: Sessions, broker: EmbeddedBroker) -> Engine:
    """The engine with the shared broker."""
    return Engine(sessions, spark_kafka_options(load({}, environment={}).at_kafka(broker.bootstrap)))


@pytest.fixture
def settings(broker: EmbeddedBroker, tmp_path: Path) -> Settings:
    """Settings of a separate server: a new service id, the shared broker."""
    own = load({"data_dir": tmp_path / "data"}, environment={})
    return replace(own.at_kafka(broker.bootstrap), service_id=ServiceId(f"test{next(numbers)}"))


@pytest.fixture
def kafka(settings: Settings) -> Iterator[KafkaCluster]:
    """The clients of the shared broker."""
    cluster = KafkaCluster(settings)
    yield cluster
    cluster.close()


@pytest.fixture
def admin(kafka: KafkaCluster) -> Admin:
    return kafka.topics


@pytest.fixture
def ranges(kafka: KafkaCluster) -> RangeReader:
    return kafka.ranges


@pytest.fixture
def new_topic(admin: Admin) -> Callable[..., TopicName]:
    def create(partitions: int = 1, **config: str) -> TopicName:
        name = TopicName(f"topic{next(numbers)}")
        admin.create(TopicSpec(name=name, partitions=partitions, config=config))
        return name

    return create


@pytest.fixture
def service(settings: Settings, sessions: Sessions) -> Iterator[Service]:
    """A complete server without HTTP, on the shared Spark and broker."""
    started = Service(settings, sessions, open_store(settings.data_dir / "store"), KafkaCluster(settings))
    yield started
    started.stop()
