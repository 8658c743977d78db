"""Compiles the expressions of a plan, with the functions of the release and the properties that the plan was created
with."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.runtime.compiler.inference import type_of
from holdfast.runtime.compiler.sql import render, renderable
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.expressions.scope import Scope
from holdfast.runtime.expressions.tree import Expression
from holdfast.runtime.functions.registry import CURRENT, Release
from holdfast.types import SqlType


@dataclass(frozen=True, slots=True)
class ExpressionCompiler:
    """Types and SQL of expressions, as of a release."""

    release: Release = CURRENT
    properties: Mapping[str, str] = field(default_factory=dict)

    def limit(self, function: str) -> int | None:
        """The number of values that an aggregate function may collect per group; None if unlimited."""
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
