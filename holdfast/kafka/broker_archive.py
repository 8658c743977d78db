"""Creates the class archive of the embedded broker, by running a broker once."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from holdfast.class_archive import making
from holdfast.config import Settings
from holdfast.kafka.broker import EmbeddedBroker

TOPIC = "classes"


def make_archive(archive: Path, settings: Settings) -> None:
    with TemporaryDirectory() as folder, making(archive) as options:
        broker = EmbeddedBroker(replace(settings, data_dir=Path(folder), broker_port=0), java_options=options)
        broker.start()
        try:
            _load_classes(broker.bootstrap)
        finally:
            broker.stop()


def _load_classes(bootstrap: str) -> None:
    client: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap, "log_level": 2}
    admin = AdminClient(client)
    for created in admin.create_topics([NewTopic(TOPIC, 1, 1)]).values():
        created.result(30)
    producer = Producer({**client, "transactional.id": TOPIC})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(TOPIC, b"value", key=b"key", partition=0)
    producer.commit_transaction(30)
    consumer = Consumer({**client, "group.id": TOPIC, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    consumer.poll(10)
    consumer.close()
