"""Aggregate and table calls with their types chosen: the SQL that the tick and the store run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.errors import Feature, NotSupported, NotYetSupported, Position, TypeMismatch, WrongObjectKind
from holdfast.runtime.expressions.casts import struct
from holdfast.runtime.expressions.comparable import comparable, sorted_maps
from holdfast.runtime.expressions.physical import Dialect, NotRenderable, field_name, physical_type
from holdfast.runtime.expressions.render import Renderer
from holdfast.runtime.expressions.scope import Scope
from holdfast.runtime.expressions.tree import BooleanLiteral, Call, IntegerLiteral
from holdfast.runtime.functions.declaration import AggregateForm, Arguments, TableForm, expand
from holdfast.runtime.functions.parameters import LambdaType, Unit
from holdfast.runtime.functions.registry import CURRENT, Release, names_over_tables, resolve
from holdfast.types import SqlType


@dataclass(frozen=True, slots=True)
class BoundAggregate:
    """See `AggregateForm` for what each part promises."""

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
        """Spark's text of the new state, for a function that the store cannot merge."""
        texts = self.form.merged_before
        return None if texts is None else self._expand(texts, Dialect.SPARK, state, partial)

    def undo(self, state: Sequence[str], partial: Sequence[str]) -> tuple[str, ...]:
        assert self.form.undo is not None, "the form is one that undoes"
        return self._expand(self.form.undo, Dialect.DUCKDB, state, partial)

    def result(self, state: Sequence[str], dialect: Dialect) -> str:
        return self._expand((self.form.result_sql[dialect],), dialect, state)[0]

    def _expand(
        self, texts: Sequence[str], dialect: Dialect, state: Sequence[str] = (), partial: Sequence[str] = ()
    ) -> tuple[str, ...]:
        words = {f"s{i}": text for i, text in enumerate(state)}
        words |= {f"p{i}": text for i, text in enumerate(partial)}
        words |= {f"t{i}": physical_type(type_, dialect) for i, type_ in enumerate(self.state)}
        words["r"] = physical_type(self.returns, dialect)
        words["canonical"], words["comparable"] = self.canonical, self.comparable
        words["part"] = self.part
        words["last"] = self.arguments[-1] if self.arguments else ""
        words["row"] = struct([(field_name(i), text) for i, text in enumerate(self.arguments[:-1])], Dialect.SPARK)
        return tuple(text.format(*self.arguments, **words) for text in texts)


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
    """Choose the form of an aggregate call; its arguments are written for Spark, unless it is only to be read.

    One that `undoes` can take back; with a `limit` a list keeps the values that came first. `part` is what the records
    of a group come in the order of, before their offsets.
    """
    renderer = Renderer(scope, dialect, release)
    resolved = resolve(call, [renderer.given(argument) for argument in call.arguments], release)
    if not isinstance(resolved.form, AggregateForm):
        raise WrongObjectKind(f"function {call.shown} is not an aggregate", position=call.position)
    for place in sorted(place % len(call.arguments) for place in resolved.form.constants):
        argument = call.arguments[place]
        if not isinstance(argument, IntegerLiteral | BooleanLiteral):
            raise TypeMismatch(
                f"argument {place + 1} of {call.shown} must be a literal",
                detail="It decides what is kept for a group.",
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
    """An aggregate over a table that cannot take back what a row gave."""
    return NotSupported(
        f"the aggregate {call.shown} cannot be kept over a table",
        detail="When a row of the table changes, its old value could not be taken back.",
        hint=f"Over tables there are {', '.join(names_over_tables())}; over streams, all aggregates.",
        position=call.position,
    )


def not_until_closed(name: str, position: Position | None = None) -> NotYetSupported:
    """An aggregate that the store cannot merge, in windows that it merges itself."""
    return NotYetSupported(
        Feature.FUNCTION,
        "an aggregate of a user in windows that close",
        f"the aggregate {name} cannot be kept in windows that close yet",
        detail="Those are SESSION windows, windows with a RETENTION, and windows of EMIT FINAL.",
        hint="TUMBLING and HOPPING windows with EMIT CHANGES and no RETENTION can use it.",
        position=position,
    )


@dataclass(frozen=True, slots=True)
class BoundTableFunction:
    """A table function with its arguments: the array of its rows as Spark SQL, and the type of a row."""

    rows: str
    returns: SqlType


def bind_table_function(call: Call, scope: Scope, *, release: Release = CURRENT) -> BoundTableFunction:
    """Choose the form of a table function's call."""
    renderer = Renderer(scope, Dialect.SPARK, release)
    resolved = resolve(call, [renderer.given(argument) for argument in call.arguments], release)
    if not isinstance(resolved.form, TableForm):
        raise WrongObjectKind(f"function {call.shown} is not a table function", position=call.position)
    texts = tuple(renderer.argument(a, t) for a, t in zip(call.arguments, resolved.types, strict=True))
    constants = tuple(None for _ in call.arguments)
    rows = expand(resolved.form.spark, Arguments(texts, resolved.types, constants, resolved.returns))
    return BoundTableFunction(rows, resolved.returns)
