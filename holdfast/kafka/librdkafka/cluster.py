"""Kafka as its brokers offer it: every client of a server, from the server's settings."""

from collections.abc import Callable, Mapping

from holdfast.config import Settings
from holdfast.kafka.client_properties import spark_kafka_options
from holdfast.kafka.lease import LeaseIntervals, TopicLease
from holdfast.kafka.librdkafka.admin import Admin
from holdfast.kafka.librdkafka.consumer import RangeReader, TopicReader
from holdfast.kafka.librdkafka.entry_producer import EntryProducer
from holdfast.kafka.librdkafka.producer import TransactionalProducer
from holdfast.kafka.librdkafka.writer import RecordWriter


class KafkaCluster:
    """Implements `port.Kafka` with librdkafka."""

    def __init__(self, settings: Settings, lease_intervals: LeaseIntervals | None = None) -> None:
        self._settings, self._lease_intervals = settings, lease_intervals or LeaseIntervals()
        self.topics = Admin(settings)
        self.ranges, self.push_ranges, self.internal_ranges = (RangeReader(settings, self.topics) for _ in range(3))

    @property
    def spark_options(self) -> Mapping[str, str]:
        return spark_kafka_options(self._settings)

    def consumer(self) -> TopicReader:
        return TopicReader(self._settings, self.topics)

    def producer(
        self, transactional_id: str, *, confirm: Callable[[], None] = lambda: None, linger_ms: int = 5
    ) -> TransactionalProducer:
        return TransactionalProducer(self._settings, transactional_id, confirm=confirm, linger_ms=linger_ms)

    def writer(self) -> RecordWriter:
        return RecordWriter(self._settings)

    def lease(self, *, on_lost: Callable[[], None]) -> TopicLease:
        intervals = self._lease_intervals
        writer = EntryProducer(self._settings, round(intervals.write * 1_000))
        return TopicLease(
            self._settings, self.topics, self.internal_ranges, writer, on_lost=on_lost, intervals=intervals
        )

    def close(self) -> None:
        for reader in (self.ranges, self.push_ranges, self.internal_ranges):
            reader.close()
