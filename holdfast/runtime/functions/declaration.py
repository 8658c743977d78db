"""What a function is: its signatures, its documentation and its SQL in both engines, written by hand.

A template is text with `{0}`, `{1}` for the arguments and `{all}` for all of them after commas, or a
callable that writes the text from the arguments. Arguments arrive cast to the types that
`Signature.match` chose, each safe to stand inside any expression.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.functions.parameters import (
    ArrayOf,
    Chosen,
    Given,
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
    """The arguments of one call, as a template sees them; `constants` has the value of each literal."""

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
    """Why a constant cannot be an argument, with its place."""

    place: int
    reason: str
    hint: str


Check = Callable[[Sequence[Constant]], Refusal | None]
"""Finds constants that no row could be computed with. New statements are refused them; stored plans keep running."""

Template = str | Callable[[Arguments], str]


def expand(template: Template, arguments: Arguments) -> str:
    if callable(template):
        return template(arguments)
    return template.format(*arguments.texts, all=", ".join(arguments.texts))


Returns = SqlType | Variable | ArrayOf | MapOf | Callable[[tuple[Chosen, ...]], SqlType]


def first(types: tuple[Chosen, ...]) -> SqlType:
    """The return type "the type of the first argument"."""
    return Arguments((), types).type(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Parameters in order; the last one repeats when `variadic`, the one at `repeats` when that is given.

    What repeats may be missing when it is `optional`. `names` are what the documentation calls the parameters, where
    the function's `arguments` do not fit.
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
        """The result's type for people; `shown` says it where code decides the type."""
        if self.shown:
            return self.shown
        return str(self.parameters[0]) if callable(self.returns) else str(self.returns)

    def match(self, arguments: Sequence[Given], *, exact: bool) -> "tuple[tuple[Chosen, ...], SqlType] | None":
        """The types that the arguments are cast to and the result's, or None when this signature does not take them."""
        parameters = self._spread(len(arguments))
        found = None if parameters is None else match(parameters, arguments, exact=exact)
        if found is None:
            return None
        bindings, types = found
        if isinstance(self.returns, (Variable, ArrayOf, MapOf)):
            returns = bindings.choose_type(self.returns)
            assert returns is not None, "every variable of a result is one of a parameter"
            return types, returns
        return types, self.returns(types) if callable(self.returns) else self.returns

    def _spread(self, count: int) -> tuple[Parameter, ...] | None:
        missing = count - len(self.parameters)
        if missing == 0:
            return self._apart(self.parameters)
        place = self.repeats % len(self.parameters) if self.parameters else 0
        if self.optional and missing == -1:
            return self._apart((*self.parameters[:place], *self.parameters[place + 1 :]))
        if not self.variadic or missing < 0:
            return None
        repeated = self.parameters[place : place + 1] * missing
        return self._apart((*self.parameters[:place], *repeated, *self.parameters[place:]))

    @staticmethod
    def _apart(parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
        """Variables that each argument decides for itself get a name for each."""
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

    - `constants`: the places of arguments that must be literals; -1 is the last.
    - `reading`: DuckDB aggregates over the arguments that equal `partial`, for queries that read; None when there are
      no proven ones. `reads` says for which types they are, when not for all.
    - `merged_before`: Spark, over `{s0}...` and `{p0}...`: the partials with the state that was there, when the store
      cannot merge by itself; what it gets then, and `merge` takes, is the new state.
    - `over_tables`: the same with a state that can take back, where that is worth another one.

    Texts may use `{t0}, {t1}...`, the physical types of the state columns, and `{r}`, that of the result; `{last}`, the
    last argument, `{row}`, a struct of all others, and `{canonical}`, the first with the keys of its MAPs in order,
    and `{comparable}`, what Spark can compare in its place. In `partial`, records come in the order of `{part}` and
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
        """Whether it goes by the order of records, which rows of a table do not have."""
        return any("{part}" in text for text in self.partial)

    @property
    def undoing(self) -> "AggregateForm | None":
        """The form that is kept over a table; None when there is none."""
        return self if self.undo is not None else self.over_tables


@dataclass(frozen=True, slots=True, kw_only=True)
class TableForm(Signature):
    """A signature of a function that makes rows; `returns` is the type of the column that it gives them.

    `spark` writes an ARRAY with an element for each row; NULL is no rows.
    """

    spark: Template


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A call and what it gives, both as SQL text.

    An aggregate's is over records whose column `x` has the values of the array `over`, one after another; what a table
    function's gives is an array of its rows.
    """

    call: str
    gives: str
    over: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarFunction:
    """`arguments` are the names that the documentation gives to the parameters of all forms, by their places.

    With `one_kind` numbers of different kinds must be cast, unless one of them is a DOUBLE, which all become.
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
    """Turns one row into as many as it gives values; several in one query stand side by side."""

    name: str
    doc: str
    forms: tuple[TableForm, ...]
    arguments: tuple[str, ...] = ()
    examples: tuple[Example, ...] = field(default=())
    category: str = ""
    since: Release = (0, 1)


Function = ScalarFunction | AggregateFunction | TableFunction


def named(function: Function, form: Signature) -> list[str]:
    """The names of a form's parameters; where there are too few, a number follows."""
    names = form.names or function.arguments
    if len(names) < len(form.parameters) and not names:
        names = ("argument",)
    return [names[i] if i < len(names) else f"{names[-1]} {i + 1}" for i in range(len(form.parameters))]
