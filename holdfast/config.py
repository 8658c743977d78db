"""Settings: what a server can be told, and the only reader of the environment and of configuration files.

Each source overrides the one before it: defaults, the TOML file, environment variables `HOLDFAST_*`, flags. A name
that is not a setting, and a value of the wrong kind, are errors that say where they stand.

In the file, properties of Kafka's and Spark's own have a table each, under the names their documentation gives:

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
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeGuard

from holdfast.errors import ConfigError, nearest
from holdfast.names import ServiceId, TopicName

DEFAULT_FILE = "holdfast.toml"
DEFAULT_SERVER = "http://127.0.0.1:8088"
"""Where a client finds the server that was started with no settings."""
DEFAULT_SERVICE = ServiceId("default")
PREFIX = "HOLDFAST_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything a server is told at its start."""

    data_dir: Path
    """The store, the embedded broker's data and the logs; one server at a time."""
    jar_dir: Path
    """Where fetched jars are kept; shared by all servers of a user."""
    service_id: ServiceId = DEFAULT_SERVICE
    """Names the service's internal topics: servers with different ids share a Kafka cluster and nothing else."""
    kafka: str | None = None
    """Bootstrap servers; None starts the embedded broker."""
    kafka_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Properties of every Kafka client, under librdkafka's names or Java's. May hold passwords."""
    broker_port: int = 0
    """The embedded broker's port; 0 chooses one and keeps it in the data folder."""
    internal_replication: int | None = None
    """Replication of internal topics; None leaves it to the brokers."""
    http_host: str = "127.0.0.1"
    http_port: int = 8088
    spark_master: str = "local[*]"
    spark_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    max_records_per_tick: int = 1_000_000
    max_bytes_per_tick: int = 256 << 20
    """About how many bytes of keys and values one tick reads at the most."""
    small_tick_records: int = 5_000
    """Ticks up to this many records are read by the server's own consumer, larger ones by Spark."""
    max_push_queries: int = 1_000
    """More push queries than this are refused."""
    subscribe_max_lag: timedelta = timedelta(hours=3)
    """A subscriber that is further behind than this is ended: history is not kept for it any longer."""
    hold_max_lag: timedelta = timedelta(days=7)
    """The greatest MAX LAG that a hold may have."""
    transaction_idle: timedelta = timedelta(seconds=60)
    """A transaction of which nothing is asked for so long ends."""
    transaction_rows: int = 50_000
    """At most this many records are published in one Kafka transaction."""
    store_memory: int
    """How many bytes the embedded store may use."""
    rebuild: bool = False
    """Give up the store and build it again from Kafka."""
    republish: bool = False
    """Go on with a store that is older than what sink topics have of it."""
    java_home: Path | None = None
    ivy_settings: Path | None = None
    """An Ivy settings file, for a machine whose Maven registry is not the public one."""

    def at_kafka(self, bootstrap: str) -> "Settings":
        """These settings with clients that go to `bootstrap`, as once the embedded broker has its port."""
        return replace(self, kafka=bootstrap)

    @property
    def command_topic(self) -> TopicName:
        return self.internal_topic("command_topic")

    @property
    def lease_topic(self) -> TopicName:
        return self.internal_topic("lease")

    @property
    def marker_topic(self) -> TopicName:
        return self.internal_topic("markers")

    @property
    def processing_log_topic(self) -> TopicName:
        return self.internal_topic("processing_log")

    def internal_topic(self, name: str) -> TopicName:
        return TopicName(f"_holdfast_{self.service_id}_{name}")


Reader = Callable[[object], object]
"""Gives a setting's value from what a source holds; a ValueError says what was expected."""


def text(value: object) -> str:
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise ValueError("a text")


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


def is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def whole(least: int, most: int | None = None) -> Reader:
    expected = f"a whole number from {least} to {most}" if most is not None else f"a whole number of at least {least}"

    def read(value: object) -> int:
        if isinstance(value, str) and re.fullmatch(r"-?[0-9][0-9_]*", value.strip()):
            value = int(value)
        if is_whole(value) and least <= value and (most is None or value <= most):
            return value
        raise ValueError(expected)

    return read


UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def size(value: object) -> int:
    if is_whole(value) and value > 0:
        return value
    if isinstance(value, str) and (read := re.fullmatch(r"([1-9][0-9]*)\s*([KMGT]?)(?:I?B)?", value.strip().upper())):
        return int(read[1]) * UNITS[read[2]]
    raise ValueError('a number of bytes, such as "2GB"')


SPANS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "min": "minutes", "h": "hours", "d": "days"}


def duration(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if is_whole(value) and value > 0:
        return timedelta(seconds=value)
    read = re.fullmatch(r"([1-9][0-9]*)\s*(ms|s|m|min|h|d)?", value.strip().lower()) if isinstance(value, str) else None
    if read is not None:
        return timedelta(**{SPANS[read[2] or "s"]: int(read[1])})
    raise ValueError('a duration, such as "90s", "30min" or "3h"')


def addresses(value: object) -> str:
    listed = [address.strip() for address in text(value).split(",")]
    if all(re.fullmatch(r"(?:\w+://)?(?:\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):[0-9]{1,5}", address) for address in listed):
        return ",".join(listed)
    raise ValueError('host:port, or several with commas between, such as "kafka1:9092,kafka2:9092"')


def properties(value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError("a table of properties")
    return dict(flatten(value))


SETTINGS: Mapping[str, Reader] = {
    "data_dir": path,
    "jar_dir": path,
    "service_id": service,
    "kafka": addresses,
    "kafka_properties": properties,
    "broker_port": whole(0, 65535),
    "internal_replication": whole(1, 32767),
    "http_host": text,
    "http_port": whole(0, 65535),
    "spark_master": text,
    "spark_properties": properties,
    "max_records_per_tick": whole(1),
    "max_bytes_per_tick": size,
    "small_tick_records": whole(0),
    "max_push_queries": whole(1),
    "subscribe_max_lag": duration,
    "transaction_idle": duration,
    "hold_max_lag": duration,
    "transaction_rows": whole(1),
    "store_memory": size,
    "rebuild": flag,
    "republish": flag,
    "java_home": path,
    "ivy_settings": path,
}
"""Every setting and how its value is read."""

SECTIONS = {"kafka": "kafka_properties", "spark": "spark_properties"}
OTHER_VARIABLES = frozenset({"HOLDFAST_CONFIG", "HOLDFAST_CONFORMANCE_DIR", "HOLDFAST_CRASH"})


def load(
    flags: Mapping[str, object] = MappingProxyType({}),
    *,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """The settings of this process. A flag of None was not given; `file` must exist when it is named."""
    environment = os.environ if environment is None else environment
    values: dict[str, Any] = {"kafka_properties": {}, "spark_properties": {}}
    values |= {"java_home": Path(environment["JAVA_HOME"])} if environment.get("JAVA_HOME") else {}
    if file is None and environment.get("HOLDFAST_CONFIG"):
        file = Path(environment["HOLDFAST_CONFIG"])
    for name, value, place in (*from_file(file), *from_environment(environment), *from_flags(flags)):
        take(values, name, value, place)
    data_home = base(environment, "XDG_DATA_HOME", ".local/share")
    values.setdefault("data_dir", data_home / values.get("service_id", DEFAULT_SERVICE))
    values.setdefault("jar_dir", base(environment, "XDG_CACHE_HOME", ".cache") / "jars")
    values.setdefault("store_memory", a_quarter_of_memory())
    settings = Settings(**values)
    if settings.kafka is None and settings.kafka_properties:
        raise ConfigError(
            f'"{next(iter(settings.kafka_properties))}" is set, but no Kafka to use it with',
            detail="The embedded broker takes no properties.",
            hint="Set kafka (--kafka host:port) to the cluster's bootstrap servers.",
        )
    return settings


def take(values: dict[str, Any], name: str, value: object, place: str) -> None:
    """Put a value in its place, over what an earlier source said."""
    if name not in SETTINGS:
        raise ConfigError(
            f'setting "{name}" does not exist',
            detail=f"It is in {place}.",
            hint=property_hint(name) or nearest(name, list(SETTINGS), plural="settings"),
        )
    try:
        read = SETTINGS[name](value)
    except ValueError as cause:
        shown = "" if name in SECTIONS.values() else f", not {value!r}"
        raise ConfigError(f'setting "{name}" must be {cause}{shown}', detail=f"It is in {place}.") from None
    if isinstance(read, dict):
        if name == "spark_properties":
            read = {key if key.startswith("spark.") else f"spark.{key}": told for key, told in read.items()}
        if name == "kafka_properties" and "bootstrap.servers" in read:
            take(values, "kafka", read.pop("bootstrap.servers"), place)
        values[name] |= read
    else:
        values[name] = read


def property_hint(name: str) -> str | None:
    """How to write a property of Kafka's or Spark's own that was taken for a setting."""
    section, _, rest = name.partition("_")
    if section not in SECTIONS or not rest or get_close_matches(name, SETTINGS, cutoff=0.8):
        return None
    dotted = rest.replace("_", ".")
    return f"For the property of {section.capitalize()}, write -s {section}.{dotted}=…, or {dotted} under [{section}]."


Found = Iterator[tuple[str, object, str]]
"""Name, value and place of each setting in a source."""


def from_file(file: Path | None) -> Found:
    chosen = file or Path(DEFAULT_FILE)
    place = f'the file "{chosen}"'
    try:
        document = tomllib.loads(chosen.read_text("utf-8"))
    except FileNotFoundError:
        if file is not None:
            raise ConfigError(f"{place} does not exist") from None
        return
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as cause:
        raise ConfigError(f"{place} cannot be read", detail=f"{cause}.") from None
    for name, value in document.items():
        if name in SECTIONS and isinstance(value, dict):
            if name == "spark" and "master" in value:
                yield "spark_master", value.pop("master"), f"[spark] of {place}"
            yield SECTIONS[name], value, f"[{name}] of {place}"
        else:
            yield name, value, place


def from_environment(environment: Mapping[str, str]) -> Found:
    for variable in sorted(environment):
        if not variable.startswith(PREFIX) or variable in OTHER_VARIABLES:
            continue
        name, place = variable.removeprefix(PREFIX).lower(), f"the environment variable {variable}"
        section, _, rest = name.partition("_")
        if name not in SETTINGS and section in SECTIONS and rest:
            yield SECTIONS[section], {rest.replace("_", "."): environment[variable]}, place
        else:
            yield name, environment[variable], place


def from_flags(flags: Mapping[str, object]) -> Found:
    for name, value in flags.items():
        if value is not None:
            yield name, value, f"the flag --{name.replace('_', '-')}"


def flatten(table: Mapping[Any, object], before: str = "") -> Iterator[tuple[str, str]]:
    """TOML reads `a.b = 1` as a table in a table; properties are flat, and their values text."""
    for name, value in table.items():
        match value:
            case Mapping():
                yield from flatten(value, f"{before}{name}.")
            case bool():
                yield f"{before}{name}", str(value).lower()
            case str() | int() | float():
                yield f"{before}{name}", str(value)
            case _:
                raise ValueError(f'a table of properties with plain values ("{before}{name}" has none)')


def base(environment: Mapping[str, str], variable: str, otherwise: str) -> Path:
    """A folder of ours below one that the XDG convention names; a relative one is to be ignored, it says."""
    told = Path(environment.get(variable, ""))
    return (told if told.is_absolute() else Path.home() / otherwise) / "holdfast"


def history_file(environment: Mapping[str, str] | None = None) -> Path:
    """Where the shell keeps what was typed."""
    return base(os.environ if environment is None else environment, "XDG_STATE_HOME", ".local/state") / "history"


def a_quarter_of_memory() -> int:
    """The store's share: the machine's memory is also Spark's, the broker's and the page cache's."""
    return max(1 << 30, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4)
