"""Settings of a server. Only this module reads the environment and configuration files.

Each source overrides the one before it: defaults, the TOML file, environment variables `HOLDFAST_*`, flags. An unknown
setting or a value of the wrong type is an error that names its source.

In the file, Kafka's and Spark's own properties have a table each, under the names of their documentation:

    service_id = "orders"

    [kafka]
    bootstrap.servers = "kafka1:9093,kafka2:9093"
    security.protocol = "SSL"
    ssl.ca.location = "/etc/ssl/kafka-ca.pem"

    [spark]
    master = "spark://host:7077"
    executor.memory = "4g"

In the environment they are `HOLDFAST_KAFKA_SECURITY_PROTOCOL` and `HOLDFAST_SPARK_EXECUTOR_MEMORY`.
"""

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeGuard

from holdfast.errors import ConfigError, nearest
from holdfast.names import ServiceId, TopicName

DEFAULT_FILE = "holdfast.toml"
DEFAULT_SERVER = "http://127.0.0.1:8088"
"""The address of a server with default settings."""
DEFAULT_SERVICE = ServiceId("default")
PREFIX = "HOLDFAST_"

SPARK_SUBMIT_OPTIONS = "SPARK_SUBMIT_OPTS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a server, fixed at its start."""

    data_dir: Path
    """The store, the embedded broker's data and the logs; one server at a time."""
    jar_dir: Path
    """Folder of downloaded jars; shared by all servers of a user."""
    service_id: ServiceId = DEFAULT_SERVICE
    """Part of the names of internal topics: servers with different ids share only the Kafka cluster."""
    kafka: str | None = None
    """Bootstrap servers; without them the embedded broker is started."""
    kafka_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Properties of every Kafka client, under librdkafka's names or Java's. May contain passwords."""
    broker_port: int = 0
    """Port of the embedded broker; 0 chooses one and stores it in the data folder."""
    internal_replication: int | None = None
    """Replication factor of internal topics; default: the brokers' default."""
    http_host: str = "127.0.0.1"
    http_port: int = 8088
    http_names: tuple[str, ...] = ()
    """Names by which clients address the server, besides IP addresses, localhost and http_host."""
    insecure: bool = False
    """Listen beyond loopback, although the server has neither authentication nor TLS."""
    python_functions: bool | None = None
    """Allow functions in Python; default: only on loopback."""
    topic_deletion: bool | None = None
    """Allow DELETE TOPIC; default: only on loopback."""
    spark_master: str = "local[*]"
    spark_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    max_records_per_tick: int = 1_000_000
    max_bytes_per_tick: int = 256 << 20
    """Maximum bytes of keys and values that one tick reads, approximately."""
    small_tick_records: int = 5_000
    """Ticks with up to this many records are read by the server's own consumer, larger ones by Spark."""
    query_timeout: timedelta = timedelta(minutes=10)
    """Maximum time of one Spark job; a query whose job takes longer goes to ERROR."""
    stop_timeout: timedelta = timedelta(seconds=60)
    """Maximum time that an orderly stop may take; then the process ends."""
    max_push_queries: int = 1_000
    """Maximum number of open push queries."""
    subscribe_max_lag: timedelta = timedelta(hours=3)
    """Maximum lag of a subscriber; one that falls further behind is closed, and its history is released."""
    hold_max_lag: timedelta = timedelta(days=7)
    """Maximum MAX LAG of a hold."""
    hold_grace: timedelta = timedelta(minutes=10)
    """How long after a start the time that the server was down does not count toward MAX LAG."""
    max_result_bytes: int = 256 << 20
    """Maximum size of the result of a pull query, in memory."""
    request_timeout: timedelta = timedelta(seconds=60)
    """How long a statement waits for the coordinator."""
    transaction_idle: timedelta = timedelta(seconds=60)
    """Idle timeout of a transaction."""
    outbox_bytes: int = 1 << 30
    """How much may be pending for the sink topic of one query, approximately; beyond that the query waits."""
    transaction_rows: int = 50_000
    """Maximum number of records in one Kafka transaction."""
    store_memory: int
    """Memory limit of the embedded store, in bytes."""
    rebuild: bool = False
    """Set the store aside and rebuild it from Kafka."""
    republish: bool = False
    """Continue with a store that is older than what it has published to sink topics."""
    java_home: Path | None = None
    ivy_settings: Path | None = None
    """Ivy settings file, for machines that use a private Maven registry."""

    def at_kafka(self, bootstrap: str) -> "Settings":
        """These settings with `bootstrap` as the Kafka cluster, once the embedded broker has its port."""
        return replace(self, kafka=bootstrap)

    @property
    def is_local(self) -> bool:
        """Whether only programs on this machine reach the server."""
        try:
            return self.http_host == "localhost" or ip_address(self.http_host).is_loopback
        except ValueError:
            return False

    @property
    def command_topic(self) -> TopicName:
        return self.internal_topic("command_topic")

    @property
    def lease_topic(self) -> TopicName:
        return self.internal_topic("lease")

    @property
    def marker_topic(self) -> TopicName:
        return self.internal_topic("outbox_markers")

    @property
    def processing_log_topic(self) -> TopicName:
        return self.internal_topic("processing_log")

    def internal_topic(self, name: str) -> TopicName:
        return TopicName(f"_holdfast_{self.service_id}_{name}")


