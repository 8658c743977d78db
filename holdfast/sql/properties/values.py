"""The values of properties in a WITH clause: text, whole numbers and flags."""

import re

from holdfast.errors import BindError
from holdfast.sql.syntax.statements import Property

NUMBER_HINTS = {
    "PARTITIONS": "Leave it out to use the number of the query's source, or of an existing topic.",
    "REPLICAS": "Leave it out to use Kafka's default.",
    "RETENTION_MS": "Write -1 to retain records forever.",
}
INTEGER = re.compile(r"\d{1,18}")


def wrong_value(item: Property, wanted: str, hint: str | None = None) -> BindError:
    shown = f"'{item.value}'" if isinstance(item.value, str) else str(item.value).upper()
    return BindError(f"property {item.name} must be {wanted}, not {shown}", hint=hint, position=item.position)


def text_of(item: Property | None) -> str | None:
    if item is None:
        return None
    if not isinstance(item.value, str) or not item.value:
        raise wrong_value(item, "a non-empty string")
    return item.value


def number_of(item: Property | None, *, minimum: int) -> int | None:
    if item is None:
        return None
    value = item.value
    if isinstance(value, str) and INTEGER.fullmatch(value.removeprefix("-")):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise wrong_value(item, f"a whole number of at least {minimum}", hint=NUMBER_HINTS.get(item.name))
    return value


def flag_of(item: Property | None) -> bool | None:
    if item is None:
        return None
    value = item.value.lower() == "true" if item.value in ("true", "false", "TRUE", "FALSE") else item.value
    if not isinstance(value, bool):
        raise wrong_value(item, "TRUE or FALSE")
    return value
