"""How long the windows of a windowed table are retained, from their start (for a session, their end)."""

from holdfast.catalog.objects import QueryEntry, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import PlanError
from holdfast.runtime.plan.codec import decode
from holdfast.runtime.plan.document import QueryPlan
from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.plan.steps import (
    CollectionSource,
    StreamWindowedAggregate,
    WindowedTableSource,
    WindowStoreSource,
    walk,
)
from holdfast.runtime.plan.window_text import parse_window
from holdfast.runtime.plan.windows import grace_of, length_of

WindowedSource = WindowedTableSource | WindowStoreSource | CollectionSource
"""The steps that may read a windowed table."""


def window_retention_ms(table: Table, catalog: Catalog) -> int | None:
    """The milliseconds for which Kafka Streams would retain a table's windows; None if they never expire.

    The windows of a query are retained for its RETENTION, by default for their size and grace period; those that it
    reads from other tables, for as long as there.
    """
    if table.window is None:
        return None
    if table.window_store is not None:
        return table.window_store.retention.millis
    plan = _plan(catalog.queries.get(table.query)) if table.query is not None else None
    if plan is None:
        return None
    steps = list(walk(plan.physical_plan))
    windows = [step for step in steps if isinstance(step, StreamWindowedAggregate)]
    if windows:
        return max(map(_of_window, windows))
    sources = [step for step in steps if isinstance(step, WindowedSource) and _is_windowed(step)]
    read = [_of_source(step, plan, catalog) for step in sources]
    limited = [retention for retention in read if retention is not None]
    return max(limited, default=None) if len(limited) == len(read) else None


def _plan(entry: QueryEntry | None) -> QueryPlan | None:
    """The plan of a query, if this release can read it."""
    if entry is None:
        return None
    try:
        return decode(entry.plan).query
    except PlanError:
        return None


def _of_window(step: StreamWindowedAggregate) -> int:
    window = step.window_expression
    window = parse_window(window) if isinstance(window, str) else window
    retention = value_of(window.retention)
    return length_of(window) + grace_of(window) if retention is None else retention.millis


def _is_windowed(step: WindowedSource) -> bool:
    return value_of(step.window_info) is not None


def _of_source(step: WindowedSource, plan: QueryPlan, catalog: Catalog) -> int | None:
    if isinstance(step, WindowStoreSource):
        return step.retention.millis
    names = (step.source_name,) if isinstance(step, CollectionSource) else plan.sources
    for found in map(catalog.find, names):
        if isinstance(found, Table) and (isinstance(step, CollectionSource) or found.topic == step.topic_name):
            return window_retention_ms(found, catalog)
    return None
