"""The topics that the catalog wants: checked before a command is written, created after it."""

from collections.abc import Callable, Iterable

from holdfast.catalog.objects import CatalogObject, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.catalog.window_retention import window_retention_ms
from holdfast.errors import BindError, HoldfastError
from holdfast.kafka.port import TopicAdmin, TopicProblem, TopicSpec
from holdfast.names import TopicName

DEFAULT_PARTITIONS = 1
COMPACTED = {"cleanup.policy": "compact"}
BEYOND_RETENTION_MS = 86_400_000
"""How much longer than its window a record is retained, as Kafka Streams does for the clocks of other machines."""


class WantedTopics:
    """Creates topics. `was_read` says whether a topic was read before: if it is missing now, it was deleted."""

    def __init__(self, admin: TopicAdmin, was_read: Callable[[TopicName], bool]) -> None:
        self._admin, self._was_read = admin, was_read
        self.uncreated: frozenset[TopicName] = frozenset()
        """Topics that could not be created yet."""

    def check(self, before: Catalog, after: Catalog) -> None:
        """Refuse objects whose topics are missing and cannot be created, or exist with other partitions."""
        known = {found.topic for found in before.objects.values()}
        new = {found.topic: found for found in after.objects.values() if found.topic is not None}
        new = {topic: found for topic, found in new.items() if topic not in known}
        existing = self._admin.describe(new)
        for topic, found in new.items():
            wanted = found.topic_settings.partitions
            if topic not in existing and wanted is None and not found.derived:
                raise BindError(
                    f'topic "{topic}" does not exist',
                    hint="Create it in Kafka, or write WITH (..., PARTITIONS = 1) to have it created.",
                )
            if topic in existing and wanted is not None and existing[topic].partitions != wanted:
                raise BindError(
                    f'topic "{topic}" exists with {existing[topic].partitions} partitions, not {wanted}',
                    hint="Leave PARTITIONS out to use the topic as it is.",
                )
        self._admin.check(*self._specs((o for topic, o in new.items() if topic not in existing), after))

    def create(self, catalog: Catalog) -> HoldfastError | None:
        """Create the missing topics, as many as possible; returns why one could not be created.

        A topic that was read and is gone is not created again: that its records are missing would go unnoticed.
        """
        described = self._admin.describe_each(o.topic for o in catalog.objects.values() if o.topic is not None)
        missing = {
            found.topic: found
            for found in catalog.objects.values()
            if found.topic is not None
            and found.topic not in described.found
            # Whether it exists is not known: who reads or writes it reports the problem.
            and found.topic not in described.problems
            and (found.derived or not self._was_read(found.topic))
        }
        specs: list[TopicSpec] = []
        problems: dict[TopicName, HoldfastError] = {}
        for topic, found in missing.items():
            try:
                specs.append(self._spec(found, topic, catalog))
            except TopicProblem as problem:
                problems[topic] = problem
        try:
            self._admin.create(*specs)
        except HoldfastError:
            problems |= self._create_each(specs)
        self.uncreated = frozenset(problems)
        return next(iter(problems.values()), None)

    def _create_each(self, specs: Iterable[TopicSpec]) -> dict[TopicName, HoldfastError]:
        problems: dict[TopicName, HoldfastError] = {}
        for spec in specs:
            try:
                self._admin.create(spec)
            except HoldfastError as error:
                problems[spec.name] = error
        return problems

    def _specs(self, objects: Iterable[CatalogObject], catalog: Catalog) -> list[TopicSpec]:
        wanted = {found.topic: self._spec(found, found.topic, catalog) for found in objects if found.topic is not None}
        return list(wanted.values())

    def _spec(self, found: CatalogObject, topic: TopicName, catalog: Catalog) -> TopicSpec:
        settings = found.topic_settings
        partitions = settings.partitions or self._partitions_of_source(found, catalog) or DEFAULT_PARTITIONS
        config = _table_config(found, catalog) if isinstance(found, Table) and found.derived else {}
        if settings.retention_ms is not None:
            config["retention.ms"] = str(settings.retention_ms)
        if settings.cleanup_policy is not None:
            config["cleanup.policy"] = settings.cleanup_policy
        return TopicSpec(name=topic, partitions=partitions, replication=settings.replicas, config=config)

    def _partitions_of_source(self, found: CatalogObject, catalog: Catalog) -> int | None:
        """A derived topic has as many partitions as its source."""
        origin = catalog.origin(found)
        while origin is not None and origin.topic is None:
            origin = catalog.origin(origin)
        if origin is None or origin.topic is None:
            return None
        known = self._admin.describe([origin.topic]).get(origin.topic)
        return known.partitions if known else None


def _table_config(found: Table, catalog: Catalog) -> dict[str, str]:
    """The settings of a derived table's topic. Windows that expire leave it in time, also where nobody deletes them."""
    retention_ms = window_retention_ms(found, catalog)
    if retention_ms is None:
        return dict(COMPACTED)
    return {"cleanup.policy": "compact,delete", "retention.ms": str(retention_ms + BEYOND_RETENTION_MS)}
