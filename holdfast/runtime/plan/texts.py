"""Properties that are SQL text. What cannot be read is refused with the document, not when a query is built from it."""

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.errors import HoldfastError
from holdfast.runtime.expressions.parse import parse_expression, parse_named, parse_schema, parse_type
from holdfast.runtime.plan.forms import TEXT, Form, Place
from holdfast.runtime.plan.jsontext import JsonValue


@dataclass(frozen=True, slots=True)
class SqlText(Form):
    """A string that the grammar of stored expressions can read; it stays the text that it was."""

    kind: str
    parse: Callable[[str], object]

    def decode(self, value: JsonValue, place: Place) -> str:
        text = TEXT.decode(value, place)
        try:
            self.parse(text)
        except HoldfastError as error:
            column = f", at column {error.position.column} of the text" if error.position else ""
            place.fail(f"is not {self.kind}: {error.message}{column}", hint=error.hint)
        return text

    def encode(self, value: object) -> JsonValue:
        return TEXT.encode(value)


SCHEMA_TEXT = SqlText("a schema", parse_schema)
TYPE_TEXT = SqlText("a type", parse_type)
EXPRESSION = SqlText("an expression", parse_expression)
NAMED_EXPRESSION = SqlText("an expression with a name", parse_named)
