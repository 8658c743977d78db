"""Resolved calls of aggregates and table functions, as the SQL that the tick and the store run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.errors import Feature, NotSupported, NotYetSupported, Position, TypeMismatch, WrongObjectKind
from holdfast.runtime import physical_columns as col
from holdfast.runtime.compiler.sql import Renderer
from holdfast.runtime.expressions.casts import struct
from holdfast.runtime.expressions.comparable import comparable, sorted_maps
from holdfast.runtime.expressions.physical import Dialect, NotRenderable, field_name, physical_type
from holdfast.runtime.expressions.scope import Scope
from holdfast.runtime.expressions.tree import BooleanLiteral, Call, IntegerLiteral
from holdfast.runtime.functions.declaration import AggregateForm, Arguments, TableForm, expand
from holdfast.runtime.functions.parameters import LambdaType, Unit
from holdfast.runtime.functions.registry import CURRENT, Release, names_over_tables, resolve
from holdfast.types import SqlType


@dataclass(frozen=True, slots=True)
class BoundAggregate:
    """A resolved aggregate call; see `AggregateForm` for what each text promises."""

    form: AggregateForm
    arguments: tuple[str, ...]
    returns: SqlType
    state: tuple[SqlType, ...]
    canonical: str = ""
    comparable: str = ""
    limit: int | None = None
    part: str = "part"

    def initial(self) -> tuple[str, ...]:
        return self._expand(self.form.initial, Dialect.DUCKDB)

    def partial(self) -> tuple[str, ...]:
        """Spark aggregate expressions over the rows of one group in one tick, one per state column."""
        return self._expand(self.form.partial, Dialect.SPARK)

    def read(self, dialect: Dialect) -> str:
        """The result over all rows of a group at once; `NotRenderable` where the dialect has no proven form."""
        if dialect is Dialect.SPARK:
            return self.result(self.partial(), dialect)
        if self.form.reading is None:
            raise NotRenderable("aggregate")
        return self.result(self._expand(self.form.reading, dialect), dialect)

    def merge(self, state: Sequence[str], partial: Sequence[str]) -> tuple[str, ...]:
        merged = self._expand(self.form.merge, Dialect.DUCKDB, state, partial)
        return merged if self.limit is None else tuple(f"({text})[1:{self.limit}]" for text in merged)

    def merged_before(self, state: Sequence[str], partial: Sequence[str]) -> tuple[str, ...] | None:
        """The new state as Spark SQL, for a function that the store cannot merge."""
        texts = self.form.merged_before
        return None if texts is None else self._expand(texts, Dialect.SPARK, state, partial)

    def undo(self, state: Sequence[str], partial: Sequence[str]) -> tuple[str, ...]:
        assert self.form.undo is not None, "the form must support undo"
        return self._expand(self.form.undo, Dialect.DUCKDB, state, partial)

    def result(self, state: Sequence[str], dialect: Dialect) -> str:
        return self._expand((self.form.result_sql[dialect],), dialect, state)[0]

    def _expand(
        self, texts: Sequence[str], dialect: Dialect, state: Sequence[str] = (), partial: Sequence[str] = ()
    ) -> tuple[str, ...]:
        names = {col.state(i): text for i, text in enumerate(state)}
        names |= {col.partial(i): text for i, text in enumerate(partial)}
        names |= {f"t{i}": physical_type(type_, dialect) for i, type_ in enumerate(self.state)}
        names["r"] = physical_type(self.returns, dialect)
        names["canonical"], names["comparable"] = self.canonical, self.comparable
        names["part"] = self.part
        names["last"] = self.arguments[-1] if self.arguments else ""
        names["row"] = struct([(field_name(i), text) for i, text in enumerate(self.arguments[:-1])], Dialect.SPARK)
        return tuple(text.format(*self.arguments, **names) for text in texts)


def bind_aggregate(
    call: Call,
    scope: Scope,
    *,
    release: Release = CURRENT,
    dialect: Dialect = Dialect.SPARK,
    undoes: bool = False,
    limit: int | None = None,
    part: str = "part",
) -> BoundAggregate:
    """Resolve an aggregate call. Pull queries may render its arguments for DuckDB; all others use Spark.

    `undoes` selects a form that can undo; with a `limit`, lists contain only the first values. Records of a group are
    ordered by `part`, then by offset.
    """
    renderer = Renderer(scope, dialect, release)
    resolved = resolve(call, [renderer.argument_type(argument) for argument in call.arguments], release)
    if not isinstance(resolved.form, AggregateForm):
        raise WrongObjectKind(f"function {call.shown} is not an aggregate", position=call.position)
    for index in sorted(index % len(call.arguments) for index in resolved.form.constants):
        argument = call.arguments[index]
        if not isinstance(argument, IntegerLiteral | BooleanLiteral):
            raise TypeMismatch(
                f"argument {index + 1} of {call.shown} must be a literal",
                detail="It determines the state of a group.",
                position=argument.position,
            )
    form = resolved.form.undoing if undoes else resolved.form
    if form is None:
        raise not_over_tables(call)
    if form.reads is not None and not form.reads(resolved.types):
        form = replace(form, reading=None)
    texts = tuple(renderer.argument(a, t) for a, t in zip(call.arguments, resolved.types, strict=True))
    chosen = resolved.types[0] if resolved.types else None
    if chosen is None or isinstance(chosen, LambdaType | Unit):
        canonical = compared = ""
    else:
        canonical, compared = sorted_maps(texts[0], chosen), comparable(texts[0], chosen)
    return BoundAggregate(form, texts, resolved.returns, form.state(resolved.types), canonical, compared, limit, part)


def not_over_tables(call: Call) -> NotSupported:
    """The error for an aggregate over a table that cannot undo a row's contribution."""
    return NotSupported(
        f"the aggregate {call.shown} is not supported over a table",
        detail="When a row of the table changes, its old value cannot be removed from the result.",
        hint=f"Aggregates over tables are: {', '.join(names_over_tables())}. Streams support all.",
        position=call.position,
    )


def not_until_closed(name: str, position: Position | None = None) -> NotYetSupported:
    """The error for an aggregate that the store cannot merge, in windows that the store merges itself."""
    return NotYetSupported(
        Feature.FUNCTION,
        "a user-defined aggregate in windows that close",
        f"the aggregate {name} is not supported in windows that close yet",
        detail="Those are SESSION windows, and windows with EMIT FINAL.",
        hint="Use TUMBLING or HOPPING windows with EMIT CHANGES.",
        position=position,
    )


@dataclass(frozen=True, slots=True)
class BoundTableFunction:
    """A table function with its arguments: the array of its rows as Spark SQL, and the type of a row."""

    rows: str
    returns: SqlType


def bind_table_function(call: Call, scope: Scope, *, release: Release = CURRENT) -> BoundTableFunction:
    """Resolve the call of a table function."""
    renderer = Renderer(scope, Dialect.SPARK, release)
    resolved = resolve(call, [renderer.argument_type(argument) for argument in call.arguments], release)
    if not isinstance(resolved.form, TableForm):
        raise WrongObjectKind(f"function {call.shown} is not a table function", position=call.position)
    texts = tuple(renderer.argument(a, t) for a, t in zip(call.arguments, resolved.types, strict=True))
    constants = tuple(None for _ in call.arguments)
    rows = expand(resolved.form.spark, Arguments(texts, resolved.types, constants, resolved.returns))
    return BoundTableFunction(rows, resolved.returns)
