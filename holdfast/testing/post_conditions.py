"""Conditions after the last record: the objects of the catalog and the topics."""

import re
from collections.abc import Iterator, Mapping

from holdfast.catalog.objects import CatalogObject, QueryEntry
from holdfast.catalog.snapshot import Catalog
from holdfast.errors import Feature, HoldfastError, NotYetSupported
from holdfast.names import TopicName
from holdfast.runtime.expressions.parse import parse_schema
from holdfast.runtime.plan.codec import decode
from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.plan.steps import (
    Step,
    StreamAggregate,
    StreamGroupBy,
    StreamGroupByV1,
    StreamSelectKey,
    StreamSelectKeyV1,
    StreamStreamJoin,
    StreamTableJoin,
    StreamWindowedAggregate,
    TableGroupBy,
    TableGroupByV1,
    TableSelectKey,
    sources_of,
)
from holdfast.testing.case import ExpectedSource, ExpectedTopic, Post
from holdfast.testing.wire import Wire

DEFAULT_PARTITIONS = 4
"""The default in ksqlDB's tests."""
INTERNAL = re.compile(r".*query_.*-(changelog|repartition)")
"""Internal topics of Kafka Streams. Holdfast has none: rows pass from step to step within a tick."""


def refuse_internal(topic: str) -> None:
    """Raise for an internal topic of Kafka Streams: a test that names one cannot run."""
    found = INTERNAL.fullmatch(topic)
    if found is not None:
        kind = found.group(1)
        raise NotYetSupported(Feature.TOPIC, f"{kind} of a step", f"Holdfast has no {kind} topics: {topic}")


def difference(
    post: Post, catalog: Catalog, wires: Mapping[TopicName, Wire], partitions: Mapping[str, int]
) -> str | None:
    """The first condition that does not hold, as text; None if all hold."""
    for source in post.sources:
        problem = _source_difference(source, catalog, wires)
        if problem is not None:
            return problem
    topics = {*catalog.topics, *_repartition_topics(catalog)}
    for topic in post.topics:
        problem = _topic_difference(topic, topics, wires, catalog, partitions)
        if problem is not None:
            return problem
    if post.forbidden_topics is not None:
        pattern = re.compile(post.forbidden_topics)
        for name in sorted(topics):
            if pattern.fullmatch(name):
                return f"no topic may match {post.forbidden_topics}, but there is {name}"
    return None


def _source_difference(wanted: ExpectedSource, catalog: Catalog, wires: Mapping[TopicName, Wire]) -> str | None:
    found = catalog.find(wanted.name)
    if found is None:
        return f"there is no {wanted.kind} {wanted.name}"
    if found.topic is None:
        return f"{found.KIND} {found.name} has no topic"
    wire = wires[found.topic]
    for what, expected, actual in _attributes(wanted, found, wire):
        if expected != actual:
            return f"{what} of {wanted.name}: expected {expected}, got {actual}"
    return None


def _attributes(wanted: ExpectedSource, found: CatalogObject, wire: Wire) -> Iterator[tuple[str, object, object]]:
    yield "kind", wanted.kind, found.KIND
    if wanted.schema is not None:
        yield "schema", _normal(wanted.schema), str(found.schema)
    if wanted.key_format is not None:
        window = wire.window
        size = value_of(window.size) if window is not None else None
        yield "key format", wanted.key_format.get("format"), found.formats.key_format.format
        yield "window type", wanted.key_format.get("windowType"), window.type.value if window is not None else None
        yield "window size", wanted.key_format.get("windowSize"), size.millis if size is not None else None
    if wanted.value_format is not None:
        yield "value format", wanted.value_format, found.formats.value_format.format
    if wanted.key_features is not None:
        yield "key features", sorted(wanted.key_features), sorted(value_of(found.formats.key_features) or ())
    if wanted.value_features is not None:
        yield "value features", sorted(wanted.value_features), sorted(value_of(found.formats.value_features) or ())
    if wanted.read_only is not None:
        yield "read-only", wanted.read_only, found.read_only


def _normal(schema: str) -> str:
    """A schema in the notation of the catalog: `ID INT KEY` is `` `ID` INTEGER KEY ``."""
    text = re.sub(r"\bPRIMARY\s+KEY\b", "KEY", schema)
    try:
        return str(parse_schema(text))
    except HoldfastError:
        return schema


def _topic_difference(
    wanted: ExpectedTopic,
    topics: set[TopicName],
    wires: Mapping[TopicName, Wire],
    catalog: Catalog,
    partitions: Mapping[str, int],
) -> str | None:
    if wanted.name not in topics:
        refuse_internal(wanted.name)
        return f"there is no topic {wanted.name}"
    name = TopicName(wanted.name)
    wire = wires.get(name)
    formats = (wire.formats.key_format.format, wire.formats.value_format.format) if wire else (None, None)
    for side, expected, actual in zip(("key", "value"), (wanted.key_format, wanted.value_format), formats, strict=True):
        if expected is not None and expected != actual:
            return f"{side} format of topic {name}: expected {expected}, got {actual}"
    count = _partitions(name, catalog, partitions)
    if wanted.partitions is not None and wanted.partitions != count:
        return f"partitions of topic {name}: expected {wanted.partitions}, got {count}"
    return None


def _partitions(topic: TopicName, catalog: Catalog, counts: Mapping[str, int]) -> int:
    """The partitions of a topic as the server creates it: from the statement, or from the source of its query."""
    if topic in counts:
        return counts[topic]
    for found in catalog.objects.values():
        if found.topic == topic:
            if found.topic_settings.partitions is not None:
                return found.topic_settings.partitions
            origin = catalog.origin(found)
            while origin is not None and origin.topic is None:
                origin = catalog.origin(origin)
            if origin is not None and origin.topic is not None:
                return _partitions(origin.topic, catalog, counts)
    return DEFAULT_PARTITIONS


# ---- repartition topics of ksqlDB


def _repartition_topics(catalog: Catalog) -> Iterator[TopicName]:
    """One topic per step that repartitions rows."""
    for entry in catalog.queries.values():
        yield from _repartition_topics_of(entry)


def _repartition_topics_of(entry: QueryEntry) -> Iterator[TopicName]:
    plan = decode(entry.plan).query
    if plan is not None:
        for step in _repartitioning_steps(plan.physical_plan, rekeyed_above=False):
            context = step.properties.query_context.replace("/", "-")
            yield TopicName(f"{entry.id}-{context}-repartition")


def _repartitioning_steps(step: Step, *, rekeyed_above: bool) -> Iterator[Step]:
    """Steps that repartition: groupings always; a new key only if a step above needs all rows of a key together."""
    needs = StreamAggregate | StreamWindowedAggregate | StreamStreamJoin | StreamTableJoin
    if isinstance(step, StreamGroupBy | StreamGroupByV1 | TableGroupBy | TableGroupByV1 | TableSelectKey) or (
        rekeyed_above and isinstance(step, StreamSelectKey | StreamSelectKeyV1)
    ):
        yield step
    for below in sources_of(step):
        yield from _repartitioning_steps(below, rekeyed_above=rekeyed_above or isinstance(step, needs))
