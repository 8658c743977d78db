"""The kinds of property that a plan document has, each with both directions of its translation.

A form checks what it decodes and names the property at fault; what it encodes, the types have checked.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import ClassVar, NoReturn, Protocol, runtime_checkable

from holdfast.errors import PlanError, nearest
from holdfast.runtime.plan.jsontext import JsonValue, describe
from holdfast.runtime.plan.presence import ABSENT, Absent
from holdfast.runtime.plan.windows import Duration


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a document a value stands; `owner` is the tag or name of the object that has the property `name`."""

    parent: "Place | None"
    name: str | int
    owner: str
    tag: str

    @property
    def path(self) -> str:
        """Where this is in the document: `$.queryPlan.sources[0]`."""
        parts: list[str] = []
        place = self
        while place.parent is not None:
            parts.append(f"[{place.name}]" if isinstance(place.name, int) else f".{place.name}")
            place = place.parent
        return "$" + "".join(reversed(parts))

    @property
    def label(self) -> str:
        """The property with its owner: `property "source" of streamFilterV1`."""
        if isinstance(self.name, int) and self.parent is not None:
            return f"element {self.name} of {self.parent.label}"
        return f'property "{self.name}" of {self.owner}' if self.owner else "plan"

    def member(self, name: str, *, owner: str, tag: str | None = None) -> "Place":
        return Place(self, name, owner, tag or self.tag)

    def element(self, index: int) -> "Place":
        return Place(self, index, self.owner, self.tag)

    def fail(self, problem: str, *, hint: str | None = None) -> NoReturn:
        """Refuse the document; `problem` goes on after the property's label."""
        inside = f", in {self.tag}" if self.tag and self.tag != self.owner else ""
        raise PlanError(f"{self.label} {problem}", detail=f"At {self.path}{inside}.", hint=hint)


ROOT = Place(None, "", "", "")


class Form(ABC):
    """One kind of property."""

    @abstractmethod
    def decode(self, value: JsonValue, place: Place) -> object: ...

    @abstractmethod
    def encode(self, value: object) -> JsonValue: ...


class Text(Form):
    """A string."""

    def decode(self, value: JsonValue, place: Place) -> str:
        if not isinstance(value, str):
            place.fail(f"must be a string, not {describe(value)}")
        return value

    def encode(self, value: object) -> JsonValue:
        assert isinstance(value, str)
        return value


class Flag(Form):
    """A boolean."""

    def decode(self, value: JsonValue, place: Place) -> bool:
        if not isinstance(value, bool):
            place.fail(f"must be a boolean, not {describe(value)}")
        return value

    def encode(self, value: object) -> JsonValue:
        assert isinstance(value, bool)
        return value


class Whole(Form):
    """A number without a fraction."""

    def decode(self, value: JsonValue, place: Place) -> int:
        if isinstance(value, Decimal):
            place.fail(f"must be a whole number, not {value}")
        if isinstance(value, bool) or not isinstance(value, int):
            place.fail(f"must be a whole number, not {describe(value)}")
        return value

    def encode(self, value: object) -> JsonValue:
        assert isinstance(value, int)
        return value


class Seconds(Form):
    """A duration as a number of seconds. Its scale is kept: `10.000000000` is not written back as `10`."""

    def decode(self, value: JsonValue, place: Place) -> Duration:
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            place.fail(f"must be a number of seconds, not {describe(value)}")
        try:
            return Duration(Decimal(value))
        except ValueError as error:
            place.fail(f"{error}, not {value}")

    def encode(self, value: object) -> JsonValue:
        assert isinstance(value, Duration)
        return value.seconds


@dataclass(frozen=True, slots=True)
class Choice(Form):
    """One name out of a few."""

    names: type[StrEnum]

    def decode(self, value: JsonValue, place: Place) -> StrEnum:
        text = TEXT.decode(value, place)
        try:
            return self.names(text)
        except ValueError:
            place.fail(f'cannot be "{text}"', hint=nearest(text, list(self.names), plural="values"))

    def encode(self, value: object) -> JsonValue:
        assert isinstance(value, self.names)
        return value.value


