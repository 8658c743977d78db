"""Calls of a running service: statements, reads, and the records of its topics."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.app import Service
from holdfast.errors import HoldfastError
from holdfast.kafka.records import Partition
from holdfast.names import TopicName
from holdfast.sql.bind.insert import BoundInsert
from holdfast.sql.bind.statement import bind
from holdfast.sql.read.select import BoundSelect
from holdfast.sql.read.subscribe import BoundSubscribe
from holdfast.sql.syntax.parse import statements

SECONDS = 120


def run(service: Service, sql: str, properties: Mapping[str, str] | None = None) -> None:
    """Run statements as a client does; afterwards a stepped service runs until it is idle."""
    for parsed in statements(sql):
        bound = bind(parsed.statement, service.catalog, properties or {})
        if isinstance(bound, BoundInsert):
            service.insert(bound)
        else:
            service.execute(parsed, properties or {})
    if service.stepped:
        service.run_until_idle()


def rows(service: Service, table: str) -> set[tuple[Any, ...]]:
    """The rows of a table; none while it is being built."""
    return pulled(service, f"SELECT * FROM {table};")


def pulled(service: Service, sql: str) -> set[tuple[Any, ...]]:
    """The rows of a pull query over one table; none while that is being built."""
    bound = bind(next(iter(statements(sql))).statement, service.catalog, {})
    assert isinstance(bound, BoundSelect)
    try:
        return {tuple(row.values()) for row in service.pull(bound).rows.to_pylist()}
    except HoldfastError:
        return set()


def records(service: Service, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """The committed records of a topic, by partition and offset."""
    return [(row["key"], row["value"]) for row in raw_records(service, topic)]


def raw_records(service: Service, topic: str) -> list[dict[str, Any]]:
    name = TopicName(topic)
    known = service._admin.describe([name])[name]
    partitions: list[Partition] = [(name, number) for number in range(known.partitions)]
    starts, ends = service._admin.starts(partitions), service._admin.ends(partitions)
    found = service._ranges.read({p: (starts[p], ends[p]) for p in partitions})
    return sorted(found.to_pylist(), key=lambda row: (row["partition"], row["offset"]))


def followed(service: Service, sql: str, count: int) -> list[tuple[Any, ...]]:
    """The first rows of a push query, with the columns that precede those of the query."""
    bound = bind(next(iter(statements(sql))).statement, service.catalog, {})
    assert isinstance(bound, BoundSelect | BoundSubscribe)
    push, found, deadline = service.push(bound, {}), [], time.monotonic() + SECONDS
    while len(found) < count and time.monotonic() < deadline:
        batch = push.next(0.5)
        found += [tuple(row.values()) for row in batch.rows.to_pylist()] if batch is not None else []
    service.close_push(push.id)
    return found


def states(service: Service) -> dict[str, str]:
    return {str(query.id): query.state for query in service.queries()}


def wait(get: Callable[[], Any], expected: Any) -> None:
    """Wait until something is as expected."""
    deadline = time.monotonic() + SECONDS
    while (found := get()) != expected and time.monotonic() < deadline:
        time.sleep(0.1)
    assert found == expected
