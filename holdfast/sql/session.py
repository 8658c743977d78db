"""The properties of a session: what SET may name, and with which values."""

from collections.abc import Mapping, Sequence

from holdfast.errors import BindError, Position, UnknownProperty
from holdfast.sql.foreign_properties import is_foreign

ANY: Sequence[str] = ()
FLAG = ("true", "false")
NUMBER = ("a number",)
KNOWN: Mapping[str, Sequence[str]] = {
    "auto.offset.reset": ("earliest", "latest"),
    "holdfast.progress": FLAG,
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
"""Every property and its values; no values means any text."""

KEPT = ("auto.offset.reset", "ksql.functions.collect_list.limit", "ksql.functions.collect_set.limit")
"""Properties that change what a query does later, and are kept with its plan."""

PREFIXES = ("ksql.streams.", "consumer.")
"""What may stand before the name of a property of Kafka Streams or of its consumers."""

TRANSACTION = "holdfast.transaction"
"""Which transaction a request belongs to: BEGIN says its id, and a client sends it with what follows."""


def plain_name(name: str) -> str:
    """The one name under which a property is kept, however it is written."""
    for prefix in PREFIXES:
        name = name if is_foreign(name) else name.removeprefix(prefix)
    return name


def check_property(name: str, value: str | None, *, position: Position | None = None) -> None:
    """Refuse a property that means nothing, or a value that it does not take."""
    plain = plain_name(name)
    if plain == TRANSACTION or is_foreign(plain):
        return
    if plain not in KNOWN:
        raise UnknownProperty(name, known=sorted(KNOWN), position=position)
    allowed = KNOWN[plain]
    if allowed is NUMBER and value is not None and value.isdecimal():
        return
    if value is not None and allowed and value.lower() not in allowed:
        raise BindError(
            f'property "{name}" cannot be "{value}"', hint=f"It is one of: {', '.join(allowed)}.", position=position
        )
