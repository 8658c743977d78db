"""How a query that is answered once gets at its rows, for people."""

from collections.abc import Iterator, Sequence

from holdfast.errors import HoldfastError
from holdfast.names import ObjectName
from holdfast.serving.paths import Paths, ReadStore
from holdfast.serving.pull import select_paths
from holdfast.serving.read import kept_for, read_paths
from holdfast.serving.times import Times
from holdfast.sql.bound import BoundSelect, SelectKind
from holdfast.sql.bound_read import BoundRead


def explained_paths(bound: BoundSelect | BoundRead, store: ReadStore, times: Times) -> str:
    """The path to each table as it would be taken now, and why indexes would not be."""
    if isinstance(bound, BoundSelect):
        if bound.kind is not SelectKind.PULL or not bound.tables:
            return ""
        found = [select_paths(bound, store)]
    else:
        bound = kept_for(bound, times) or bound
        found = list(read_paths(bound, store).values())
    usable = [index for paths in found for index in paths.indexes]
    try:
        with times.reading(bound.tables, bound.as_of, usable) as choice:
            lines = [line for paths in found for line in _told(paths, choice.readable)]
    except HoldfastError as error:
        lines = [f"  Path: none, {error.message}"]
    return "\n".join(["", "Access", *lines])


def _told(paths: Paths, readable: Sequence[ObjectName]) -> Iterator[str]:
    access = paths.at(readable)
    yield f"  Path: {access}"
    reasons = {index.name: reason for index, reason in paths.refused}
    for index in paths.indexes:
        if index == access.index:
            continue
        if index.name not in readable:
            reasons[index.name] = "it cannot be read at the time of the query"
        reasons.setdefault(index.name, "another path leads to fewer rows")
    if access.index is not None:
        reasons.pop(access.index.name, None)
    yield from (f'  Not used: index "{name}", {reason}' for name, reason in reasons.items())
