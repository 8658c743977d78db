"""What expressions mean to a plan: functions are those of the release that the plan was made with."""

from dataclasses import dataclass

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

    def spark(self, expression: Expression, scope: Scope) -> str:
        return render(expression, scope, Dialect.SPARK, release=self.release)

    def duckdb(self, expression: Expression, scope: Scope) -> str:
        return render(expression, scope, Dialect.DUCKDB, release=self.release)

    def in_duckdb(self, expression: Expression, scope: Scope) -> bool:
        return renderable(expression, scope, Dialect.DUCKDB, release=self.release)

    def type(self, expression: Expression, scope: Scope) -> SqlType:
        return type_of(expression, scope, release=self.release)
