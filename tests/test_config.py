from dataclasses import fields
from pathlib import Path

import pytest

from holdfast.config import SETTINGS, Settings, load
from holdfast.errors import ConfigError
from holdfast.kafka.client_properties import kafka_client, spark_kafka_options


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def file(text: str, name: str = "holdfast.toml") -> Path:
    path = Path(name)
    path.write_text(text)
    return path


def test_every_setting_can_be_read():
    assert set(SETTINGS) == {field.name for field in fields(Settings)}


def test_defaults_need_nothing(tmp_path):
    settings = load(environment={"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert settings.data_dir == tmp_path / "data" / "holdfast" / "default"
    assert settings.jar_dir == tmp_path / "cache" / "holdfast" / "jars"
    assert settings.kafka is None
    assert (settings.http_host, settings.http_port) == ("127.0.0.1", 8088)
    assert load(environment={}).data_dir == Path.home() / ".local/share/holdfast/default"


def test_each_source_overrides_the_one_before():
    file('http_port = 1\nservice_id = "a"\nstore_memory = "2GB"')
    assert load(environment={}).http_port == 1
    assert load(environment={"HOLDFAST_HTTP_PORT": "2"}).http_port == 2
    settings = load({"http_port": 3, "service_id": None}, environment={"HOLDFAST_HTTP_PORT": "2"})
    assert (settings.http_port, settings.service_id, settings.store_memory) == (3, "a", 2 << 30)
    other = file("http_port = 9", "other.toml")
    assert load(file=other, environment={}).http_port == 9
    assert load(environment={"HOLDFAST_CONFIG": str(other)}).http_port == 9


def test_properties_of_kafka_and_spark_are_merged_over_the_sources():
    file(
        """
        [kafka]
        bootstrap.servers = "k1:9093, k2:9093"
        security.protocol = "SSL"
        ssl.ca.location = "/ca.pem"
        [spark]
        master = "spark://host:7077"
        executor.memory = "4g"
        "spark.sql.adaptive.enabled" = true
        sql.shuffle.partitions = 4
        """
    )
    environment = {"HOLDFAST_KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "HOLDFAST_SPARK_EXECUTOR_CORES": "2"}
    settings = load({"kafka_properties": {"sasl.mechanism": "PLAIN"}}, environment=environment)
    assert settings.kafka == "k1:9093,k2:9093"
    assert settings.spark_master == "spark://host:7077"
    assert settings.kafka_properties == {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": "/ca.pem",
        "sasl.mechanism": "PLAIN",
    }
    assert settings.spark_properties == {
        "spark.executor.memory": "4g",
        "spark.executor.cores": "2",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.shuffle.partitions": "4",
    }


@pytest.mark.parametrize(
    ("text", "environment", "flags", "message", "place", "hint"),
    [
        ("http_prot = 1", {}, {}, 'setting "http_prot"', 'the file "holdfast.toml"', '"http_port"'),
        ("", {"HOLDFAST_DATADIR": "x"}, {}, 'setting "datadir"', "variable HOLDFAST_DATADIR", '"data_dir"'),
        ("", {}, {"rebiuld": True}, 'setting "rebiuld"', "the flag --rebiuld", '"rebuild"'),
        ("http_port = true", {}, {}, "must be a whole number from 0 to 65535, not True", "holdfast.toml", None),
        ("", {"HOLDFAST_HTTP_PORT": "70000"}, {}, "not '70000'", "HOLDFAST_HTTP_PORT", None),
        ("", {"HOLDFAST_REBUILD": "maybe"}, {}, "must be true or false", "HOLDFAST_REBUILD", None),
        ("", {}, {"kafka": "host"}, "must be host:port", "the flag --kafka", None),
        ("", {}, {"service_id": "a b"}, "letters, digits", "--service-id", None),
        ("", {}, {"store_memory": "lots"}, 'such as "2GB"', "--store-memory", None),
        ('data_dir = ""', {}, {}, "must be a non-empty string", "holdfast.toml", None),
        ("[kafka]\nssl.ca.location = [1]", {}, {}, '"ssl.ca.location" is none of these', "[kafka] of the file", None),
        ("spark = 3", {}, {}, 'setting "spark"', "holdfast.toml", "spark"),
    ],
)
def test_a_wrong_setting_is_reported_with_its_place(text, environment, flags, message, place, hint):
    file(text)
    with pytest.raises(ConfigError) as raised:
        load(flags, environment=environment)
    assert message in raised.value.message
    assert place in (raised.value.detail or "")
    assert hint is None or hint in (raised.value.hint or "")


def test_a_named_file_must_be_there_and_be_toml():
    with pytest.raises(ConfigError, match="does not exist"):
        load(file=Path("no.toml"), environment={})
    with pytest.raises(ConfigError, match="cannot be read"):
        load(file=file("a = = b", "bad.toml"), environment={})


def test_security_for_no_kafka_is_an_error():
    with pytest.raises(ConfigError, match="is set without a Kafka cluster"):
        load(environment={"HOLDFAST_KAFKA_SECURITY_PROTOCOL": "SSL"})


def test_passwords_are_not_shown():
    settings = at_kafka({"sasl.password": "geheim"})
    assert "geheim" not in repr(settings)


def at_kafka(properties: dict[str, str]) -> Settings:
    return load({"kafka": "k:9092", "kafka_properties": properties}, environment={})


PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer"


@pytest.mark.parametrize(
    ("configured", "java"),
    [
        ({}, {}),
        ({"security.protocol": "SSL"}, {"security.protocol": "SSL"}),
        (
            {"sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": 'p"\\'},
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f'{PLAIN} required username="u" password="p\\"\\\\";'},
        ),
        (
            {"sasl.mechanisms": "SCRAM-SHA-512", "sasl.username": "u", "sasl.password": "p"},
            {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": f'{SCRAM} required username="u" password="p";'},
        ),
        (
            {"sasl.mechanism": "GSSAPI", "sasl.kerberos.keytab": "/k", "sasl.kerberos.principal": "me"},
            {
                "sasl.mechanism": "GSSAPI",
                "sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required "
                'useKeyTab="true" storeKey="true" keyTab="/k" principal="me";',
            },
        ),
        (
            {
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "i",
                "sasl.oauthbearer.client.secret": "s",
                "sasl.oauthbearer.token.endpoint.url": "https://t",
            },
            {
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.token.endpoint.url": "https://t",
                "sasl.jaas.config": f'{OAUTH}.OAuthBearerLoginModule required clientId="i" clientSecret="s";',
                "sasl.login.callback.handler.class": f"{OAUTH}.OAuthBearerLoginCallbackHandler",
            },
        ),
        ({"ssl.ca.location": "/ca"}, {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca"}),
        ({"ssl.ca.pem": "CA"}, {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "CA"}),
        (
            {"ssl.certificate.location": "cert.pem", "ssl.key.location": "key.pem", "ssl.key.password": "p"},
            {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": "CERT",
                "ssl.keystore.key": "KEY",
                "ssl.key.password": "p",
            },
        ),
        (
            {"ssl.keystore.location": "/s", "ssl.keystore.password": "p"},
            {"ssl.keystore.location": "/s", "ssl.keystore.password": "p", "ssl.keystore.type": "PKCS12"},
        ),
        ({"ssl.endpoint.identification.algorithm": "none"}, {"ssl.endpoint.identification.algorithm": ""}),
        ({"sasl.jaas.config": "x required;"}, {"sasl.jaas.config": "x required;"}),
        ({"socket.keepalive.enable": "true"}, {}),
    ],
)
def test_sparks_kafka_client_gets_the_same_security(configured, java):
    file("CERT", "cert.pem")
    file("KEY", "key.pem")
    options = {f"kafka.{name}": value for name, value in java.items()}
    assert spark_kafka_options(at_kafka(configured)) == {"kafka.bootstrap.servers": "k:9092", **options}


@pytest.mark.parametrize(
    ("configured", "ours"),
    [
        ({"sasl.mechanism": "PLAIN", "sasl.username": "u"}, {"sasl.mechanism": "PLAIN", "sasl.username": "u"}),
        (
            {"sasl.jaas.config": f'{PLAIN} required username="u" password="p\\"q";'},
            {"sasl.username": "u", "sasl.password": 'p"q'},
        ),
        ({"ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca"}, {"ssl.ca.location": "/ca"}),
        ({"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "CA"}, {"ssl.ca.pem": "CA"}),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": "C", "ssl.keystore.key": "K"},
            {"ssl.certificate.pem": "C", "ssl.key.pem": "K"},
        ),
        ({"client.id": "mine"}, {"client.id": "mine"}),
    ],
)
def test_our_own_client_understands_javas_names(configured, ours):
    expected = {"bootstrap.servers": "k:9092", "client.id": "holdfast-default", **ours}
    assert kafka_client(at_kafka(configured)) == expected


@pytest.mark.parametrize(
    ("configured", "message"),
    [
        ({"sasl.mechanim": "PLAIN"}, '"sasl.mechanim" does not exist'),
        ({"ssl.certificate.location": "/no/such", "ssl.key.pem": "K"}, '"ssl.certificate.location" cannot be read'),
        ({"enable.ssl.certificate.verification": "false"}, "always checks them"),
    ],
)
def test_spark_settings_that_are_not_allowed_are_errors(configured, message):
    with pytest.raises(ConfigError, match=message):
        spark_kafka_options(at_kafka(configured))


def test_java_key_stores_are_refused_with_a_way_out():
    with pytest.raises(ConfigError, match="must be a PEM file") as raised:
        kafka_client(at_kafka({"ssl.truststore.location": "/trust.jks"}))
    assert "ssl.ca.location" in (raised.value.hint or "")


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "db.example"])
def test_a_server_beyond_loopback_has_to_be_wanted(tmp_path: Path, host: str) -> None:
    with pytest.raises(ConfigError, match="reachable from other machines") as raised:
        load({"data_dir": tmp_path, "http_host": host}, environment={})
    assert "--insecure" in (raised.value.hint or "")
    assert load({"data_dir": tmp_path, "http_host": host, "insecure": True}, environment={}).http_host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_needs_no_more(tmp_path: Path, host: str) -> None:
    assert load({"data_dir": tmp_path, "http_host": host}, environment={}).is_local


def test_names_are_separated_by_commas(tmp_path: Path) -> None:
    found = load({"data_dir": tmp_path}, environment={"HOLDFAST_HTTP_NAMES": "a.example, b.example"})
    assert found.http_names == ("a.example", "b.example")
