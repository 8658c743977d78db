"""Intermediate results of the transformers."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from holdfast.errors import Position
from holdfast.runtime.expressions.transform import Name
from holdfast.sql.syntax.statements.elements import Identifier

Children = list[Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ClausePart:
    """A clause of a statement that is not complete yet."""

    name: str
    value: Any
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class Flag:
    """Optional keywords that are present: `IF EXISTS`, `CASCADE`."""

    name: str


def pick(children: Iterable[object], kind: type[T]) -> T | None:
    return next((child for child in children if isinstance(child, kind)), None)


def flags(children: Iterable[object]) -> set[str]:
    return {child.name for child in children if isinstance(child, Flag)}


def identifier(name: Name) -> Identifier:
    return Identifier(str(name), name.position)
