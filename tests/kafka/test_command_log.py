import os
import signal
import subprocess
import sys

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from holdfast.errors import CommandInDoubt, KafkaError, TopicChanged
from holdfast.kafka.client_properties import kafka_client
from holdfast.kafka.command_log import CommandLog
from holdfast.kafka.librdkafka import producer
from holdfast.kafka.port import Fenced

from .producers import open_transaction


@pytest.fixture
def logs(settings, kafka):
    opened = []

    def open_one() -> CommandLog:
        opened.append(CommandLog(settings, kafka))
        opened[-1].open()
        return opened[-1]

    yield open_one
    for log in opened:
        log.close()


def test_commands_are_read_back_in_order_with_their_offsets(logs, settings):
    log = logs()
    assert log.read_all() == []
    offsets = [log.append(f"key{n}".encode(), f"value{n}".encode()) for n in range(5)]
    assert [(record.offset, record.key, record.value) for record in log.read_all()] == [
        (offset, f"key{n}".encode(), f"value{n}".encode()) for n, offset in enumerate(offsets)
    ]
    open_transaction(settings, settings.command_topic, [b"undone"], id=f"{settings.service_id}-x").abort_transaction()
    assert [record.offset for record in logs().read_all()] == offsets


def test_a_newer_server_fences_the_older(logs):
    old = logs()
    old.append(b"k", b"1")
    new = logs()
    with pytest.raises(Fenced):
        old.append(b"k", b"2")
    new.append(b"k", b"3")
    assert [record.value for record in new.read_all()] == [b"1", b"3"]


def test_a_command_topic_without_its_beginning_is_refused(logs, settings):
    log = logs()
    log.append(b"k", b"1")
    end = log.append(b"k", b"2")
    client = AdminClient(kafka_client(settings))
    for future in client.delete_records([TopicPartition(settings.command_topic, 0, end)]).values():
        future.result()
    with pytest.raises(TopicChanged, match="has lost its beginning"):
        log.read_all()


APPEND = """
import sys
from holdfast.config import armed_crash_point, load
from holdfast.crash import arm
from holdfast.kafka.librdkafka.cluster import KafkaCluster
from holdfast.kafka.command_log import CommandLog
from holdfast.kafka.librdkafka import producer
arm(armed_crash_point())
settings = load({"service_id": sys.argv[2]}, environment={}).at_kafka(sys.argv[1])
log = CommandLog(settings, KafkaCluster(settings))
log.open()
log.append(b"k", b"v")
"""


@pytest.mark.parametrize(("point", "kept"), [("before_command_append", []), ("after_command_append", [b"v"])])
def test_a_kill_around_an_append(point, kept, logs, settings):
    killed = subprocess.run(
        [sys.executable, "-c", APPEND, settings.kafka or "", settings.service_id],
        env={**os.environ, "HOLDFAST_CRASH": point},
        capture_output=True,
        text=True,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert [record.value for record in logs().read_all()] == kept


@pytest.mark.parametrize("written", [True, False])
def test_an_append_whose_end_is_not_known_is_found_out_later(logs, monkeypatch, written):
    log = logs()
    log.append(b"k", b"1")
    commit = log._producer.commit

    def cut_off():
        if written:
            commit()
        raise KafkaError("Kafka is away")

    monkeypatch.setattr(log._producer, "commit", cut_off)
    with pytest.raises(CommandInDoubt):
        log.append(b"k", b"2")
    monkeypatch.undo()
    assert [record.value for record in log.missed()] == ([b"2"] if written else [])
    assert log.missed() == []
    log.append(b"k", b"3")
    assert [record.value for record in log.read_all()] == ([b"1", b"2", b"3"] if written else [b"1", b"3"])


def test_a_commit_that_was_cut_off_is_brought_to_its_end(logs, monkeypatch):
    log = logs()

    def cut_off(_call):
        raise producer.KafkaException(producer.Reported(producer.Reported._TIMED_OUT, retriable=True))

    monkeypatch.setattr(producer, "_retried", cut_off)
    with pytest.raises(CommandInDoubt):
        log.append(b"k", b"1")
    monkeypatch.undo()
    assert [record.value for record in log.missed()] == [b"1"]
