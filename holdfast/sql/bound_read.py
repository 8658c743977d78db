"""A query that reads several objects, or computes more than a row at a time, as the SQL that engines run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.catalog.objects import Index, Table
from holdfast.runtime.expressions.physical import Dialect
from holdfast.runtime.expressions.tree import Expression
from holdfast.sql.moments import BoundAsOf
from holdfast.types import Column


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundRead:
    """A query of a client that is answered once, at one time for all that it reads.

    `sql` gives the columns as `r0`, `r1`, … and names the tables as `relations` does. Its `dialect` is the store's
    where all of it is proven equal there, else Spark's. In a relation, columns are called as the store calls them.
    """

    sql: str
    dialect: Dialect
    columns: tuple[Column, ...]
    relations: tuple[tuple[str, Table], ...]
    as_of: BoundAsOf | None = None
    indexes: tuple[Index, ...] = ()
    """Those on what it reads."""
    conditions: Mapping[str, tuple[Expression, ...]] = field(default_factory=dict)
    """By relation: what its rows must satisfy for the query to have any use for them."""
    kept: "BoundRead | None" = None
    """The same over what indexes keep of the views that it reads; None without such, or when this is that itself."""

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple({table.name: table for _, table in self.relations}.values())
