"""The archive of the broker's classes fits the JVM that the broker is started with."""

import subprocess
from pathlib import Path

import psutil

from holdfast.class_archive import USED
from holdfast.config import load
from holdfast.jars import JarSet, fetch_jars, find_java
from holdfast.kafka.broker import EmbeddedBroker, broker_archive
from holdfast.kafka.broker_archive import make_archive


def test_a_broker_uses_the_archive_that_an_earlier_one_left(tmp_path: Path):
    found = load({"data_dir": tmp_path / "data"}, environment={})
    java = find_java()
    jars = fetch_jars(JarSet.BROKER, found.jar_dir, java=java)
    own = tmp_path / "jars"
    linked = [own / jar.relative_to(found.jar_dir) for jar in jars]
    for jar, link in zip(jars, linked, strict=True):
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(jar)
    settings = load({"data_dir": tmp_path / "data", "jar_dir": own}, environment={})
    archive = broker_archive(own, java, linked)
    make_archive(archive, settings)
    assert not settings.data_dir.exists()
    broker = EmbeddedBroker(settings)
    broker.start()
    try:
        command = psutil.Process(broker.pid).cmdline()
    finally:
        broker.stop()
    assert f"{USED}{archive}" in command
    java_command = command[: command.index("kafka.Kafka")]
    checked = [java_command[0], "-Xshare:on", *java_command[1:], "-version"]
    assert subprocess.run(checked, capture_output=True, check=False).returncode == 0
