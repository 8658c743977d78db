"""CREATE OR REPLACE of what exists: what may become of an object that others read and write."""

from holdfast.catalog.objects import CatalogObject, QueryEntry, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import NotSupported, Position
from holdfast.runtime.plan.formats import FormatInfo, FormatProperties, TimestampColumn
from holdfast.runtime.plan.presence import Absent, given
from holdfast.runtime.plan.windows import OutputRefinement, WindowInfo
from holdfast.sql.bound import Target
from holdfast.types import Column


def check_replaces_source(target: Target, catalog: Catalog, position: Position | None) -> None:
    """Refuse an object over a topic that cannot be what it replaces."""
    found = catalog.find(target.name)
    if found is None:
        return
    if found.derived:
        raise _refused(found, "It is kept by a query, and would read a topic.", position)
    _check(found, target, position)


def replaced_query(target: Target, catalog: Catalog, position: Position | None) -> QueryEntry | None:
    """The query that a new one goes on from; None where nothing is replaced."""
    found = catalog.find(target.name)
    if found is None:
        return None
    writers = catalog.writers(found.name)
    if not found.derived:
        raise _refused(found, "No query keeps it: it reads a topic.", position)
    if not writers:
        raise _refused(found, f"Query {found.query}, which kept it, was terminated.", position)
    if len(writers) > 1:
        told = ", ".join(query.id for query in writers)
        raise _refused(found, f"Several queries write to it: {told}.", position)
    _check(found, target, position)
    return writers[0]


def _check(found: CatalogObject, target: Target, position: Position | None) -> None:
    """The same kind, topic, formats and key; all of its columns in their places, and others only behind them."""
    if target.kind.lower() != found.KIND:
        raise _refused(found, f"It would become a {target.kind.lower()}.", position)
    same = {
        "topic": (found.topic, target.topic),
        "key format": (found.formats.key_format, target.formats.key_format),
        "value format": (found.formats.value_format, target.formats.value_format),
        "wrapping of keys": (found.formats.key_features, target.formats.key_features),
        "wrapping of values": (found.formats.value_features, target.formats.value_features),
        "key": (found.schema.key, target.schema.key),
        "window": (found.window, target.window),
        "timestamp column": (found.timestamp, target.timestamp),
        "header columns": (found.schema.headers, target.schema.headers),
    }
    for what, (before, after) in same.items():
        if before != after:
            raise _refused(found, f"Its {what} would change from {_told(before)} to {_told(after)}.", position)
    had, has = found.schema.value, target.schema.value
    changed = [column.name for i, column in enumerate(had) if i >= len(has) or has[i] != column]
    if changed:
        raise _refused(found, f"These columns would be changed, missing or moved: {', '.join(changed)}.", position)
    if isinstance(found, Table) and found.schema.headers and len(has) > len(had):
        raise _refused(found, "A table with columns of headers cannot get other columns.", position)


def _told(value: object) -> str:
    match value:
        case tuple() if all(isinstance(each, Column) for each in value):
            return f"({', '.join(map(str, value))})"
        case tuple():
            return ", ".join(map(str, value))
        case None | Absent():
            return "none"
        case WindowInfo():
            return _window(value)
        case FormatInfo(format=name, properties=FormatProperties(delimiter=str(delimiter))):
            return f"{name} with '{delimiter}'"
        case FormatInfo(format=name):
            return name
        case TimestampColumn(column=name, format=pattern):
            return f"{name} as '{pattern}'" if given(pattern) else name
        case _:
            return str(value)


def _window(window: WindowInfo) -> str:
    size = given(window.size)
    words = str(window.type) if size is None else f"{window.type} of {size.seconds.normalize():f} seconds"
    return f"{words}, EMIT FINAL" if window.emit_strategy is OutputRefinement.FINAL else words


def _refused(found: CatalogObject, why: str, position: Position | None) -> NotSupported:
    return NotSupported(
        f'{found.KIND} "{found.name}" cannot be replaced in this way',
        detail=why,
        hint=f"DROP {found.KIND.upper()} {found.name} first, or give the new one another name.",
        position=position,
    )
