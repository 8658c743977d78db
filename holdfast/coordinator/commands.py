"""Statements that change the catalog: each becomes a command, and what runs is what the command says."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import assert_never

from holdfast.catalog.commands import Command, apply, encode_command
from holdfast.catalog.objects import CatalogObject, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.config import Settings
from holdfast.coordinator.cluster import Cluster
from holdfast.coordinator.holds import Holds
from holdfast.coordinator.topic_deletions import TopicDeletions
from holdfast.errors import BindError, HoldfastError, NotSupported
from holdfast.kafka.admin import Admin, TopicSpec
from holdfast.kafka.log import CommandLog
from holdfast.names import QueryId, StoreId, TopicName
from holdfast.planner.commands import OfHolds, OfQueries, commands_for, hold_of
from holdfast.planner.draft import Changing, Draft, Planned
from holdfast.planner.plan import Plannable
from holdfast.runtime.plan.codec import decode
from holdfast.runtime.program import Program
from holdfast.runtime.serdes.decoding import Decoder
from holdfast.runtime.spark.build import build_query, build_table
from holdfast.runtime.store.port import Time
from holdfast.runtime.store.schemas import extends
from holdfast.sql.bind import bind
from holdfast.sql.bound import (
    BoundAlter,
    BoundCreateAs,
    BoundCreateFunction,
    BoundCreateSource,
    BoundCreateType,
    BoundCreateView,
    BoundDrop,
    BoundDropFunction,
    BoundDropType,
    BoundDropView,
    BoundInsertSelect,
    BoundNothing,
    BoundPause,
    BoundResume,
    BoundTerminate,
)
from holdfast.sql.bound_hold import BoundCreateHold, BoundDropHold, BoundRenameHold
from holdfast.sql.bound_index import BoundAlterIndex, BoundCreateIndex, BoundDropIndex
from holdfast.sql.session import KEPT
from holdfast.sql.statements import Statement

log = logging.getLogger(__name__)

DEFAULT_PARTITIONS = 1
COMPACTED = {"cleanup.policy": "compact"}


@dataclass(frozen=True, slots=True)
class Done:
    """What a statement did: the command's place in the log, and the query that it started."""

    message: str
    sequence: int
    query: QueryId | None = None


