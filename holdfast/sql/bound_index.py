"""Statements about indexes after binding."""

from dataclasses import dataclass

from holdfast.catalog.objects import CatalogObject, Index
from holdfast.names import ObjectName
from holdfast.runtime.expressions.tree import Expression
from holdfast.sql.bound_query import BoundQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCreateIndex:
    """An index by expressions over an object's columns; without any, by its key.

    `query` is that of the view that it is on; None when `on` has rows of its own.
    """

    name: ObjectName
    on: CatalogObject
    expressions: tuple[Expression, ...]
    query: BoundQuery | None = None
    retain_ms: int | None = None


@dataclass(frozen=True, slots=True)
class BoundAlterIndex:
    """For how long an index is to keep its history; None is the default."""

    index: Index
    retain_ms: int | None


@dataclass(frozen=True, slots=True)
class BoundDropIndex:
    """An index to drop, with the holds on it."""

    index: Index
