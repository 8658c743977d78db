"""Python values as SQL constants."""

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from holdfast.errors import TypeMismatch
from holdfast.names import literal


def constant(value: Any) -> str:
    """A constant with this value; a comparison parses dates and times from text."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case float() if math.isfinite(value):
            text = repr(value)  # Without an exponent, it would be a DECIMAL.
            return text if "e" in text else f"{text}E0"
        case Decimal() if value.is_finite():
            text = format(value, "f")
            return text if "." in text else f"{text}.0"
        case str():
            return literal(value)
        case bytes():
            return f"TO_BYTES({literal(value.hex())}, 'hex')"
        case datetime():
            utc = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            return literal(utc.isoformat(timespec="milliseconds"))
        case date():
            return literal(value.isoformat())
        case time():
            return literal(value.isoformat(timespec="milliseconds"))
        case _:
            raise TypeMismatch(
                f"{value!r} cannot be a constant of SQL",
                hint="Constants are finite numbers, strings, bytes, booleans, dates and times.",
            )