class Commands:
    """Changes the catalog. On the coordinator's thread; `catalog` may be read from any."""

    def __init__(
        self,
        settings: Settings,
        log: CommandLog,
        admin: Admin,
        cluster: Cluster,
        deletions: TopicDeletions,
        catalog: Catalog,
        store_id: StoreId,
    ) -> None:
        self._settings, self._log, self._admin, self._cluster = settings, log, admin, cluster
        self._deletions, self._store_id = deletions, store_id
        self._next_number = 0
        self._pending = False
        self.catalog = catalog
        self.holds: Holds | None = None

    def follow(self, number: int) -> None:
        """Numbers of queries go on after those of commands that are there already."""
        self._next_number = number

    def execute(self, statement: Statement, text: str, properties: Mapping[str, str]) -> Done:
        """Bind, plan, check, write, then do: a statement that fails leaves nothing behind."""
        bound = bind(statement, self.catalog, properties)
        if isinstance(bound, BoundNothing):
            return Done(bound.notice, -1)
        if not isinstance(bound, Plannable | OfQueries | OfHolds):
            raise BindError("this statement does not change the catalog")
        if isinstance(bound, BoundCreateSource):
            self._check_topic(bound)
        commands = commands_for(
            bound, text=text, number=self._next_number, properties=_kept(properties), store_id=self._store_id
        )
        if isinstance(bound, BoundCreateHold):
            return self._create_hold(bound, text, commands[0])
        before = after = self.catalog
        for command in commands:
            after = apply(after, command)
        self._check_runs(after)
        if isinstance(bound, BoundDrop) and bound.delete_topic and bound.target.topic is not None:
            self._deletions.intend(bound.target.topic)
        offset = -1
        for command in commands:
            offset = self._append(command)
        self.catalog = after
        self._pending = True
        self.settle()
        plans = {id_: entry.plan for id_, entry in before.queries.items()}
        started = next((id_ for id_, entry in after.queries.items() if plans.get(id_) != entry.plan), None)
        return Done(_message(bound), offset, started)

    def commit(self, draft: Draft) -> list[tuple[Changing, Done]]:
        """Do what a transaction says, by one record of the command topic: all of it or nothing."""
        before, number = self.catalog, self._next_number
        planned = draft.planned(before, number=number, store_id=self._store_id)
        self._check_runs(planned.after)
        if not planned.commands:
            return [(bound, Done(bound.notice, -1)) for bound in planned.bound if isinstance(bound, BoundNothing)]
        with self._placed(planned) as at:
            offset = self._append(draft.command(planned, self._store_id))
        self.catalog, self._pending = planned.after, True
        self.settle()
        started = next((id_ for id_ in planned.after.queries if id_ not in before.queries), None)
        return [(bound, _done(bound, offset, at, started)) for bound in planned.bound]

    @contextmanager
    def _placed(self, planned: Planned) -> Iterator[Time | None]:
        """The new hold of a transaction has its time on what its object is computed from, before its command is there.

        Gives that time; what the block does not bring about is taken back.
        """
        bound = planned.new_hold
        if bound is None:
            yield None
            return
        assert self.holds is not None
        hold = planned.after.hold(bound.name)
        at = self.holds.place_on_inputs(hold, planned.inputs, bound.at)
        try:
            yield at
        except BaseException:
            self.holds.forget(hold)
            raise

    def settle(self) -> None:
        """Make the topics of the catalog and run its queries; what fails now is tried again between ticks.

        A command that is written stands: it must not seem to have failed because Kafka or the disk did after it.
        """
        if not self._pending:
            return
        try:
            self._create_topics(self.catalog)
            self._cluster.install(self.catalog)
            self._cluster.pause()
            if self.holds is not None:
                self.holds.settle()
            self._deletions.finish(self.catalog)
            self._pending = False
        except HoldfastError as error:
            log.warning("the catalog is not yet all set up, trying again: %s", error)

    def _create_hold(self, bound: BoundCreateHold, text: str, command: Command) -> Done:
        """Its time first, then its command: a hold that is in the catalog holds."""
        assert self.holds is not None
        hold = hold_of(bound, text=text, number=self._next_number)
        at = self.holds.place(hold, bound.at)
        try:
            offset = self._append(command)
        except BaseException:
            self.holds.forget(hold)
            raise
        self.catalog = apply(self.catalog, command)
        return Done(f"Hold {hold.name} created at {at}.", offset)

    def _append(self, command: Command) -> int:
        offset = self._log.append(*encode_command(command))
        self._next_number = offset + 1
        return offset

    def recover(self) -> None:
        """Run what the catalog has, after a start."""
        self._create_topics(self.catalog)
        self._cluster.install(self.catalog)
        self._cluster.drop_strays()
        self._deletions.finish(self.catalog)

    def _check_topic(self, bound: BoundCreateSource) -> None:
        """A topic that does not exist is made only when the statement says with how many partitions."""
        target = bound.target
        assert target.topic is not None
        known = self._admin.describe([target.topic]).get(target.topic)
        wanted = target.topic_settings.partitions
        if known is None and wanted is None:
            raise BindError(
                f'topic "{target.topic}" does not exist',
                hint="Create it in Kafka, or write WITH (..., PARTITIONS = 1) to have it created.",
            )
        if known is not None and wanted is not None and known.partitions != wanted:
            raise BindError(
                f'topic "{target.topic}" exists with {known.partitions} partitions, not {wanted}',
                hint="Leave PARTITIONS out to use the topic as it is.",
            )

    def _check_runs(self, after: Catalog) -> None:
        """Build what is new from its encoded plan, so that a plan that cannot run is refused and not stored."""
        sources = self._cluster.dataflow
        for name, found in after.objects.items():
            if self.catalog.objects.get(name) is not found:
                _check_reads(found)
        for id_, entry in after.queries.items():
            known = self.catalog.queries.get(id_)
            if known is not None and known.plan == entry.plan:
                continue
            if entry.reason is not None:
                raise HoldfastError(entry.reason)
            plan = decode(entry.plan).query
            assert plan is not None
            program = build_query(plan, sources, properties=entry.properties)
            if known is not None and (running := sources.programs.get(id_)) is not None:
                _check_goes_on(running, program)

    def _create_topics(self, catalog: Catalog) -> None:
        """Make the topics that are not there. Again after a crash: those that are there stay."""
        existing = set(self._admin.topics())
        missing = {
            found.topic: self._spec(found, found.topic, catalog)
            for found in catalog.objects.values()
            if found.topic is not None and found.topic not in existing
        }
        if missing:
            self._admin.create(*missing.values())

    def _spec(self, found: CatalogObject, topic: TopicName, catalog: Catalog) -> TopicSpec:
        settings = found.topic_settings
        partitions = settings.partitions or self._partitions_of_source(found, catalog) or DEFAULT_PARTITIONS
        config = dict(COMPACTED) if isinstance(found, Table) and found.derived else {}
        if settings.retention_ms is not None:
            config["retention.ms"] = str(settings.retention_ms)
        return TopicSpec(name=topic, partitions=partitions, replication=settings.replicas, config=config)

    def _partitions_of_source(self, found: CatalogObject, catalog: Catalog) -> int | None:
        """A derived topic has as many partitions as what it is derived from."""
        origin = catalog.origin(found)
        while origin is not None and origin.topic is None:
            origin = catalog.origin(origin)
        if origin is None or origin.topic is None:
            return None
        known = self._admin.describe([origin.topic]).get(origin.topic)
        return known.partitions if known else None


