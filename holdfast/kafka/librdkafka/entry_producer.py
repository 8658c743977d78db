"""Writing single records whose offset and time matter."""

from confluent_kafka import KafkaError as Reported
from confluent_kafka import KafkaException, Message, Producer

from holdfast.config import Settings
from holdfast.kafka.client_properties import kafka_client
from holdfast.kafka.librdkafka.errors import client_log, translate
from holdfast.names import TopicName


class EntryProducer:
    """Implements `lease.EntryWriter`. For one thread at a time."""

    def __init__(self, settings: Settings, timeout_ms: int) -> None:
        self._producer = Producer(
            {**kafka_client(settings), "acks": "all", "linger.ms": 0, "message.timeout.ms": timeout_ms},
            logger=client_log,
        )

    def write(self, topic: TopicName, value: bytes, key: bytes) -> tuple[int, int]:
        written: list[tuple[Reported | None, Message]] = []
        problem = f'topic "{topic}" cannot be written'
        try:
            self._producer.produce(
                topic, value, key, on_delivery=lambda error, message: written.append((error, message))
            )
            while not written:
                self._producer.poll(1)
        except KafkaException as cause:
            raise translate(problem, cause) from cause
        error, message = written[0]
        if error is not None:
            raise translate(problem, error)
        return message.offset() or 0, message.timestamp()[1]
