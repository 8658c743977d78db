"""CREATE OR REPLACE of an existing object: which changes are allowed."""

from holdfast.catalog.objects import CatalogObject, QueryEntry, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import NotSupported, Position
from holdfast.runtime.plan.formats import FormatInfo, FormatProperties, TimestampColumn
from holdfast.runtime.plan.optional import Absent, value_of
from holdfast.runtime.plan.windows import Duration, OutputRefinement, WindowInfo
from holdfast.sql.bind.target import Target
from holdfast.sql.literals.duration import duration_text
from holdfast.types import Column


def check_replaces_source(target: Target, catalog: Catalog, position: Position | None) -> None:
    """Refuse an object over a topic that cannot replace the existing one."""
    found = catalog.find(target.name)
    if found is None:
        return
    if found.derived:
        raise _refused(found, "It is maintained by a query, and would become an object over a topic.", position)
    _check(found, target, position)


def replaced_query(target: Target, catalog: Catalog, position: Position | None) -> QueryEntry | None:
    """The query that is replaced; None for a new object."""
    found = catalog.find(target.name)
    if found is None:
        return None
    writers = catalog.writers(found.name)
    if not found.derived:
        raise _refused(found, "It reads a topic; no query maintains it.", position)
    if not writers:
        raise _refused(found, f"Query {found.query}, which maintained it, was terminated.", position)
    if len(writers) > 1:
        ids = ", ".join(query.id for query in writers)
        raise _refused(found, f"Several queries write to it: {ids}.", position)
    _check(found, target, position)
    return writers[0]


def _check(found: CatalogObject, target: Target, position: Position | None) -> None:
    """The same kind, topic, formats and key; all existing columns in their positions, new ones only after them."""
    if target.kind.lower() != found.KIND:
        raise _refused(found, f"It would become a {target.kind.lower()}.", position)
    store, new_store = found.window_store if isinstance(found, Table) else None, target.window_store
    same = {
        "topic": (found.topic, target.topic),
        "key format": (found.formats.key_format, target.formats.key_format),
        "value format": (found.formats.value_format, target.formats.value_format),
        "wrapping of keys": (found.formats.key_features, target.formats.key_features),
        "wrapping of values": (found.formats.value_features, target.formats.value_features),
        "key": (found.schema.key, target.schema.key),
        "window": (found.window, target.window),
        "window topic": (store and store.topic, new_store and new_store.topic),
        "retention": (store and store.retention, new_store and new_store.retention),
        "timestamp column": (found.timestamp, target.timestamp),
        "header columns": (found.schema.headers, target.schema.headers),
    }
    for what, (before, after) in same.items():
        if before != after:
            raise _refused(found, f"Its {what} would change from {_shown(before)} to {_shown(after)}.", position)
    had, has = found.schema.value, target.schema.value
    changed = [column.name for i, column in enumerate(had) if i >= len(has) or has[i] != column]
    if changed:
        raise _refused(found, f"These columns would be changed, missing or moved: {', '.join(changed)}.", position)
    if isinstance(found, Table) and found.schema.headers and len(has) > len(had):
        raise _refused(found, "Columns cannot be added to a table with header columns.", position)


def _shown(value: object) -> str:
    match value:
        case tuple() if all(isinstance(each, Column) for each in value):
            return f"({', '.join(map(str, value))})"
        case tuple():
            return ", ".join(map(str, value))
        case None | Absent():
            return "none"
        case WindowInfo():
            return _window(value)
        case Duration():
            return duration_text(value.millis)
        case FormatInfo(format=name, properties=FormatProperties(delimiter=str(delimiter))):
            return f"{name} with delimiter '{delimiter}'"
        case FormatInfo(format=name):
            return name
        case TimestampColumn(column=name, format=pattern):
            return f"{name} with format '{pattern}'" if value_of(pattern) else name
        case _:
            return str(value)


def _window(window: WindowInfo) -> str:
    size = value_of(window.size)
    text = str(window.type) if size is None else f"{window.type} of {size.seconds.normalize():f} seconds"
    return f"{text}, EMIT FINAL" if window.emit_strategy is OutputRefinement.FINAL else text


def _refused(found: CatalogObject, reason: str, position: Position | None) -> NotSupported:
    return NotSupported(
        f'{found.KIND} "{found.name}" cannot be replaced in this way',
        detail=reason,
        hint=f"DROP {found.KIND.upper()} {found.name} first, or give the new one another name.",
        position=position,
    )