Reader = Callable[[object], object]
"""Converts a value from a source to the setting's type; a ValueError says what was expected."""


def text(value: object) -> str:
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise ValueError("a non-empty string")


def service(value: object) -> str:
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9._-]{1,100}", value):
        return value
    raise ValueError("up to 100 letters, digits, '.', '_' and '-', as in topic names")


def path(value: object) -> Path:
    if isinstance(value, Path):
        return value.expanduser().absolute()
    return Path(text(value)).expanduser().absolute()


def flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if isinstance(value, str) and value.lower() in known:
        return known[value.lower()]
    raise ValueError("true or false")


def is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def integer(minimum: int, maximum: int | None = None) -> Reader:
    limits = f"from {minimum} to {maximum}" if maximum is not None else f"of at least {minimum}"
    expected = f"a whole number {limits}"

    def read(value: object) -> int:
        if isinstance(value, str) and re.fullmatch(r"-?[0-9][0-9_]*", value.strip()):
            value = int(value)
        if is_integer(value) and minimum <= value and (maximum is None or value <= maximum):
            return value
        raise ValueError(expected)

    return read


SIZE_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def size(value: object) -> int:
    if is_integer(value) and value > 0:
        return value
    if isinstance(value, str) and (match := re.fullmatch(r"([1-9][0-9]*)\s*([KMGT]?)(?:I?B)?", value.strip().upper())):
        return int(match[1]) * SIZE_UNITS[match[2]]
    raise ValueError('a number of bytes, such as "2GB"')


DURATION_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "min": "minutes", "h": "hours", "d": "days"}


