"""EXPLAIN TIMESTAMP: the time at which a query would read."""

from dataclasses import dataclass

from holdfast.catalog.snapshot import Catalog
from holdfast.errors import NotSupported
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect, SelectKind, bind_select
from holdfast.sql.syntax import statements as sql


@dataclass(frozen=True, slots=True)
class BoundExplainTimestamp:
    """EXPLAIN TIMESTAMP of a pull query."""

    query: BoundSelect | BoundRead


def bind_explain_timestamp(statement: sql.ExplainTimestamp, catalog: Catalog) -> BoundExplainTimestamp:
    bound = bind_select(statement.query, catalog)
    if isinstance(bound, BoundSelect) and bound.kind is not SelectKind.PULL:
        raise NotSupported(
            "EXPLAIN TIMESTAMP needs a pull query",
            hint="Leave out EMIT.",
            position=statement.query.position,
        )
    return BoundExplainTimestamp(bound)
