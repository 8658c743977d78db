"""Writes single records for users: idempotent, durable when `write` returns, in no transaction."""

from threading import Lock

from confluent_kafka import KafkaError as Reported
from confluent_kafka import KafkaException, Message, Producer

from holdfast.config import Settings
from holdfast.errors import KafkaError
from holdfast.kafka.clients import kafka_client
from holdfast.kafka.problems import client_log, told
from holdfast.kafka.publisher import Outgoing

SECONDS = 30.0


class RecordWriter:
    """A producer for rows that users insert. From any thread."""

    def __init__(self, settings: Settings) -> None:
        options = {"enable.idempotence": True, "partitioner": "murmur2_random", "linger.ms": 0}
        self._producer = Producer({**kafka_client(settings), **options}, logger=client_log)
        self._lock = Lock()

    def write(self, outgoing: Outgoing) -> None:
        """Write rows (`key`, `value`, `timestamp`) to their topic."""
        failed: list[Reported] = []

        def delivered(error: Reported | None, _message: Message) -> None:
            if error is not None:
                failed.append(error)

        columns = (outgoing.rows.column(name).to_pylist() for name in ("value", "key", "timestamp"))
        with self._lock:
            try:
                for value, key, timestamp in zip(*columns, strict=True):
                    self._producer.produce(outgoing.topic, value, key, timestamp=timestamp or 0, on_delivery=delivered)
                left = self._producer.flush(SECONDS)
            except KafkaException as cause:
                raise told(f'topic "{outgoing.topic}" cannot be written', cause) from cause
        if failed:
            raise told(f'topic "{outgoing.topic}" cannot be written', failed[0])
        if left:
            raise KafkaError(f'topic "{outgoing.topic}" cannot be written', detail="Kafka did not answer in time.")

    def close(self) -> None:
        self._producer.flush(5.0)
