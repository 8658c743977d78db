"""A step with what the planner needs to know about its result: columns, formats and window."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.runtime.compiler.inference import infer
from holdfast.runtime.expressions.scope import Scope, ScopeColumn
from holdfast.runtime.expressions.tree import ColumnRef, Expression
from holdfast.runtime.plan.formats import FormatInfo, Formats
from holdfast.runtime.plan.steps import Step
from holdfast.runtime.plan.windows import WindowInfo
from holdfast.sql.properties.formats import build_formats, internal_key_format
from holdfast.types import Column, SqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """`value` also contains the pseudo columns and a copy of each key column, as the rows of a running query do."""

    step: Step
    stream: bool
    key: tuple[Column, ...]
    value: tuple[Column, ...]
    key_format: FormatInfo
    value_format: FormatInfo
    window: WindowInfo | None = None

    @property
    def formats(self) -> Formats:
        """The formats of rows inside a query: those of the source's topic, but values are never unwrapped."""
        return build_formats(self.key_format, self.value_format, key_columns=len(self.key))

    @property
    def key_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.key)

    def types(self, expressions: Iterable[Expression]) -> list[SqlType]:
        """The types of expressions over the rows; NULL has none."""
        scope = Scope.of(ScopeColumn(column.name, column.type) for column in self.value)
        return [type_ for type_ in (infer(expression, scope) for expression in expressions) if type_ is not None]

    def keyed_by(self, expressions: Sequence[Expression]) -> bool:
        """Whether rows already have this key. Never true for a key of several columns."""
        return len(self.key) == 1 and list(expressions) == [ColumnRef(self.key[0].name)]

    def grouped_format(self, expressions: Sequence[Expression], inherited: FormatInfo | None = None) -> FormatInfo:
        """The key format of these rows after a change of key."""
        return internal_key_format(inherited or self.key_format, self.types(expressions))
