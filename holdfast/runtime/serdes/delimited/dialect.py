"""The types that DELIMITED supports, and its delimiter."""

from collections.abc import Sequence

from holdfast.errors import NotSupported
from holdfast.runtime.plan.formats import FormatInfo
from holdfast.runtime.plan.optional import value_of
from holdfast.types import Column, SqlType, is_scalar

NAMED = {"TAB": "\t", "SPACE": " "}
UNUSABLE = '"\r\n'


def fits(type_: SqlType) -> bool:
    return is_scalar(type_)


def check(columns: Sequence[Column], info: FormatInfo) -> None:
    """Refuse an invalid delimiter, and columns of unsupported types."""
    delimiter(info)
    for column in columns:
        if not fits(column.type):
            raise NotSupported(
                f'the DELIMITED format cannot hold column "{column.name}" of type {column.type}',
                hint="It does not support ARRAY, MAP or STRUCT. Use another format, such as JSON.",
            )


def delimiter(info: FormatInfo) -> str:
    properties = value_of(info.properties)
    text = (value_of(properties.delimiter) if properties else None) or ","
    character = NAMED.get(text, text)
    if len(character) != 1 or character in UNUSABLE:
        raise NotSupported(
            f"the DELIMITED format cannot use delimiter {text!r}", hint="Use one character, or TAB or SPACE."
        )
    return character
