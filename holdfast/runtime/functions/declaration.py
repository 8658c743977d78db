"""What a function is: its signatures, its documentation and its SQL in both engines, written by hand.

A template is text with `{0}`, `{1}` for the arguments and `{all}` for all of them after commas, or a
callable that writes the text from the arguments. Arguments arrive cast to the types that
`Signature.match` chose, each safe to stand inside any expression.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from holdfast.runtime.expressions.coercion import assignable, common_type
from holdfast.runtime.expressions.physical import Dialect
from holdfast.types import Decimal, Scalar, SqlType, is_number

Release = tuple[int, int]


class Family(Enum):
    """A parameter that takes several types."""

    ANY = "ANY"
    """Whatever it is; all ANY parameters of a call take one common type."""
    NUMBER = "NUMBER"
    """Any number; all NUMBER parameters of a call take one common type."""
    DECIMAL = "DECIMAL"


Parameter = SqlType | Family


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call, as a template sees them; `constants` has a value for each whole-number literal."""

    texts: tuple[str, ...]
    types: tuple[SqlType, ...]
    constants: tuple[int | None, ...] = ()
    returns: SqlType = Scalar.STRING


Template = str | Callable[[Arguments], str]


def expand(template: Template, arguments: Arguments) -> str:
    if callable(template):
        return template(arguments)
    return template.format(*arguments.texts, all=", ".join(arguments.texts))


Returns = SqlType | Callable[[tuple[SqlType, ...]], SqlType]


def first(types: tuple[SqlType, ...]) -> SqlType:
    """The return type "the type of the first argument"."""
    return types[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Parameters in order; the last one repeats when `variadic`."""

    parameters: tuple[Parameter, ...]
    returns: Returns
    variadic: bool = False

    def match(self, arguments: Sequence[SqlType | None], *, exact: bool) -> tuple[SqlType, ...] | None:
        """The types that the arguments are cast to, or None when this signature does not take them."""
        parameters = self._spread(len(arguments))
        if parameters is None:
            return None
        shared: dict[Family, SqlType | None] = {}
        for parameter, argument in zip(parameters, arguments, strict=True):
            if isinstance(parameter, Family):
                if not _in_family(parameter, argument):
                    return None
                if parameter not in shared:
                    shared[parameter] = argument
                    continue
                merged = common_type(shared[parameter], argument)
                if merged is None and argument is not None:
                    return None
                shared[parameter] = merged
            elif argument != parameter and (argument is not None if exact else not assignable(argument, parameter)):
                return None
        targets = [shared[p] if isinstance(p, Family) else p for p in parameters]
        return None if None in targets else tuple(t for t in targets if t is not None)

    def result(self, types: tuple[SqlType, ...]) -> SqlType:
        return self.returns(types) if callable(self.returns) else self.returns

    def _spread(self, count: int) -> tuple[Parameter, ...] | None:
        missing = count - len(self.parameters)
        if missing == 0:
            return self.parameters
        return (*self.parameters, *self.parameters[-1:] * missing) if self.variadic and missing > 0 else None

    def __str__(self) -> str:
        names = [p.value if isinstance(p, Family) else str(p) for p in self.parameters]
        return f"({', '.join(names)}{', ...' if self.variadic else ''})"


def _in_family(family: Family, argument: SqlType | None) -> bool:
    if argument is None or family is Family.ANY:
        return True
    return isinstance(argument, Decimal) if family is Family.DECIMAL else is_number(argument)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarForm(Signature):
    """A signature with its SQL; without a proven DuckDB form (`duckdb=None`) it runs on Spark only."""

    spark: Template
    duckdb: Template | None

    def template(self, dialect: Dialect) -> Template | None:
        return self.spark if dialect is Dialect.SPARK else self.duckdb


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateForm(Signature):
    """A signature with the SQL of its life.

    - `state`: the types of the columns that a group keeps, given the argument types.
    - `initial`: DuckDB, one text per state column: the state of a group that has seen nothing.
    - `partial`: Spark aggregates over the arguments, one per state column; of no rows it gives `initial`.
    - `merge`, `undo`: DuckDB, one text per state column, over `{s0}, {s1}...` (state) and `{p0}, {p1}...`
      (partial). `merge` is associative, so that n ticks of one record leave what one tick of n does; it
      never raises. `undo` takes away what `merge` added; None when the function cannot take back.
    - `result`: over `{s0}, {s1}...`, in both dialects.

    Texts may use `{t0}, {t1}...`, the physical types of the state columns, and `{r}`, that of the result.
    """

    state: Callable[[tuple[SqlType, ...]], tuple[SqlType, ...]]
    initial: tuple[str, ...]
    partial: tuple[str, ...]
    merge: tuple[str, ...]
    undo: tuple[str, ...] | None
    result_sql: Mapping[Dialect, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A call and what it gives, both as SQL text."""

    call: str
    gives: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarFunction:
    name: str
    doc: str
    forms: tuple[ScalarForm, ...]
    examples: tuple[Example, ...] = field(default=())
    since: Release = (0, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateFunction:
    name: str
    doc: str
    forms: tuple[AggregateForm, ...]
    examples: tuple[Example, ...] = field(default=())
    since: Release = (0, 1)


Function = ScalarFunction | AggregateFunction
