"""The types of the properties in a plan document, each with its decoder and encoder.

Decoding checks the value and names the property at fault; encoding relies on Python's types.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import ClassVar, NoReturn, Protocol, runtime_checkable

from holdfast.errors import PlanError, nearest
from holdfast.runtime.plan.json_text import JsonValue, describe
from holdfast.runtime.plan.optional import ABSENT, Absent
from holdfast.runtime.plan.windows import Duration


@dataclass(frozen=True, slots=True)
class DocumentPath:
    """The path of a value in a document; `owner` is the tag or name of the object that has the property `name`."""

    parent: "DocumentPath | None"
    name: str | int
    owner: str
    tag: str

    @property
    def path(self) -> str:
        """The path from the root: `$.queryPlan.sources[0]`."""
        parts: list[str] = []
        path = self
        while path.parent is not None:
            parts.append(f"[{path.name}]" if isinstance(path.name, int) else f".{path.name}")
            path = path.parent
        return "$" + "".join(reversed(parts))

    @property
    def label(self) -> str:
        """The property with its owner: `property "source" of streamFilterV1`."""
        if isinstance(self.name, int) and self.parent is not None:
            return f"element {self.name} of {self.parent.label}"
        return f'property "{self.name}" of {self.owner}' if self.owner else "plan"

    def member(self, name: str, *, owner: str, tag: str | None = None) -> "DocumentPath":
        return DocumentPath(self, name, owner, tag or self.tag)

    def element(self, index: int) -> "DocumentPath":
        return DocumentPath(self, index, self.owner, self.tag)

    def fail(self, problem: str, *, hint: str | None = None) -> NoReturn:
        """Reject the document; `problem` completes the sentence that the property's label begins."""
        inside = f", in {self.tag}" if self.tag and self.tag != self.owner else ""
        raise PlanError(f"{self.label} {problem}", detail=f"At {self.path}{inside}.", hint=hint)


ROOT = DocumentPath(None, "", "", "")


class PropertyType(ABC):
    """How values of one type are decoded and encoded."""

    @abstractmethod
    def decode(self, value: JsonValue, path: DocumentPath) -> object: ...

    @abstractmethod
    def encode(self, value: object) -> JsonValue: ...


class TextType(PropertyType):
    """A string."""

    def decode(self, value: JsonValue, path: DocumentPath) -> str:
        if not isinstance(value, str):
            path.fail(f"must be a string, not {describe(value)}")
        return value

    def encode(self, value: object) -> JsonValue:
        assert isinstance(value, str)
        return value


class FlagType(PropertyType):
    """A boolean."""

    def decode(self, value: JsonValue, path: DocumentPath) -> bool:
        if not isinstance(value, bool):
            path.fail(f"must be a boolean, not {describe(value)}")
        return value

    def encode(self, value: object) -> JsonValue:
        assert isinstance(value, bool)
        return value


class IntegerType(PropertyType):
    """A number without a fraction."""

    def decode(self, value: JsonValue, path: DocumentPath) -> int:
        if isinstance(value, Decimal):
            path.fail(f"must be a whole number, not {value}")
        if isinstance(value, bool) or not isinstance(value, int):
            path.fail(f"must be a whole number, not {describe(value)}")
        return value

    def encode(self, value: object) -> JsonValue:
        assert isinstance(value, int)
        return value


class SecondsType(PropertyType):
    """A duration as a number of seconds. The scale survives: `10.000000000` is not written back as `10`."""

    def decode(self, value: JsonValue, path: DocumentPath) -> Duration:
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            path.fail(f"must be a number of seconds, not {describe(value)}")
        try:
            return Duration(Decimal(value))
        except ValueError as error:
            path.fail(f"{error}, not {value}")

    def encode(self, value: object) -> JsonValue:
        assert isinstance(value, Duration)
        return value.seconds


@dataclass(frozen=True, slots=True)
class ChoiceType(PropertyType):
    """One of the names of an enum."""

    names: type[StrEnum]

    def decode(self, value: JsonValue, path: DocumentPath) -> StrEnum:
        text = TEXT.decode(value, path)
        try:
            return self.names(text)
        except ValueError:
            path.fail(f'cannot be "{text}"', hint=nearest(text, list(self.names), plural="values"))

    def encode(self, value: object) -> JsonValue:
        assert isinstance(value, self.names)
        return value.value


