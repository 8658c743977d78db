"""The tree of an expression: data only, the same for statements and for stored plans.

`position` is where the node begins in its text; it takes no part in equality, so that a tree read
from a plan equals the one that the planner wrote.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.errors import Position
from holdfast.types import SqlType


@dataclass(frozen=True, slots=True)
class NullLiteral:
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class BooleanLiteral:
    value: bool
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class IntegerLiteral:
    """An integer; INTEGER if it fits 32 bits, else BIGINT."""

    value: int
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DecimalLiteral:
    """A number with a point and no exponent; all digits are preserved."""

    text: str
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DoubleLiteral:
    """A number with an exponent."""

    text: str
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StringLiteral:
    value: str
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column, optionally qualified with the name or alias of its relation."""

    name: str
    qualifier: str | None = None
    position: Position | None = field(default=None, compare=False, repr=False)


class Operator(StrEnum):
    """Operators of two operands; the value is the operator's text."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    MODULUS = "%"
    CONCAT = "||"
    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    IS_DISTINCT = "IS DISTINCT FROM"
    IS_NOT_DISTINCT = "IS NOT DISTINCT FROM"
    AND = "AND"
    OR = "OR"


@dataclass(frozen=True, slots=True)
class Binary:
    operator: Operator
    left: "Expression"
    right: "Expression"
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Not:
    operand: "Expression"
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negate:
    """Arithmetic minus of one operand."""

    operand: "Expression"
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: "Expression"
    negated: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Between:
    operand: "Expression"
    low: "Expression"
    high: "Expression"
    negated: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class InList:
    operand: "Expression"
    items: "tuple[Expression, ...]"
    negated: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Like:
    operand: "Expression"
    pattern: "Expression"
    escape: str | None = None
    negated: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class When:
    """One branch of a CASE."""

    condition: "Expression"
    result: "Expression"


@dataclass(frozen=True, slots=True)
class Case:
    """Both forms of CASE; only the simple form has an `operand`."""

    operand: "Expression | None"
    branches: tuple[When, ...]
    otherwise: "Expression | None"
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Cast:
    operand: "Expression"
    type: SqlType
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function call. The name is upper case; that of a user-defined function has its version after an `@`.

    `COUNT(*)` has no arguments and `star`.
    """

    name: str
    arguments: "tuple[Expression, ...]"
    star: bool = False
    position: Position | None = field(default=None, compare=False, repr=False)

    @property
    def shown(self) -> str:
        """The name as the user wrote it."""
        return self.name.partition("@")[0]


@dataclass(frozen=True, slots=True)
class Subscript:
    """`base[index]`: 1-based for arrays (negative counts from the end), by key for maps."""

    base: "Expression"
    index: "Expression"
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FieldRef:
    """`base->name`: a field of a STRUCT."""

    base: "Expression"
    name: str
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ArrayLiteral:
    items: "tuple[Expression, ...]"
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class MapEntry:
    key: "Expression"
    value: "Expression"


@dataclass(frozen=True, slots=True)
class MapLiteral:
    entries: tuple[MapEntry, ...]
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NamedExpression:
    """`name := expression` of a STRUCT, or `expression AS name` of a select list."""

    name: str
    expression: "Expression"


@dataclass(frozen=True, slots=True)
class StructLiteral:
    fields: tuple[NamedExpression, ...]
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Lambda:
    """`x => body` or `(x, y) => body`."""

    parameters: tuple[str, ...]
    body: "Expression"
    position: Position | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class IntervalUnit:
    """A bare unit such as DAYS, an argument of some date functions."""

    name: str
    position: Position | None = field(default=None, compare=False, repr=False)


Expression = (
    NullLiteral
    | BooleanLiteral
    | IntegerLiteral
    | DecimalLiteral
    | DoubleLiteral
    | StringLiteral
    | ColumnRef
    | Binary
    | Not
    | Negate
    | IsNull
    | Between
    | InList
    | Like
    | Case
    | Cast
    | Call
    | Subscript
    | FieldRef
    | ArrayLiteral
    | MapLiteral
    | StructLiteral
    | Lambda
    | IntervalUnit
)