def duration(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if is_integer(value) and value > 0:
        return timedelta(seconds=value)
    if isinstance(value, str) and (match := re.fullmatch(r"([1-9][0-9]*)\s*(ms|s|m|min|h|d)?", value.strip().lower())):
        return timedelta(**{DURATION_UNITS[match[2] or "s"]: int(match[1])})
    raise ValueError('a duration, such as "90s", "30min" or "3h"')


def addresses(value: object) -> str:
    listed = [address.strip() for address in text(value).split(",")]
    if all(re.fullmatch(r"(?:\w+://)?(?:\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):[0-9]{1,5}", address) for address in listed):
        return ",".join(listed)
    raise ValueError('host:port, or a comma-separated list, such as "kafka1:9092,kafka2:9092"')


def properties(value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError("a table of properties")
    return dict(flatten(value))


def names(value: object) -> tuple[str, ...]:
    found = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
    if isinstance(found, list | tuple) and all(isinstance(name, str) and name for name in found):
        return tuple(found)
    raise ValueError("host names, separated by commas")


SETTINGS: Mapping[str, Reader] = {
    "data_dir": path,
    "jar_dir": path,
    "service_id": service,
    "kafka": addresses,
    "kafka_properties": properties,
    "broker_port": integer(0, 65535),
    "internal_replication": integer(1, 32767),
    "http_host": text,
    "http_port": integer(0, 65535),
    "http_names": names,
    "insecure": flag,
    "python_functions": flag,
    "topic_deletion": flag,
    "spark_master": text,
    "spark_properties": properties,
    "max_records_per_tick": integer(1),
    "max_bytes_per_tick": size,
    "small_tick_records": integer(0),
    "query_timeout": duration,
    "stop_timeout": duration,
    "max_push_queries": integer(1),
    "subscribe_max_lag": duration,
    "max_result_bytes": size,
    "request_timeout": duration,
    "transaction_idle": duration,
    "hold_max_lag": duration,
    "hold_grace": duration,
    "transaction_rows": integer(1),
    "outbox_bytes": size,
    "store_memory": size,
    "rebuild": flag,
    "republish": flag,
    "java_home": path,
    "ivy_settings": path,
}
"""Every setting and how its value is converted."""

SECTIONS = {"kafka": "kafka_properties", "spark": "spark_properties"}
OTHER_VARIABLES = frozenset({"HOLDFAST_CONFIG", "HOLDFAST_CONFORMANCE_DIR", "HOLDFAST_CRASH", "HOLDFAST_CLOCK"})


def load(
    flags: Mapping[str, object] = MappingProxyType({}),
    *,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """The settings of this process. A flag that is None is not set; a named `file` must exist."""
    environment = os.environ if environment is None else environment
    values: dict[str, Any] = {"kafka_properties": {}, "spark_properties": {}}
    values |= {"java_home": Path(environment["JAVA_HOME"])} if environment.get("JAVA_HOME") else {}
    if file is None and environment.get("HOLDFAST_CONFIG"):
        file = Path(environment["HOLDFAST_CONFIG"])
    for name, value, source in (*from_file(file), *from_environment(environment), *from_flags(flags)):
        set_value(values, name, value, source)
    data_home = xdg_folder(environment, "XDG_DATA_HOME", ".local/share")
    values.setdefault("data_dir", data_home / values.get("service_id", DEFAULT_SERVICE))
    values.setdefault("jar_dir", xdg_folder(environment, "XDG_CACHE_HOME", ".cache") / "jars")
    values.setdefault("store_memory", default_store_memory())
    settings = Settings(**values)
    if settings.kafka is None and settings.kafka_properties:
        raise ConfigError(
            f'the Kafka property "{next(iter(settings.kafka_properties))}" is set without a Kafka cluster',
            detail="The embedded broker does not accept properties.",
            hint="Set kafka (--kafka host:port) to the cluster's bootstrap servers.",
        )
    if not settings.is_local and not settings.insecure:
        raise ConfigError(
            f'the server would be reachable from other machines at "{settings.http_host}"',
            detail="It has neither authentication nor TLS: whoever reaches its port can read and change everything.",
            hint="Leave http_host out, or add --insecure if the network protects the port.",
        )
    return settings


def set_value(values: dict[str, Any], name: str, value: object, source: str) -> None:
    """Set a value, overriding that of an earlier source."""
    if name not in SETTINGS:
        raise ConfigError(
            f'setting "{name}" does not exist',
            detail=f"It is set in {source}.",
            hint=property_hint(name) or nearest(name, list(SETTINGS), plural="settings"),
        )
    try:
        converted = SETTINGS[name](value)
    except ValueError as cause:
        shown = "" if name in SECTIONS.values() else f", not {value!r}"
        raise ConfigError(f'setting "{name}" must be {cause}{shown}', detail=f"It is set in {source}.") from None
    if isinstance(converted, dict):
        if name == "spark_properties":
            converted = {key if key.startswith("spark.") else f"spark.{key}": text for key, text in converted.items()}
        if name == "kafka_properties" and "bootstrap.servers" in converted:
            set_value(values, "kafka", converted.pop("bootstrap.servers"), source)
        values[name] |= converted
    else:
        values[name] = converted


def property_hint(name: str) -> str | None:
    """How to set a property of Kafka or Spark that was written like a setting."""
    section, _, rest = name.partition("_")
    if section not in SECTIONS or not rest or get_close_matches(name, SETTINGS, cutoff=0.8):
        return None
    dotted = rest.replace("_", ".")
    return f"To set a {section.capitalize()} property, write -s {section}.{dotted}=…, or {dotted} under [{section}]."


SettingValues = Iterator[tuple[str, object, str]]
"""Name, value and source of each setting."""


def from_file(file: Path | None) -> SettingValues:
    chosen = file or Path(DEFAULT_FILE)
    source = f'the file "{chosen}"'
    try:
        document = tomllib.loads(chosen.read_text("utf-8"))
    except FileNotFoundError:
        if file is not None:
            raise ConfigError(f"{source} does not exist") from None
        return
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as cause:
        raise ConfigError(f"{source} cannot be read", detail=f"{cause}.") from None
    for name, value in document.items():
        if name in SECTIONS and isinstance(value, dict):
            if name == "spark" and "master" in value:
                yield "spark_master", value.pop("master"), f"[spark] of {source}"
            yield SECTIONS[name], value, f"[{name}] of {source}"
        else:
            yield name, value, source


def spark_submit_options() -> str:
    """Options that the user has set for Spark's JVM, in the variable that Spark itself reads."""
    return os.environ.get(SPARK_SUBMIT_OPTIONS, "")


def from_environment(environment: Mapping[str, str]) -> SettingValues:
    for variable in sorted(environment):
        if not variable.startswith(PREFIX) or variable in OTHER_VARIABLES:
            continue
        name, source = variable.removeprefix(PREFIX).lower(), f"the environment variable {variable}"
        section, _, rest = name.partition("_")
        if name not in SETTINGS and section in SECTIONS and rest:
            yield SECTIONS[section], {rest.replace("_", "."): environment[variable]}, source
        else:
            yield name, environment[variable], source


def from_flags(flags: Mapping[str, object]) -> SettingValues:
    for name, value in flags.items():
        if value is not None:
            yield name, value, f"the flag --{name.replace('_', '-')}"


def flatten(table: Mapping[Any, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Properties with dotted names and string values: TOML parses `a.b = 1` as a table in a table."""
    for name, value in table.items():
        match value:
            case Mapping():
                yield from flatten(value, f"{prefix}{name}.")
            case bool():
                yield f"{prefix}{name}", str(value).lower()
            case str() | int() | float():
                yield f"{prefix}{name}", str(value)
            case _:
                raise ValueError(f'a table of strings, numbers and booleans ("{prefix}{name}" is none of these)')


def xdg_folder(environment: Mapping[str, str], variable: str, default: str) -> Path:
    """Our subfolder of an XDG base folder. A relative path is ignored, as the XDG specification requires."""
    base = Path(environment.get(variable, ""))
    return (base if base.is_absolute() else Path.home() / default) / "holdfast"


def history_file(environment: Mapping[str, str] | None = None) -> Path:
    """The shell's history file."""
    environment = os.environ if environment is None else environment
    return xdg_folder(environment, "XDG_STATE_HOME", ".local/state") / "history"


def armed_crash_point(environment: Mapping[str, str] | None = None) -> str | None:
    """The crash point that a test has armed, see `holdfast.crash`."""
    return (os.environ if environment is None else environment).get("HOLDFAST_CRASH")


def stepped_clock_file(environment: Mapping[str, str] | None = None) -> Path | None:
    """The file by which a test steps the server's clock, see `holdfast.wall_clock.SteppedClock`."""
    file = (os.environ if environment is None else environment).get("HOLDFAST_CLOCK")
    return Path(file) if file else None


def default_store_memory() -> int:
    """A quarter of the machine's memory: Spark, the broker and the page cache need the rest."""
    return max(1 << 30, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4)
