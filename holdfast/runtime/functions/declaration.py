"""Function declarations: signatures, documentation and SQL for both engines.

A template is text with `{0}`, `{1}` for the arguments and `{all}` for all of them, separated by commas, or a callable
that writes the text from the arguments. Arguments are already cast to the types that `Signature.match` chose, and safe
to use inside any expression.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.functions.parameters import (
    ArgumentType,
    ArrayOf,
    Chosen,
    LambdaType,
    MapOf,
    Parameter,
    Unit,
    Variable,
    match,
)
from holdfast.types import Scalar, SqlType

Release = tuple[int, int]
Constant = int | str | bool | None


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call, for templates; `constants` has the value of each literal."""

    texts: tuple[str, ...]
    chosen: tuple[Chosen, ...]
    constants: tuple[Constant, ...] = ()
    returns: SqlType = Scalar.STRING

    def type(self, index: int) -> SqlType:
        chosen = self.chosen[index]
        assert not isinstance(chosen, (LambdaType, Unit)), "a lambda or a unit has no type of its own"
        return chosen


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the argument at `index` cannot be this constant."""

    index: int
    reason: str
    hint: str


Check = Callable[[Sequence[Constant]], Refusal | None]
"""Finds constants for which no row can be computed. New statements with one are rejected; stored plans keep running."""

Template = str | Callable[[Arguments], str]


def expand(template: Template, arguments: Arguments) -> str:
    if callable(template):
        return template(arguments)
    return template.format(*arguments.texts, all=", ".join(arguments.texts))


Returns = SqlType | Variable | ArrayOf | MapOf | Callable[[tuple[Chosen, ...]], SqlType]


def first(types: tuple[Chosen, ...]) -> SqlType:
    """The type of the first argument, as a return type."""
    return Arguments((), types).type(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Parameters in order; the last one repeats when `variadic`, or the one at index `repeats`.

    The repeated parameter may be missing if it is `optional`. `names` are the parameters' names in the
    documentation, if they differ from the function's `arguments`.
    """

    parameters: tuple[Parameter, ...]
    returns: Returns
    variadic: bool = False
    optional: bool = False
    names: tuple[str, ...] = ()
    repeats: int = -1
    shown: str = ""

    @property
    def returns_text(self) -> str:
        """The result's type for the documentation; `shown` overrides it where code computes the type."""
        if self.shown:
            return self.shown
        return str(self.parameters[0]) if callable(self.returns) else str(self.returns)

    def match(self, arguments: Sequence[ArgumentType], *, exact: bool) -> "tuple[tuple[Chosen, ...], SqlType] | None":
        """The types that the arguments are cast to and the result type; None if this signature does not accept them."""
        parameters = self._expand_parameters(len(arguments))
        found = None if parameters is None else match(parameters, arguments, exact=exact)
        if found is None:
            return None
        bindings, types = found
        if isinstance(self.returns, (Variable, ArrayOf, MapOf)):
            returns = bindings.choose_type(self.returns)
            assert returns is not None, "every variable of a result is also one of a parameter"
            return types, returns
        return types, self.returns(types) if callable(self.returns) else self.returns

    def _expand_parameters(self, count: int) -> tuple[Parameter, ...] | None:
        missing = count - len(self.parameters)
        if missing == 0:
            return self._separate_variables(self.parameters)
        index = self.repeats % len(self.parameters) if self.parameters else 0
        if self.optional and missing == -1:
            return self._separate_variables((*self.parameters[:index], *self.parameters[index + 1 :]))
        if not self.variadic or missing < 0:
            return None
        repeated = self.parameters[index : index + 1] * missing
        return self._separate_variables((*self.parameters[:index], *repeated, *self.parameters[index:]))

    @staticmethod
    def _separate_variables(parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
        """Give each variable with `each` its own name, so that every argument binds it separately."""
        return tuple(
            replace(p, name=f"{p.name}{i}") if isinstance(p, Variable) and p.each else p
            for i, p in enumerate(parameters)
        )

    def __str__(self) -> str:
        names = [str(p) for p in self.parameters]
        if self.variadic:
            names.insert(len(names) if self.repeats == -1 else self.repeats + 1, "...")
        return f"({', '.join(names)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarForm(Signature):
    """A signature with its SQL; without a proven DuckDB form (`duckdb=None`), it runs only on Spark."""

    spark: Template
    duckdb: Template | None

    def template(self, dialect: Dialect) -> Template | None:
        return self.spark if dialect is Dialect.SPARK else self.duckdb


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateForm(Signature):
    """A signature with the SQL of its state.

    - `state`: the types of a group's state columns, from the argument types.
    - `initial`: DuckDB, one text per state column: the state of an empty group.
    - `partial`: Spark aggregates over the arguments, one per state column; over no rows, they return
      `initial`.
    - `merge`, `undo`: DuckDB, one text per state column, over `{s0}, {s1}...` (state) and `{p0}, {p1}...`
      (partial). `merge` is associative, so that n ticks of one record have the result of one tick of n
      records; it never raises. `undo` removes what `merge` added; None if the function cannot undo.
    - `result_sql`: over `{s0}, {s1}...`, in both dialects.

    - `constants`: the indexes of arguments that must be literals; -1 is the last.
    - `reading`: DuckDB aggregates over the arguments that equal `partial`, for pull queries; None if there
      are no proven ones. `reads` restricts them to some argument types.
    - `merged_before`: Spark, over `{s0}...` and `{p0}...`: merges the partial into the existing state, for a function
      that the store cannot merge. The partial that `merge` then receives is the new state.
    - `over_tables`: the form whose state supports undo, if it is a different one.

    Texts may use `{t0}, {t1}...`, the physical types of the state columns; `{r}`, that of the result; `{last}`, the
    last argument; `{row}`, a struct of all other arguments; `{canonical}`, the first argument with the keys of its MAPs
    sorted; and `{comparable}`, its form that Spark can compare. In `partial`, records are ordered by `{part}` and
    `off`.
    """

    state: Callable[[tuple[Chosen, ...]], tuple[SqlType, ...]]
    initial: tuple[str, ...]
    partial: tuple[str, ...]
    merge: tuple[str, ...]
    undo: tuple[str, ...] | None
    result_sql: Mapping[Dialect, str]
    constants: frozenset[int] = frozenset()
    reading: tuple[str, ...] | None = None
    reads: Callable[[tuple[Chosen, ...]], bool] | None = None
    merged_before: tuple[str, ...] | None = None
    over_tables: "AggregateForm | None" = None

    @property
    def needs_records(self) -> bool:
        """Whether it depends on the order of records, which rows of a table do not have."""
        return any("{part}" in text for text in self.partial)

    @property
    def undoing(self) -> "AggregateForm | None":
        """The form used over a table; None if the function is not supported there."""
        return self if self.undo is not None else self.over_tables


@dataclass(frozen=True, slots=True, kw_only=True)
class TableForm(Signature):
    """A signature of a table function; `returns` is the type of its column.

    `spark` is an ARRAY with an element for each row; NULL means no rows.
    """

    spark: Template


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A call and its result, both as SQL text.

    For an aggregate, the column `x` of the records has the values of the array `over`, in order. The result of a
    table function is an array of its rows.
    """

    call: str
    gives: str
    over: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarFunction:
    """A function of one row. `arguments` are the names of the parameters in the documentation, in order.

    With `one_kind`, numbers of different types must be cast, unless one is a DOUBLE: then all become DOUBLE.
    """

    name: str
    doc: str
    forms: tuple[ScalarForm, ...]
    one_kind: bool = False
    check: Check | None = None
    arguments: tuple[str, ...] = ()
    examples: tuple[Example, ...] = field(default=())
    category: str = ""
    since: Release = (0, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateFunction:
    name: str
    doc: str
    forms: tuple[AggregateForm, ...]
    check: Check | None = None
    arguments: tuple[str, ...] = ()
    examples: tuple[Example, ...] = field(default=())
    category: str = ""
    since: Release = (0, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFunction:
    """Turns one row into a row per value; a query with several of them combines their rows pairwise."""

    name: str
    doc: str
    forms: tuple[TableForm, ...]
    arguments: tuple[str, ...] = ()
    examples: tuple[Example, ...] = field(default=())
    category: str = ""
    since: Release = (0, 1)


Function = ScalarFunction | AggregateFunction | TableFunction


def named(function: Function, form: Signature) -> list[str]:
    """The names of a form's parameters; the last name is numbered if there are too few."""
    names = form.names or function.arguments
    if len(names) < len(form.parameters) and not names:
        names = ("argument",)
    return [names[i] if i < len(names) else f"{names[-1]} {i + 1}" for i in range(len(form.parameters))]
