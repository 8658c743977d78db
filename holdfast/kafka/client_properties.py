"""The properties of Kafka clients: librdkafka's, and the same security for Spark's Java client.

A setting may have either library's name. Each function below turns some of them into what the other library calls
them; what both call the same passes through.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from holdfast.config import Settings
from holdfast.errors import ConfigError, nearest

Properties = Mapping[str, str]
Translation = Callable[[Properties], Properties]

BOTH = (
    "client.dns.lookup",
    "client.id",
    "client.rack",
    "connections.max.idle.ms",
    "metadata.max.age.ms",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.service.name",
    "sasl.mechanism",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url",
    "security.protocol",
    "socket.connection.setup.timeout.ms",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    "ssl.keystore.location",
    "ssl.keystore.password",
)
LIBRDKAFKA = (
    "broker.address.family",
    "debug",
    "enable.ssl.certificate.verification",
    "sasl.kerberos.keytab",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.principal",
    "sasl.mechanisms",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.config",
    "sasl.oauthbearer.extensions",
    "sasl.oauthbearer.method",
    "sasl.password",
    "sasl.username",
    "socket.keepalive.enable",
    "socket.timeout.ms",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.cipher.suites",
    "ssl.key.location",
    "ssl.key.pem",
)
JAVA = (
    "request.timeout.ms",
    "sasl.client.callback.handler.class",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
    "security.providers",
    "ssl.enabled.protocols",
    "ssl.keymanager.algorithm",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.type",
    "ssl.protocol",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
)

OAUTH_LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
MODULES = {
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def kafka_client(settings: Settings) -> dict[str, str | int | float | bool]:
    """The properties that every librdkafka client of this server starts from."""
    configured = checked(settings.kafka_properties)
    properties = {name: value for name, value in configured.items() if name not in JAVA}
    for translate in TO_LIBRDKAFKA:
        properties = {**translate(configured), **properties}
    return {"client.id": f"holdfast-{settings.service_id}", **properties, "bootstrap.servers": bootstrap(settings)}


def spark_kafka_options(settings: Settings) -> dict[str, str]:
    """The same connection for Spark's Kafka reader and writer, as options that start with `kafka.`."""
    configured = checked(settings.kafka_properties)
    properties = {name: value for name, value in configured.items() if name not in LIBRDKAFKA}
    for translate in TO_JAVA:
        properties = {**translate(configured), **properties}
    if properties.get("ssl.endpoint.identification.algorithm") == "none":
        properties["ssl.endpoint.identification.algorithm"] = ""
    properties["bootstrap.servers"] = bootstrap(settings)
    return {f"kafka.{name}": value for name, value in properties.items()}


def bootstrap(settings: Settings) -> str:
    assert settings.kafka is not None, "the embedded broker's address is put into the settings once it runs"
    return settings.kafka


def checked(properties: Properties) -> Properties:
    names = (*BOTH, *LIBRDKAFKA, *JAVA)
    for name in properties:
        if name not in names:
            raise ConfigError(
                f'Kafka property "{name}" does not exist or cannot be set',
                detail="It is in the [kafka] settings. Only properties for connections and security can be set there.",
                hint=nearest(name, names, plural="properties"),
            )
    return properties


def mechanism(properties: Properties) -> str | None:
    return properties.get("sasl.mechanism") or properties.get("sasl.mechanisms")


# -- to Java ---------------------------------------------------------------------------------------------------------


def login(properties: Properties) -> Properties:
    """One text names the login module and what it needs: `sasl.jaas.config`."""
    chosen = mechanism(properties)
    translated = {"sasl.mechanism": chosen} if chosen else {}
    if chosen in MODULES and (options := LOGIN_OPTIONS[chosen](properties)):
        words = " ".join(f"{name}={jaas_quoted(value)}" for name, value in options.items())
        translated["sasl.jaas.config"] = f"{MODULES[chosen]} required {words};"
    if chosen == "OAUTHBEARER" and properties.get("sasl.oauthbearer.method") == "oidc":
        translated["sasl.login.callback.handler.class"] = OAUTH_LOGIN
    return translated


def password_options(properties: Properties) -> Properties:
    return renamed(properties, {"sasl.username": "username", "sasl.password": "password"})


def kerberos_options(properties: Properties) -> Properties:
    options = renamed(properties, {"sasl.kerberos.keytab": "keyTab", "sasl.kerberos.principal": "principal"})
    return {"useKeyTab": "true", "storeKey": "true", **options} if "keyTab" in options else {}


