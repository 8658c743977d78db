"""Reading one row.

`fetchone` would leave the result unfinished, and an unfinished result keeps its transaction and its connection.
"""

from typing import Any

import duckdb


def one(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, ...]:
    """The only row of a statement that always has one."""
    [row] = connection.execute(sql).fetchall()
    return tuple(row)
