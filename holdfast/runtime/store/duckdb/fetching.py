"""The rows of one statement, as Arrow or as tuples."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar, cast

import duckdb
import pyarrow as pa

BATCH_ROWS = 131_072
T_co = TypeVar("T_co", covariant=True)


class Fetch(Protocol[T_co]):
    """Runs a statement and has its rows."""

    def __call__(self, connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object]) -> T_co: ...


def as_arrow(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object] = ()) -> pa.Table:
    """As a relation runs its statement, without the relation.

    `execute` would read the finished rows back through another statement, and a relation plans its own twice: half of
    what a prepared merge of 20 rows costs.
    """
    result = cast("Any", connection)._submit(sql, list(parameters) or None, "arrow", BATCH_ROWS)
    return cast("pa.Table", result.arrow_table())


def as_tuples(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object] = ()
) -> list[tuple[Any, ...]]:
    return list(connection.execute(sql, list(parameters) or None).fetchall())