def _check_goes_on(running: Program, program: Program) -> None:
    """Refuse a plan that would need other state than its query has."""
    if program.states != running.states or not extends(program.layout, running.layout):
        raise NotSupported(
            f"query {running.query} cannot go on with the new plan",
            detail="What it has to remember of each key would change.",
            hint="Drop the object first, or give the new one another name.",
        )


def _check_reads(found: CatalogObject) -> None:
    """Refuse an object over a topic whose records could not be read."""
    if found.derived:
        return
    if isinstance(found, Table):
        assert found.topic is not None
        build_table(found.name, found.topic, found.schema, found.formats, found.timestamp, found.window)
    else:
        Decoder(found.schema, found.formats, window=found.window).check()


def _kept(properties: Mapping[str, str]) -> dict[str, str]:
    """The session's properties that change results."""
    return {name: value for name, value in properties.items() if name in KEPT}


def _done(bound: Changing, offset: int, at: Time | None, started: QueryId | None) -> Done:
    match bound:
        case BoundNothing(notice):
            return Done(notice, -1)
        case BoundCreateHold(name=name) if at is not None:
            return Done(f"Hold {name} created at {at}.", offset)
        case BoundCreateAs() | BoundCreateIndex():
            return Done(_message(bound), offset, started)
        case _:
            return Done(_message(bound), offset)


def _message(bound: Plannable | OfQueries | OfHolds) -> str:
    match bound:
        case BoundCreateSource(target=target) | BoundCreateAs(target=target):
            return f"{target.kind.capitalize()} {target.name} created."
        case BoundInsertSelect(target=target):
            return f"Query that writes to {target.name} created."
        case BoundAlter(target=target):
            return f"{target.KIND.capitalize()} {target.name} altered."
        case BoundCreateType(name=name):
            return f"Type {name} created."
        case BoundDropType(name=name):
            return f"Type {name} dropped."
        case BoundCreateFunction(function=function):
            return f"Function {function.name} created, version {function.digest}."
        case BoundCreateView(name=name):
            return f"View {name} created."
        case BoundDropView(name=name):
            return f"View {name} dropped."
        case BoundCreateIndex(name=name):
            return f"Index {name} created."
        case BoundAlterIndex(index):
            return f"Index {index.name} altered."
        case BoundDropIndex(index):
            return f"Index {index.name} dropped."
        case BoundDropFunction(name=name):
            return f"Function {name} dropped."
        case BoundDrop(target=target):
            return f"Source {target.name} dropped."
        case BoundCreateHold(name=name):
            return f"Hold {name} created."
        case BoundRenameHold(hold, name):
            return f"Hold {hold.name} is now {name}."
        case BoundDropHold(hold):
            return f"Hold {hold.name} dropped."
        case BoundTerminate():
            return "Query terminated."
        case BoundPause():
            return "Query paused."
        case BoundResume():
            return "Query resumed."
        case _:
            assert_never(bound)
