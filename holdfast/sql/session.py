"""The properties of a session: what SET may name, and with which values."""

from collections.abc import Mapping, Sequence

from holdfast.errors import BindError, Position, UnknownProperty

ANY: Sequence[str] = ()
FLAG = ("true", "false")
KNOWN: Mapping[str, Sequence[str]] = {
    "auto.offset.reset": ("earliest", "latest"),
    "holdfast.progress": FLAG,
    "holdfast.tombstones": (*FLAG, "nulls"),
    "ksql.query.push.v2.enabled": FLAG,
    "ksql.persistence.default.format.key": ANY,
    "ksql.persistence.default.format.value": ANY,
    "ksql.persistence.wrap.single.values": FLAG,
}
"""Every property and its values; no values means any text."""


def check_property(name: str, value: str | None, *, position: Position | None = None) -> None:
    """Refuse a property that means nothing, or a value that it does not take."""
    plain = name.removeprefix("ksql.streams.")
    if plain not in KNOWN:
        raise UnknownProperty(name, known=sorted(KNOWN), position=position)
    allowed = KNOWN[plain]
    if value is not None and allowed and value.lower() not in allowed:
        raise BindError(
            f'property "{name}" cannot be "{value}"', hint=f"It is one of: {', '.join(allowed)}.", position=position
        )