@dataclass(frozen=True, slots=True)
class ListType(PropertyType):
    """A list whose elements have one type."""

    element: PropertyType

    def decode(self, value: JsonValue, path: DocumentPath) -> tuple[object, ...]:
        if not isinstance(value, list):
            path.fail(f"must be a list, not {describe(value)}")
        return tuple(self.element.decode(member, path.element(index)) for index, member in enumerate(value))

    def encode(self, value: object) -> JsonValue:
        assert isinstance(value, tuple)
        return [self.element.encode(member) for member in value]


@dataclass(frozen=True, slots=True)
class TextOrType(PropertyType):
    """A string, or the type that later releases write instead."""

    text: PropertyType
    other: PropertyType

    def decode(self, value: JsonValue, path: DocumentPath) -> object:
        return (self.text if isinstance(value, str) else self.other).decode(value, path)

    def encode(self, value: object) -> JsonValue:
        return (self.text if isinstance(value, str) else self.other).encode(value)


@dataclass(frozen=True, slots=True)
class WireProperty:
    """One row of a shape. An optional property may be absent or null; a required one is neither."""

    name: str
    value_type: PropertyType
    required: bool
    field: str


@dataclass(frozen=True, slots=True)
class ObjectShape(PropertyType):
    """An object with known properties, and the class it becomes."""

    name: str
    type: Callable[..., object]
    properties: tuple[WireProperty, ...]
    tag_name: str | None = None

    def decode(self, value: JsonValue, path: DocumentPath) -> object:
        if not isinstance(value, dict):
            path.fail(f"must be an object, not {describe(value)}")
        tag = self.name if self.tag_name else None
        self._refuse_unknown(value, path, tag)
        fields: dict[str, object] = {}
        for row in self.properties:
            member = value.get(row.name, ABSENT)
            at = path.member(row.name, owner=self.name, tag=tag)
            if isinstance(member, Absent):
                if row.required:
                    at.fail("is missing")
            elif member is None:
                if row.required:
                    at.fail("cannot be null")
                fields[row.field] = None
            else:
                fields[row.field] = row.value_type.decode(member, at)
        try:
            return self.type(**fields)
        except ValueError as error:
            raise PlanError(f"{self.name} {error}", detail=f"At {path.path}.") from None

    def encode(self, value: object) -> dict[str, JsonValue]:
        members: dict[str, JsonValue] = {self.tag_name: self.name} if self.tag_name else {}
        for row in self.properties:
            member = getattr(value, row.field)
            if member is not ABSENT:
                members[row.name] = None if member is None and not row.required else row.value_type.encode(member)
        return members

    def _refuse_unknown(self, value: dict[str, JsonValue], path: DocumentPath, tag: str | None) -> None:
        known = [row.name for row in self.properties]
        for name in value:
            if name not in known and name != self.tag_name:
                at = path.member(name, owner=self.name, tag=tag)
                at.fail("is unknown", hint=nearest(name, known, plural="properties"))


@runtime_checkable
class HasTag(Protocol):
    """A class of the vocabulary that carries its wire tag."""

    TAG: ClassVar[str]


@dataclass(frozen=True, slots=True)
class TaggedType(PropertyType):
    """An object whose property `tag_name` selects one of several shapes."""

    kind: str
    tag_name: str
    shapes: Callable[[], Mapping[str, ObjectShape]]

    def decode(self, value: JsonValue, path: DocumentPath) -> object:
        if not isinstance(value, dict):
            path.fail(f"must be an object, not {describe(value)}")
        at = path.member(self.tag_name, owner=f"a {self.kind}")
        if self.tag_name not in value:
            at.fail("is missing")
        tag = TEXT.decode(value[self.tag_name], at)
        shapes = self.shapes()
        if tag not in shapes:
            raise PlanError(
                f'{self.kind} type "{tag}" is unknown',
                detail=f"At {path.path}.",
                hint=nearest(tag, list(shapes), plural=f"{self.kind} types"),
            )
        return shapes[tag].decode(value, path)

    def encode(self, value: object) -> JsonValue:
        assert isinstance(value, HasTag)
        return self.shapes()[value.TAG].encode(value)


TEXT = TextType()
FLAG = FlagType()
INTEGER = IntegerType()
SECONDS = SecondsType()
TEXTS = ListType(TEXT)
