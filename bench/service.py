"""A service in this process with its own broker, and helpers that use it as a client would."""

import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer
from pyspark.sql import DataFrame

from holdfast.app import Service, start_service
from holdfast.config import load as load_settings
from holdfast.jars import JarSet, fetch_jars, find_java
from holdfast.runtime.spark.archive import spark_archive
from holdfast.runtime.spark.session import Sessions, open_sessions
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.syntax.parse import statements


@contextmanager
def running(**settings: object) -> Iterator[Service]:
    """A service that stops with the block and leaves no files."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        service = start_service(load_settings({"data_dir": Path(folder), **settings}, environment={}))
        try:
            yield service
        finally:
            service.stop()


@contextmanager
def opened_sessions() -> Iterator[Sessions]:
    """Spark for services over Kafka in memory."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        settings = load_settings({"data_dir": Path(folder)}, environment={})
        jars = fetch_jars(JarSet.SPARK, settings.jar_dir, java=find_java())
        archive = spark_archive(settings.jar_dir, find_java(), jars)
        sessions = open_sessions(master="local[2]", jars=jars, work_dir=settings.data_dir / "work", archive=archive)
        try:
            yield sessions
        finally:
            sessions.stop()


def run(service: Service, sql: str) -> None:
    for parsed in statements(sql):
        service.execute(parsed, {})


def select(service: Service, sql: str) -> BoundSelect:
    parsed = next(iter(statements(sql)))
    bound = bind(parsed.statement, service.catalog, {})
    assert isinstance(bound, BoundSelect)
    return bound


def wait_running(service: Service, *queries: str, timeout: float = 300.0) -> None:
    """Wait until these queries, or all, have caught up."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        found = [q for q in service.queries() if not queries or q.id in queries]
        failed = [q for q in found if q.state == "ERROR"]
        if failed:
            raise RuntimeError(failed[0].reason)
        if found and all(q.state == "RUNNING" for q in found):
            return
        time.sleep(0.005)
    raise TimeoutError("the queries did not catch up")


def settle(service: Service) -> None:
    """Wait until all outboxes are published: the next measurement starts with idle processors."""
    while service._store.pending():
        time.sleep(0.05)


def read_topic(service: Service, topic: str) -> DataFrame:
    """A whole topic as plain PySpark reads it, in the service's own session."""
    return (
        service._sessions.large.read.format("kafka")
        .options(**service._engine._kafka_options)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .option("kafka.isolation.level", "read_committed")
        .load()
    )


class Record(NamedTuple):
    key: bytes
    value: bytes
    timestamp: int = 0


def orders(records: int, keys: int) -> Iterator[Record]:
    """JSON records `{"id", "user", "amount", "city"}` of about 60 bytes, keyed by user."""
    for i in range(records):
        user = i * 7919 % keys
        value = b'{"id":%d,"user":"u%d","amount":%d.%02d,"city":"c%d"}' % (i, user, i % 1000, i % 100, i % 50)
        yield Record(b"u%d" % user, value)


def load_orders(bootstrap: str, topic: str, records: int, keys: int) -> None:
    load(bootstrap, topic, orders(records, keys))


def load(bootstrap: str, topic: str, records: Iterable[Record]) -> None:
    """Write records as fast as the producer accepts them; the default timestamp is the current time."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "compression.type": "lz4",
            "partitioner": "murmur2_random",
        }
    )
    for record in records:
        while True:
            try:
                producer.produce(topic, record.value, record.key, timestamp=record.timestamp)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
