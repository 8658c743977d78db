"""The properties of a session that SET accepts, and their allowed values."""

from collections.abc import Mapping, Sequence

from holdfast.errors import BindError, Position, UnknownProperty
from holdfast.sql.properties.ignored import is_ignored

ANY: Sequence[str] = ()
FLAG = ("true", "false")
NUMBER = ("a number",)
ANY_VALUE_FORMAT = "holdfast.any.value.format"
"""Whether GROUP BY and JOIN also read sources with the value format KAFKA, which ksqlDB refuses."""
KNOWN: Mapping[str, Sequence[str]] = {
    ANY_VALUE_FORMAT: FLAG,
    "auto.offset.reset": ("earliest", "latest"),
    "holdfast.progress": FLAG,
    "holdfast.refused.records": ("fail", "skip"),
    "holdfast.tombstones": (*FLAG, "nulls"),
    "ksql.cast.strings.preserve.nulls": ("true",),
    "ksql.fail.on.deserialization.error": ("false",),
    "ksql.new.query.planner.enabled": FLAG,
    "ksql.output.topic.name.prefix": ANY,
    "ksql.query.push.v2.enabled": FLAG,
    "ksql.persistence.default.format.key": ANY,
    "ksql.persistence.default.format.value": ANY,
    "ksql.persistence.wrap.single.values": FLAG,
    "ksql.functions.collect_list.limit": NUMBER,
    "ksql.functions.collect_set.limit": NUMBER,
    "ksql.functions.substring.legacy.args": ("false",),
    "ksql.timestamp.throw.on.invalid": ("false",),
    "use.exact.numeric.comparison": ("false",),
}
"""Every property and its allowed values; an empty sequence allows any text."""

STORED = (
    "auto.offset.reset",
    "holdfast.refused.records",
    "ksql.functions.collect_list.limit",
    "ksql.functions.collect_set.limit",
)
"""Properties that change what a query does; they are stored with its plan."""

PREFIXES = ("ksql.streams.", "consumer.")
"""Prefixes of the properties of Kafka Streams and of its consumers."""

TRANSACTION = "holdfast.transaction"
"""The transaction of a request: BEGIN returns its id, and a client sends it with the statements that follow."""
OBJECTS = "holdfast.objects"
"""The ids of the objects that a push query has read, from the header of its response: it resumes only on these."""


def takes_any_format(properties: Mapping[str, str]) -> bool:
    return properties.get(ANY_VALUE_FORMAT, "false").lower() == "true"


def stored_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that are stored with a plan."""
    return {name: value for name, value in properties.items() if name in STORED}


def plain_name(name: str) -> str:
    """The name of a property without the prefix of Kafka Streams or its consumers."""
    for prefix in PREFIXES:
        name = name if is_ignored(name) else name.removeprefix(prefix)
    return name


def check_property(name: str, value: str | None, *, position: Position | None = None) -> None:
    """Refuse an unknown property or a value that is not allowed."""
    plain = plain_name(name)
    if plain in (TRANSACTION, OBJECTS) or is_ignored(plain):
        return
    if plain not in KNOWN:
        raise UnknownProperty(name, known=sorted(KNOWN), position=position)
    allowed = KNOWN[plain]
    if allowed is NUMBER and value is not None and value.isdecimal():
        return
    if value is not None and allowed and value.lower() not in allowed:
        raise BindError(
            f'property "{name}" cannot be "{value}"',
            hint=f"Allowed values are: {', '.join(allowed)}.",
            position=position,
        )
