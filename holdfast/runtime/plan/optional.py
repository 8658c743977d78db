"""Distinguish a property that a document omits from one that it sets to null.

ksqlDB treats both alike, but a stored plan must be written back as it was read.
"""

from enum import Enum
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")


class Absent(Enum):
    """The type of `ABSENT`; an enum with one member, so that `is ABSENT` narrows types."""

    ABSENT = "ABSENT"

    def __repr__(self) -> str:
        return self.value

    def __bool__(self) -> bool:
        return False


ABSENT: Final = Absent.ABSENT

Maybe: TypeAlias = T | Absent | None
"""An optional property: a value, null, or absent."""


def value_of(value: Maybe[T]) -> T | None:
    """The value of an optional property, or None if it is null or absent."""
    return None if isinstance(value, Absent) else value
