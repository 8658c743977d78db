"""Properties that are SQL text. Invalid text is rejected with the document, not when a query is built from it."""

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.errors import HoldfastError
from holdfast.runtime.expressions.parse import parse_expression, parse_named, parse_schema, parse_type
from holdfast.runtime.plan.json_text import JsonValue
from holdfast.runtime.plan.property_types import TEXT, DocumentPath, PropertyType


@dataclass(frozen=True, slots=True)
class SqlText(PropertyType):
    """A string that the grammar of stored expressions can parse; the text itself is stored unchanged."""

    kind: str
    parse: Callable[[str], object]

    def decode(self, value: JsonValue, path: DocumentPath) -> str:
        text = TEXT.decode(value, path)
        try:
            self.parse(text)
        except HoldfastError as error:
            column = f", at column {error.position.column} of the text" if error.position else ""
            path.fail(f"is not {self.kind}: {error.message}{column}", hint=error.hint)
        return text

    def encode(self, value: object) -> JsonValue:
        return TEXT.encode(value)


SCHEMA_TEXT = SqlText("a schema", parse_schema)
TYPE_TEXT = SqlText("a type", parse_type)
EXPRESSION = SqlText("an expression", parse_expression)
NAMED_EXPRESSION = SqlText("an expression with a name", parse_named)
