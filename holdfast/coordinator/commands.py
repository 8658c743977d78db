"""Statements that change the catalog: each becomes a command, and the command is what runs."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from holdfast.catalog.commands import Command, CommandId, decode_command, encode_command
from holdfast.catalog.current import CurrentCatalog
from holdfast.catalog.fold import apply, apply_plan
from holdfast.catalog.objects import CatalogObject, Table
from holdfast.catalog.snapshot import Catalog
from holdfast.coordinator.drains import Drains
from holdfast.coordinator.holds import Holds
from holdfast.coordinator.reconcile import Reconciler
from holdfast.coordinator.topics.deletions import TopicDeletions
from holdfast.coordinator.topics.wanted import WantedTopics
from holdfast.errors import BindError, CommandInDoubt, HoldfastError, NotSupported
from holdfast.kafka.command_log import CommandLog
from holdfast.names import QueryId, StoreId
from holdfast.planner.commands import as_one, commands_for, hold_of
from holdfast.planner.draft import Change, Draft, Planned
from holdfast.runtime.dataflow import Dataflow
from holdfast.runtime.plan.codec import decode
from holdfast.runtime.program import Program
from holdfast.runtime.serdes.decoder import Decoder
from holdfast.runtime.spark.build import build_query, build_table
from holdfast.runtime.store.port import Time
from holdfast.runtime.store.schemas import extends
from holdfast.sql.bind.ddl import ddl_kind
from holdfast.sql.bind.ddl_kind import BoundDdl, BoundPlan
from holdfast.sql.bind.drop import BoundDrop
from holdfast.sql.bind.hold import BoundCreateHold
from holdfast.sql.bind.nothing import BoundNothing
from holdfast.sql.bind.query_control import BoundTerminate
from holdfast.sql.bind.statement import bind
from holdfast.sql.properties.session import stored_properties
from holdfast.sql.syntax.statements import Statement
from holdfast.wall_clock import WallClock

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Done:
    """What a statement did: its command, the command's offset in the log, and the query that it started.

    A statement without effect has no command; `message` says why. `notices` are for the user of a successful one.
    """

    message: str
    sequence: int
    query: QueryId | None = None
    command: CommandId | None = None
    notices: tuple[str, ...] = ()


class Commands:
    """Changes the catalog. On the coordinator's thread."""

    def __init__(
        self,
        log: CommandLog,
        topics: WantedTopics,
        deletions: TopicDeletions,
        drains: Drains,
        dataflow: Dataflow,
        reconciler: Reconciler,
        holds: Holds,
        current: CurrentCatalog,
        clock: WallClock,
        *,
        store_id: StoreId,
        next_number: int,
    ) -> None:
        """`next_number` follows the numbers of the commands that exist already."""
        self._log, self._topics, self._deletions, self._dataflow = log, topics, deletions, dataflow
        self._drains = drains
        self._reconciler, self._holds, self._current, self._clock = reconciler, holds, current, clock
        self._store_id, self._next_number = store_id, next_number
        self._pending = False
        self._logged = ""
        self._retry_at = 0.0

    @property
    def catalog(self) -> Catalog:
        return self._current()

    def execute(self, statement: Statement, text: str, properties: Mapping[str, str]) -> Done:
        """Bind, plan, check, write, then apply: a statement that fails changes nothing."""
        self._take_missed()
        bound = bind(statement, self.catalog, properties)
        if isinstance(bound, BoundNothing):
            return Done(bound.notice, -1)
        if not isinstance(bound, BoundDdl):
            raise BindError("this statement does not change the catalog")
        commands = commands_for(
            bound,
            text=text,
            number=self._next_number,
            properties=stored_properties(properties),
            store_id=self._store_id,
        )
        if isinstance(bound, BoundCreateHold):
            return self._create_hold(bound, text, commands[0])
        if not commands:
            return _done(bound, -1)
        before, command = self.catalog, as_one(commands, text)
        after = apply(before, command)
        self._topics.check(before, after)
        self._check_runs(after)
        if isinstance(bound, BoundDrop) and bound.delete_topic and bound.target.topic is not None:
            self._deletions.intend(bound.target.topic)
        offset = self._append(command)
        self._current.replace(apply(before, command.written_at(offset)))
        self._set_up()
        plans = {id_: entry.plan for id_, entry in before.queries.items()}
        started = next((id_ for id_, entry in after.queries.items() if plans.get(id_) != entry.plan), None)
        return _done(bound, offset, query=started, left=self._drains.wait())

    def run_plan(self, plan: bytes, properties: Mapping[str, str]) -> None:
        """Run a stored plan as a command of its own."""
        command = Command(id=CommandId("", "", ""), statement="", plan=plan, properties=dict(properties))
        before, after = self.catalog, apply_plan(self.catalog, command, plan)
        self._topics.check(before, after)
        self._check_runs(after)
        self._current.replace(apply_plan(before, command.written_at(self._append(command)), plan))
        self._set_up()

    def commit(self, draft: Draft) -> list[Done]:
        """Run the statements of a transaction, by one record of the command topic: all of them or none."""
        self._take_missed()
        before, number = self.catalog, self._next_number
        planned = draft.planned(before, number=number, store_id=self._store_id)
        self._topics.check(before, planned.after)
        self._check_runs(planned.after)
        if not planned.commands:
            return [_done(bound, -1) for bound in planned.bound]
        with self._placed(planned) as at:
            command = draft.command(planned, self._store_id)
            offset = self._append(command)
        self._current.replace(apply(before, command.written_at(offset)))
        self._set_up()
        started = next((id_ for id_ in planned.after.queries if id_ not in before.queries), None)
        left = self._drains.wait()
        return [_done(bound, offset, at=at, query=started, left=left) for bound in planned.bound]

    @contextmanager
    def _placed(self, planned: Planned) -> Iterator[Time | None]:
        """Set the time of a transaction's new hold, on the sources of its object, before its command is written.

        Yields that time; the hold is removed again if the block fails.
        """
        bound = planned.new_hold
        if bound is None:
            yield None
            return
        hold = planned.after.hold(bound.name)
        at = self._holds.create_on_inputs(hold, planned.inputs, bound.at)
        try:
            yield at
        except CommandInDoubt:
            raise  # If the command was written, the hold needs its time; otherwise `Holds.settle` removes it.
        except BaseException:
            self._holds.undo_create(hold)
            raise

    def settle(self) -> None:
        """Between ticks: retry a failed setup, and apply commands that were written though their statements failed."""
        self._take_missed()
        if self._pending and self._clock.monotonic() >= self._retry_at:
            self._set_up()

    def _take_missed(self) -> None:
        was_in_doubt = self._log.is_in_doubt
        missed = self._log.missed()
        for record in missed:
            self._current.replace(apply(self.catalog, decode_command(record.key, record.value, offset=record.offset)))
            self._next_number = record.offset + 1
        if missed:
            self._set_up()
        elif was_in_doubt:
            self._holds.settle()

    def _set_up(self) -> None:
        """Create the topics of the catalog and run its queries; a failure is retried.

        A written command is final: its statement must not fail because of what Kafka or the disk do after it.
        """
        try:
            problem = self._topics.create(self.catalog)
            problem = self._reconciler.reconcile(self.catalog) or problem
            self._reconciler.pause()
            self._holds.settle()
            self._drains.discard(self._deletions.intended())
            problem = self._deletions.finish(self.catalog) or problem
        except HoldfastError as error:
            problem = error
        self._try_again_because_of(problem)

    def _create_hold(self, bound: BoundCreateHold, text: str, command: Command) -> Done:
        """Its time first, then its command: a hold in the catalog is effective."""
        hold = hold_of(bound, text=text, number=self._next_number)
        at = self._holds.create(hold, bound.at)
        try:
            offset = self._append(command)
        except CommandInDoubt:
            raise  # If the command was written, the hold needs its time; otherwise `Holds.settle` removes it.
        except BaseException:
            self._holds.undo_create(hold)
            raise
        self._current.replace(apply(self.catalog, command))
        return _done(bound, offset, at=at)

    def _append(self, command: Command) -> int:
        offset = self._log.append(*encode_command(command))
        self._next_number = offset + 1
        return offset

    def recover(self) -> None:
        """Run the queries of the catalog, after a start."""
        problem = self._topics.create(self.catalog)
        problem = self._reconciler.reconcile(self.catalog) or problem
        self._reconciler.drop_strays()
        problem = self._deletions.finish(self.catalog) or problem
        self._try_again_because_of(problem)

    def _try_again_because_of(self, problem: HoldfastError | None) -> None:
        if problem is not None and str(problem) != self._logged:
            log.warning("catalog setup incomplete, retrying: error=%s", problem)
        self._pending, self._logged = problem is not None, str(problem)
        self._retry_at = self._clock.monotonic() + RETRY_SECONDS

    def _check_runs(self, after: Catalog) -> None:
        """Build new queries from their encoded plans, so that a plan that cannot run is not stored."""
        sources = self._dataflow
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
    """Refuse a plan whose state differs from that of the running query."""
    if program.states != running.states or not extends(program.layout, running.layout):
        raise NotSupported(
            f"query {running.query} cannot continue with the new plan",
            detail="The state of each key would change.",
            hint="Drop the object first, or give the new one another name.",
        )


def _check_reads(found: CatalogObject) -> None:
    """Refuse an object over a topic whose records cannot be decoded."""
    if found.derived:
        return
    if isinstance(found, Table):
        assert found.topic is not None
        window, store = found.window, found.window_store
        build_table(found.name, found.topic, found.schema, found.formats, found.timestamp, window, store)
    else:
        Decoder(found.schema, found.formats, window=found.window).check()


def _done(
    bound: Change, offset: int, *, at: Time | None = None, query: QueryId | None = None, left: str | None = None
) -> Done:
    """The result of a statement: `at` is the time of a new hold, `query` the one that was started.

    `left` says which rows of ended queries are still to be published.
    """
    if isinstance(bound, BoundNothing):
        return Done(bound.notice, -1)
    kind = ddl_kind(bound)
    message, id_ = kind.message(bound), kind.id(bound)
    if isinstance(bound, BoundCreateHold) and at is not None:
        message = f"Hold {bound.name} created at {at}."
    if left is not None and isinstance(bound, BoundDrop | BoundTerminate):
        message = f"{message} {left}"
    return Done(message, offset, query if isinstance(bound, BoundPlan) else None, id_, tuple(kind.notices(bound)))
