"""What expressions mean to a plan: functions are those of the release that the plan was made with, under the
properties that it was made with."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.expressions.render import render, renderable
from holdfast.runtime.expressions.scope import Scope
from holdfast.runtime.expressions.tree import Expression
from holdfast.runtime.expressions.typing import type_of
from holdfast.runtime.functions.registry import CURRENT, Release
from holdfast.types import SqlType


@dataclass(frozen=True, slots=True)
class Meaning:
    """Types and texts of expressions, as of a release."""

    release: Release = CURRENT
    properties: Mapping[str, str] = field(default_factory=dict)

    def limit(self, function: str) -> int | None:
        """How many values an aggregate function may keep for a group; None when that is not limited."""
        text = self.properties.get(f"ksql.functions.{function.lower()}.limit")
        return None if text is None else int(text)

    def spark(self, expression: Expression, scope: Scope) -> str:
        return render(expression, scope, Dialect.SPARK, release=self.release)

    def duckdb(self, expression: Expression, scope: Scope) -> str:
        return render(expression, scope, Dialect.DUCKDB, release=self.release)

    def in_duckdb(self, expression: Expression, scope: Scope) -> bool:
        return renderable(expression, scope, Dialect.DUCKDB, release=self.release)

    def type(self, expression: Expression, scope: Scope) -> SqlType:
        return type_of(expression, scope, release=self.release)
