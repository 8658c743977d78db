"""Statements that change the catalog: each becomes a command, and what runs is what the command says."""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import assert_never

from holdfast.catalog.commands import Command, apply, decode_command, encode_command
from holdfast.catalog.objects import CatalogObject, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.coordinator.cluster import Cluster
from holdfast.coordinator.holds import Holds
from holdfast.coordinator.topic_deletions import TopicDeletions
from holdfast.coordinator.wanted_topics import WantedTopics
from holdfast.errors import BindError, HoldfastError, NotSupported
from holdfast.kafka.admin import Admin
from holdfast.kafka.log import CommandLog
from holdfast.names import QueryId, StoreId
from holdfast.planner.commands import OfHolds, OfQueries, as_one, commands_for, hold_of
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

RETRY_SECONDS = 1.0


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
        log: CommandLog,
        admin: Admin,
        cluster: Cluster,
        deletions: TopicDeletions,
        catalog: Catalog,
        store_id: StoreId,
    ) -> None:
        self._log, self._cluster = log, cluster
        self._deletions, self._store_id = deletions, store_id
        self._topics = WantedTopics(admin, cluster.topics.was_read)
        self._next_number = 0
        self._pending = False
        self._again_at = 0.0
        self.catalog = catalog
        self.holds: Holds | None = None

    def follow(self, number: int) -> None:
        """Numbers of queries go on after those of commands that are there already."""
        self._next_number = number

    def execute(self, statement: Statement, text: str, properties: Mapping[str, str]) -> Done:
        """Bind, plan, check, write, then do: a statement that fails leaves nothing behind."""
        self._take_missed()
        bound = bind(statement, self.catalog, properties)
        if isinstance(bound, BoundNothing):
            return Done(bound.notice, -1)
        if not isinstance(bound, Plannable | OfQueries | OfHolds):
            raise BindError("this statement does not change the catalog")
        commands = commands_for(
            bound, text=text, number=self._next_number, properties=_kept(properties), store_id=self._store_id
        )
        if isinstance(bound, BoundCreateHold):
            return self._create_hold(bound, text, commands[0])
        if not commands:
            return Done(_message(bound), -1)
        before, command = self.catalog, as_one(commands, text)
        after = apply(before, command)
        self._topics.check(before, after)
        self._check_runs(after)
        if isinstance(bound, BoundDrop) and bound.delete_topic and bound.target.topic is not None:
            self._deletions.intend(bound.target.topic)
        offset = self._append(command)
        self.catalog = after
        self._set_up()
        plans = {id_: entry.plan for id_, entry in before.queries.items()}
        started = next((id_ for id_, entry in after.queries.items() if plans.get(id_) != entry.plan), None)
        return Done(_message(bound), offset, started)

    def commit(self, draft: Draft) -> list[tuple[Changing, Done]]:
        """Do what a transaction says, by one record of the command topic: all of it or nothing."""
        self._take_missed()
        before, number = self.catalog, self._next_number
        planned = draft.planned(before, number=number, store_id=self._store_id)
        self._topics.check(before, planned.after)
        self._check_runs(planned.after)
        if not planned.commands:
            return [(bound, Done(bound.notice, -1)) for bound in planned.bound if isinstance(bound, BoundNothing)]
        with self._placed(planned) as at:
            offset = self._append(draft.command(planned, self._store_id))
        self.catalog = planned.after
        self._set_up()
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
        """Set up again what could not be, and what a statement has done that seemed to fail; between ticks."""
        self._take_missed()
        if self._pending and time.monotonic() >= self._again_at:
            self._set_up()

    def _take_missed(self) -> None:
        missed = self._log.missed()
        for record in missed:
            self.catalog = apply(self.catalog, decode_command(record.key, record.value, offset=record.offset))
            self._next_number = record.offset + 1
        if missed:
            self._set_up()

    def _set_up(self) -> None:
        """Make the topics of the catalog and run its queries; what fails now is tried again.

        A command that is written stands: it must not seem to have failed because Kafka or the disk did after it.
        """
        try:
            problem = self._topics.make(self.catalog)
            self._cluster.install(self.catalog)
            self._cluster.pause()
            if self.holds is not None:
                self.holds.settle()
            self._deletions.finish(self.catalog)
        except HoldfastError as error:
            problem = error
        self._try_again_because_of(problem)

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
        problem = self._topics.make(self.catalog)
        self._cluster.install(self.catalog)
        self._cluster.drop_strays()
        self._deletions.finish(self.catalog)
        self._try_again_because_of(problem)

    def _try_again_because_of(self, problem: HoldfastError | None) -> None:
        self._pending = problem is not None
        self._again_at = time.monotonic() + RETRY_SECONDS
        if problem is not None:
            log.warning("the catalog is not yet all set up, trying again: %s", problem)

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
