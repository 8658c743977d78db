import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest

from holdfast.config import load
from holdfast.errors import StartError
from holdfast.kafka.broker import EmbeddedBroker, free_port
from holdfast.kafka.librdkafka.admin import Admin
from holdfast.kafka.port import TopicSpec
from tests.e2e.topics import producer, read, write

START_AND_REPORT = """
import sys, threading, time
from holdfast.config import load
from holdfast.kafka.librdkafka.admin import Admin
from holdfast.kafka.port import TopicSpec
from holdfast.kafka.broker import EmbeddedBroker
settings = load({"data_dir": sys.argv[1]}, environment={})
broker = EmbeddedBroker(settings)
# Not the main thread: a broker must outlive the thread that started it.
starting = threading.Thread(target=broker.start)
starting.start()
starting.join()
Admin(settings.at_kafka(broker.bootstrap)).create(TopicSpec(name="kept"))
print(broker.pid, broker.bootstrap, flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def stopping(broker: EmbeddedBroker):
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


def test_a_killed_server_takes_its_broker_with_it_and_a_restart_finds_data_and_port(tmp_path):
    server = subprocess.Popen(
        [sys.executable, "-c", START_AND_REPORT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    pid, bootstrap = server.stdout.readline().split()
    jvm = psutil.Process(int(pid))
    assert jvm.name() == "java"

    server.kill()
    server.wait()
    killed_at = time.monotonic()
    settings = load({"data_dir": tmp_path}, environment={})
    with stopping(EmbeddedBroker(settings)) as broker:
        assert time.monotonic() - killed_at < 30
        assert not psutil.pid_exists(int(pid)) or jvm.status() == psutil.STATUS_ZOMBIE
        assert broker.bootstrap == bootstrap
        assert Admin(settings.at_kafka(bootstrap)).exists("kept")


def test_a_frozen_broker_does_not_outlive_its_server(tmp_path):
    server = subprocess.Popen(
        [sys.executable, "-c", START_AND_REPORT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    jvm = psutil.Process(int(server.stdout.readline().split()[0]))
    os.kill(jvm.pid, signal.SIGSTOP)
    server.kill()
    server.wait()
    with contextlib.suppress(psutil.NoSuchProcess):
        jvm.wait(timeout=10)


def test_a_port_that_was_asked_for_and_is_taken_is_an_error(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        broker = EmbeddedBroker(load({"data_dir": tmp_path, "broker_port": port}, environment={}))
        with pytest.raises(StartError, match=rf"port {port}.* is in use") as raised:
            broker.start()
    assert "--broker-port" in (raised.value.hint or "")


def test_a_broker_that_cannot_start_shows_the_end_of_its_log(tmp_path):
    settings = load({"data_dir": tmp_path}, environment={})
    home = tmp_path / "kafka" / "log"
    home.mkdir(parents=True)
    (home / "meta.properties").write_text("version=1\nnode.id=7\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n")
    with pytest.raises(StartError, match="broker ended with status") as raised:
        EmbeddedBroker(settings).start()
    assert "node" in (raised.value.detail or "").lower()


def test_it_listens_on_loopback_only_and_stops(tmp_path):
    port = free_port()
    settings = load({"data_dir": tmp_path, "broker_port": port}, environment={})
    with stopping(EmbeddedBroker(settings)) as broker:
        assert broker.bootstrap == f"127.0.0.1:{port}"
        assert broker.pid is not None
        process = psutil.Process(broker.pid)
        listening = {at.laddr.ip for at in process.net_connections() if at.status == psutil.CONN_LISTEN}
        assert {address.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}
        Admin(settings.at_kafka(broker.bootstrap)).create(TopicSpec(name="t", partitions=3))
    assert not broker.alive
    assert not process.is_running()
    moved = replace(settings, broker_port=free_port())
    with stopping(EmbeddedBroker(moved)) as broker:
        assert Admin(moved.at_kafka(broker.bootstrap)).describe(["t"])["t"].partitions == 3


def test_a_broker_that_starts_with_linked_files_has_what_was_there_at_that_moment(tmp_path):
    settings = load({"data_dir": tmp_path / "first"}, environment={})
    with stopping(EmbeddedBroker(settings)) as first:
        Admin(settings.at_kafka(first.bootstrap)).create(TopicSpec(name="t"))
        write(first.bootstrap, "t", [("a", b"before")])
        undecided = producer(first.bootstrap, "undecided")
        undecided.begin_transaction()
        undecided.produce("t", b"undecided", "a")
        undecided.flush(30)
        links = tmp_path / "first" / "links"
        sizes = first.link_files(links)
        write(first.bootstrap, "t", [("a", b"after")])
        undecided.commit_transaction(30)
        assert [record.value for record in read(first.bootstrap, "t")] == [b"before", b"undecided", b"after"]
        for link, size in sizes.items():
            copy = tmp_path / "second" / "kafka" / "log" / link.relative_to(links)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(link.read_bytes()[:size])
    shutil.copy(tmp_path / "first" / "kafka" / "broker.json", tmp_path / "second" / "kafka")
    with stopping(EmbeddedBroker(load({"data_dir": tmp_path / "second"}, environment={}))) as second:
        # As after a kill: who writes under the same id ends what was undecided.
        producer(second.bootstrap, "undecided")
        assert [record.value for record in read(second.bootstrap, "t")] == [b"before"]
        write(second.bootstrap, "t", [("a", b"later")])
        assert [record.value for record in read(second.bootstrap, "t")] == [b"before", b"later"]