@dataclass(frozen=True, slots=True)
class Many(Form):
    """A list of one form."""

    element: Form

    def decode(self, value: JsonValue, place: Place) -> tuple[object, ...]:
        if not isinstance(value, list):
            place.fail(f"must be a list, not {describe(value)}")
        return tuple(self.element.decode(member, place.element(index)) for index, member in enumerate(value))

    def encode(self, value: object) -> JsonValue:
        assert isinstance(value, tuple)
        return [self.element.encode(member) for member in value]


@dataclass(frozen=True, slots=True)
class TextOr(Form):
    """A string, or what later releases write in its place."""

    text: Form
    other: Form

    def decode(self, value: JsonValue, place: Place) -> object:
        return (self.text if isinstance(value, str) else self.other).decode(value, place)

    def encode(self, value: object) -> JsonValue:
        return (self.text if isinstance(value, str) else self.other).encode(value)


@dataclass(frozen=True, slots=True)
class Property:
    """One row of a shape. An optional property may be absent or null; a required one is neither."""

    name: str
    form: Form
    required: bool
    field: str


@dataclass(frozen=True, slots=True)
class Shape(Form):
    """An object with known properties, and the class it becomes."""

    name: str
    type: Callable[..., object]
    properties: tuple[Property, ...]
    tag_name: str | None = None

    def decode(self, value: JsonValue, place: Place) -> object:
        if not isinstance(value, dict):
            place.fail(f"must be an object, not {describe(value)}")
        tag = self.name if self.tag_name else None
        self._refuse_unknown(value, place, tag)
        fields: dict[str, object] = {}
        for row in self.properties:
            member = value.get(row.name, ABSENT)
            at = place.member(row.name, owner=self.name, tag=tag)
            if isinstance(member, Absent):
                if row.required:
                    at.fail("is missing")
            elif member is None:
                if row.required:
                    at.fail("cannot be null")
                fields[row.field] = None
            else:
                fields[row.field] = row.form.decode(member, at)
        try:
            return self.type(**fields)
        except ValueError as error:
            raise PlanError(f"{self.name} {error}", detail=f"At {place.path}.") from None

    def encode(self, value: object) -> dict[str, JsonValue]:
        members: dict[str, JsonValue] = {self.tag_name: self.name} if self.tag_name else {}
        for row in self.properties:
            member = getattr(value, row.field)
            if member is not ABSENT:
                members[row.name] = None if member is None and not row.required else row.form.encode(member)
        return members

    def _refuse_unknown(self, value: dict[str, JsonValue], place: Place, tag: str | None) -> None:
        known = [row.name for row in self.properties]
        for name in value:
            if name not in known and name != self.tag_name:
                at = place.member(name, owner=self.name, tag=tag)
                at.fail("is unknown", hint=nearest(name, known, plural="properties"))


@runtime_checkable
class HasTag(Protocol):
    """A class of the vocabulary that carries its wire tag."""

    TAG: ClassVar[str]


@dataclass(frozen=True, slots=True)
class Tagged(Form):
    """An object whose property `tag_name` says which of several shapes it has."""

    kind: str
    tag_name: str
    shapes: Callable[[], Mapping[str, Shape]]

    def decode(self, value: JsonValue, place: Place) -> object:
        if not isinstance(value, dict):
            place.fail(f"must be an object, not {describe(value)}")
        at = place.member(self.tag_name, owner=f"a {self.kind}")
        if self.tag_name not in value:
            at.fail("is missing")
        tag = TEXT.decode(value[self.tag_name], at)
        shapes = self.shapes()
        if tag not in shapes:
            raise PlanError(
                f'{self.kind} type "{tag}" is unknown',
                detail=f"At {place.path}.",
                hint=nearest(tag, list(shapes), plural=f"{self.kind} types"),
            )
        return shapes[tag].decode(value, place)

    def encode(self, value: object) -> JsonValue:
        assert isinstance(value, HasTag)
        return self.shapes()[value.TAG].encode(value)


TEXT = Text()
FLAG = Flag()
WHOLE = Whole()
SECONDS = Seconds()
TEXTS = Many(TEXT)
