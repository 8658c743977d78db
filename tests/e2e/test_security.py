"""A cluster that requires TLS and a password: every client of the server, and Spark's, uses the settings."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.app import Service
from holdfast.config import Settings, load
from holdfast.errors import KafkaError
from holdfast.jars import find_java
from holdfast.kafka import broker as brokers
from holdfast.kafka.broker import EmbeddedBroker
from holdfast.kafka.librdkafka import admin as admins
from holdfast.kafka.librdkafka.admin import Admin
from holdfast.kafka.librdkafka.cluster import KafkaCluster
from holdfast.runtime.spark.session import Sessions
from holdfast.runtime.store.duckdb.store import open_store
from tests.coordinator.service_calls import records, rows, run, wait

from .server import free_port
from .topics import write

SECURED = """
listeners=CLIENTS://{{host}}:{{port}},CONTROLLER://{{host}}:{{controller_port}},SECURED://{{host}}:{secured}
advertised.listeners=CLIENTS://{{host}}:{{port}},SECURED://{{host}}:{secured}
listener.security.protocol.map=CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURED:SASL_SSL
listener.name.secured.sasl.enabled.mechanisms=PLAIN
listener.name.secured.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
  user_holdfast="a secret";
listener.name.secured.ssl.keystore.type=PKCS12
listener.name.secured.ssl.keystore.location={keystore}
listener.name.secured.ssl.keystore.password=changeit
listener.name.secured.ssl.key.password=changeit
"""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key for a broker on this machine, and beside it, as `ca.pem`, what its clients are to trust."""
    keystore = tmp_path_factory.mktemp("tls") / "broker.p12"
    keytool = str(find_java().with_name("keytool"))
    known = ["-alias", "broker", "-keystore", str(keystore), "-storetype", "PKCS12", "-storepass", "changeit"]
    named = ["-dname", "CN=127.0.0.1", "-ext", "SAN=ip:127.0.0.1", "-keyalg", "EC", "-validity", "2"]
    subprocess.run([keytool, "-genkeypair", *known, *named], check=True, capture_output=True)
    shown = subprocess.run([keytool, "-exportcert", "-rfc", *known], check=True, capture_output=True)
    keystore.with_name("ca.pem").write_bytes(shown.stdout)
    return keystore


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory, certificate: Path) -> Iterator[tuple[str, str]]:
    """Two addresses of one broker: a plain one and a secured one."""
    port, patched = free_port(), pytest.MonkeyPatch()
    properties = brokers.PROPERTIES + SECURED.format(secured=port, keystore=certificate)
    patched.setattr(brokers, "PROPERTIES", properties)
    broker = EmbeddedBroker(load({"data_dir": tmp_path_factory.mktemp("secured")}, environment={}))
    broker.start()
    yield broker.bootstrap, f"127.0.0.1:{port}"
    broker.stop()
    patched.undo()


def settings_for(folder: Path, address: str, certificate: Path, password: str) -> Settings:
    properties = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "holdfast",
        "sasl.password": password,
        "ssl.ca.location": str(certificate.with_name("ca.pem")),
    }
    options = {"data_dir": folder, "kafka": address, "kafka_properties": properties, "small_tick_records": 10}
    return load(options, environment={})


def test_every_client_uses_the_security_settings(
    sessions: Sessions, tmp_path: Path, clusters: tuple[str, str], certificate: Path
) -> None:
    open_address, secured = clusters
    settings = settings_for(tmp_path, secured, certificate, "a secret")
    service = Service(settings, sessions, open_store(tmp_path / "store"), KafkaCluster(settings))
    try:
        run(
            service,
            "CREATE STREAM s (id STRING KEY, n INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
            "INSERT INTO s VALUES ('a', 1);"
            "CREATE STREAM doubled AS SELECT id, n * 2 AS n FROM s;",
        )
        wait(lambda: records(service, "DOUBLED"), [(b"a", b'{"N":2}')])
        # More at once than the server's own consumer reads: Spark reads them.
        write(open_address, "s", [("b", b'{"n": 1}')] * 500)
        run(service, "CREATE TABLE totals AS SELECT id, SUM(n) AS total FROM s GROUP BY id;")
        wait(lambda: rows(service, "totals"), {("a", 1), ("b", 500)})
        wait(lambda: len(records(service, "DOUBLED")), 501)
    finally:
        service.stop()


@pytest.mark.parametrize("wrong", ["password", "certificate"])
def test_a_cluster_that_refuses_says_why(
    tmp_path: Path, clusters: tuple[str, str], certificate: Path, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admins, "SECONDS", 3.0)
    settings = settings_for(tmp_path, clusters[1], certificate, "a guess" if wrong == "password" else "a secret")
    if wrong == "certificate":
        properties = {k: v for k, v in settings.kafka_properties.items() if k != "ssl.ca.location"}
        settings = replace(settings, kafka_properties=properties)
    with pytest.raises(KafkaError) as refused:
        Admin(settings).topics()
    message = str(refused.value)
    assert ("uthentication" in message) if wrong == "password" else ("certificate" in message), message
