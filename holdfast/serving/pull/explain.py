"""The access paths of a pull query, for EXPLAIN."""

from collections.abc import Iterator, Sequence

from holdfast.errors import HoldfastError
from holdfast.names import ObjectName
from holdfast.serving.pull.paths import Paths, ReadStore
from holdfast.serving.pull.query import indexed_read, read_paths
from holdfast.serving.pull.table import select_paths
from holdfast.serving.time.read_times import Times
from holdfast.sql.read.pull import BoundRead
from holdfast.sql.read.select import BoundSelect, SelectKind


def explain_paths(bound: BoundSelect | BoundRead, store: ReadStore, times: Times) -> str:
    """The path to each table if the query ran now, and why other indexes are not used."""
    if isinstance(bound, BoundSelect):
        if bound.kind is not SelectKind.PULL or not bound.tables:
            return ""
        found = [select_paths(bound, store)]
    else:
        bound = indexed_read(bound, times) or bound
        found = list(read_paths(bound, store).values())
    usable = [index for paths in found for index in paths.indexes]
    try:
        with times.reading(bound.tables, bound.as_of, usable) as choice:
            lines = [line for paths in found for line in _lines(paths, choice.readable)]
    except HoldfastError as error:
        lines = [f"  Path: none, {error.message}"]
    return "\n".join(["", "Access", *lines])


def _lines(paths: Paths, readable: Sequence[ObjectName]) -> Iterator[str]:
    access = paths.at(readable)
    yield f"  Path: {access}"
    reasons = {index.name: reason for index, reason in paths.refused}
    for index in paths.indexes:
        if index == access.index:
            continue
        if index.name not in readable:
            reasons[index.name] = "it is not readable at the time of the query"
        reasons.setdefault(index.name, "another path reads fewer rows")
    if access.index is not None:
        reasons.pop(access.index.name, None)
    yield from (f'  Not used: index "{name}", {reason}' for name, reason in reasons.items())
