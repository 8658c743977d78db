"""What DELIMITED can hold, and what separates its fields."""

from collections.abc import Sequence

from holdfast.errors import NotSupported
from holdfast.runtime.plan.formats import FormatInfo
from holdfast.runtime.plan.presence import given
from holdfast.types import Column, is_scalar

NAMED = {"TAB": "\t", "SPACE": " "}
UNUSABLE = '"\r\n'


def check(columns: Sequence[Column], info: FormatInfo) -> None:
    """Refuse what the DELIMITED format cannot hold."""
    delimiter(info)
    for column in columns:
        if not is_scalar(column.type):
            raise NotSupported(
                f'the DELIMITED format cannot hold column "{column.name}" of type {column.type}',
                hint="It holds no ARRAY, MAP or STRUCT. Use another format, such as JSON.",
            )


def delimiter(info: FormatInfo) -> str:
    properties = given(info.properties)
    text = (given(properties.delimiter) if properties else None) or ","
    character = NAMED.get(text, text)
    if len(character) != 1 or character in UNUSABLE:
        raise NotSupported(
            f"the DELIMITED format cannot have delimiter {text!r}", hint="Use one character, or TAB or SPACE."
        )
    return character
