"""Continuous queries after binding."""

from dataclasses import dataclass

from holdfast.catalog.objects import CatalogObject
from holdfast.runtime.expressions.tree import Call, Expression
from holdfast.runtime.plan.steps import JoinType
from holdfast.runtime.plan.windows import WindowExpression
from holdfast.sql.relation import BoundSource
from holdfast.sql.statements import Within
from holdfast.types import SqlType


@dataclass(frozen=True, slots=True)
class BoundColumn:
    """One column of a result."""

    name: str
    expression: Expression
    type: SqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundJoin:
    """Two inputs joined where `left_key = right_key`, which are qualified. `key` names the result's key column.

    A join on a `foreign_key` keeps the key of its left input, and `key` is that of its first column.
    """

    kind: JoinType
    left: "BoundInput"
    right: "BoundInput"
    left_key: Expression
    right_key: Expression
    key: str
    within: Within | None = None
    foreign_key: bool = False


BoundInput = BoundSource | BoundJoin


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundQuery:
    """A continuous query. `keys` are the names of the result's key columns, in the order of the key.

    Key *i* is the column whose expression is `group_by[i]` or `partition_by[i]`; without those it renames key *i* of
    the input. `table_functions` are calls that make rows; the projection names their results `KSQL_SYNTH_n`.
    """

    input: BoundInput
    sources: tuple[BoundSource, ...]
    projection: tuple[BoundColumn, ...]
    keys: tuple[str, ...]
    where: Expression | None = None
    partition_by: tuple[Expression, ...] = ()
    table_functions: tuple[Call, ...] = ()
    group_by: tuple[Expression, ...] = ()
    window: WindowExpression | None = None
    having: Expression | None = None

    @property
    def source(self) -> CatalogObject:
        """The first of its sources."""
        return self.sources[0].object

    @property
    def values(self) -> tuple[BoundColumn, ...]:
        """The value columns of the result."""
        return tuple(column for column in self.projection if column.name not in self.keys)

    @property
    def aggregates(self) -> bool:
        return bool(self.group_by)