def oauth_options(properties: Properties) -> Properties:
    names = {"client.id": "clientId", "client.secret": "clientSecret", "scope": "scope"}
    return renamed(properties, {f"sasl.oauthbearer.{theirs}": ours for theirs, ours in names.items()})


LOGIN_OPTIONS: Mapping[str, Translation] = {
    "GSSAPI": kerberos_options,
    "OAUTHBEARER": oauth_options,
    "PLAIN": password_options,
    "SCRAM-SHA-256": password_options,
    "SCRAM-SHA-512": password_options,
}


def trust(properties: Properties) -> Properties:
    if "ssl.ca.location" in properties:
        return {"ssl.truststore.type": "PEM", "ssl.truststore.location": properties["ssl.ca.location"]}
    if "ssl.ca.pem" in properties:
        return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": properties["ssl.ca.pem"]}
    return {}


def own_certificate(properties: Properties) -> Properties:
    """Java wants certificate and key in one file, or as texts; texts also reach executors on other machines."""
    chain = pem(properties, "ssl.certificate")
    key = pem(properties, "ssl.key")
    if chain and key:
        return {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}
    # librdkafka's key store is always PKCS#12.
    return {"ssl.keystore.type": "PKCS12"} if "ssl.keystore.location" in properties else {}


def pem(properties: Properties, kind: str) -> str | None:
    file = properties.get(f"{kind}.location")
    if file is None:
        return properties.get(f"{kind}.pem")
    try:
        return Path(file).expanduser().read_text("ascii")
    except (OSError, UnicodeDecodeError) as cause:
        raise ConfigError(
            f'the file of the Kafka property "{kind}.location" cannot be read', detail=f"{cause}."
        ) from None


def verification(properties: Properties) -> Properties:
    if properties.get("enable.ssl.certificate.verification", "true").lower() == "false":
        raise ConfigError(
            "certificates cannot be left unchecked: Spark's Kafka client always checks them",
            hint='Remove "enable.ssl.certificate.verification" and name the authority in "ssl.ca.location".',
        )
    return {}


TO_JAVA: tuple[Translation, ...] = (login, trust, own_certificate, verification)


# -- to librdkafka ---------------------------------------------------------------------------------------------------


def login_of_jaas(properties: Properties) -> Properties:
    options = {
        name: jaas_unquoted(value) for name, value in JAAS_OPTION.findall(properties.get("sasl.jaas.config", ""))
    }
    names = {
        "username": "sasl.username",
        "password": "sasl.password",
        "keyTab": "sasl.kerberos.keytab",
        "principal": "sasl.kerberos.principal",
        "clientId": "sasl.oauthbearer.client.id",
        "clientSecret": "sasl.oauthbearer.client.secret",
        "scope": "sasl.oauthbearer.scope",
    }
    translated = dict(renamed(options, names))
    if "sasl.oauthbearer.client.id" in translated:
        translated["sasl.oauthbearer.method"] = "oidc"
    return translated


def trust_of_store(properties: Properties) -> Properties:
    if "ssl.truststore.certificates" in properties:
        return {"ssl.ca.pem": properties["ssl.truststore.certificates"]}
    if "ssl.truststore.location" in properties:
        must_be("PEM", properties, "ssl.truststore", 'Give the certificates as a PEM file, in "ssl.ca.location".')
        return {"ssl.ca.location": properties["ssl.truststore.location"]}
    return {}


def own_certificate_of_store(properties: Properties) -> Properties:
    names = {"ssl.keystore.certificate.chain": "ssl.certificate.pem", "ssl.keystore.key": "ssl.key.pem"}
    if "ssl.keystore.location" in properties and "ssl.keystore.type" in properties:
        must_be("PKCS12", properties, "ssl.keystore", "Convert it: keytool -importkeystore -deststoretype PKCS12.")
    return renamed(properties, names)


TO_LIBRDKAFKA: tuple[Translation, ...] = (login_of_jaas, trust_of_store, own_certificate_of_store)


def must_be(kind: str, properties: Properties, store: str, hint: str) -> None:
    if properties.get(f"{store}.type", "JKS").upper() != kind:
        raise ConfigError(
            f'"{store}.location" must be a {kind} file',
            detail="This server's own Kafka client is not a Java program and cannot read Java's key stores.",
            hint=hint,
        )


# -- JAAS texts ------------------------------------------------------------------------------------------------------

JAAS_OPTION = re.compile(r'(\w+)\s*=\s*("(?:[^"\\]|\\.)*"|[^\s;]+)')


def jaas_quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def jaas_unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value


def renamed(properties: Properties, names: Mapping[str, str]) -> Properties:
    return {ours: properties[theirs] for theirs, ours in names.items() if theirs in properties}
