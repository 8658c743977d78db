"""One tick: records in, changes staged in the store. Kafka and the clock are outside it.

A tick is a function of its inputs and of the committed store. It is run again from the start, with nothing staged,
when the records of a topic spell a JSON name in a way that their decoder did not know.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import HoldfastError
from holdfast.names import ObjectName, QueryId, StateId, TopicName
from holdfast.runtime.dataflow import Dataflow
from holdfast.runtime.decode import RecordDecoder
from holdfast.runtime.program import (
    Append,
    MergeInto,
    ObjectInput,
    Program,
    Stage,
    StateInput,
    TopicInput,
    Upsert,
)
from holdfast.runtime.serdes.decoding import UNKNOWN_SPELLING
from holdfast.runtime.spark.build import topic_view
from holdfast.runtime.spark.engine import RECORDS, Engine, Failure, Round, TopicRange, ViewInput
from holdfast.runtime.store.port import Store, TickStage

RESTING = 3
"""Up to so many stages without rows run along for each one with rows, so that the same jobs come again."""
LOGGED_PER_TICK = 1_000
"""Undecodable records of one topic and tick that the processing log shows whole; all are counted."""


@dataclass(frozen=True, slots=True)
class Undecodable:
    """Records of a topic that could not be decoded: `part, off, ts, key, value` of the first, and how many."""

    topic: TopicName
    object: ObjectName
    records: pa.Table
    total: int


@dataclass
class Outcome:
    """What a tick did beside what it staged."""

    failed: dict[QueryId, str] = field(default_factory=dict)
    streams: dict[ObjectName, pa.Table] = field(default_factory=dict)
    undecodable: list[Undecodable] = field(default_factory=list)
    touched: set[QueryId] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class TickInputs:
    """The records of topics; and rows of objects that come from elsewhere than their own query.

    `objects` are rows of streams (`k0.., c0.., ts, part, off`) or deltas of tables. `decoded` says how an object's
    rows are read from its topic instead, while a query catches up on it.
    """

    topics: Mapping[TopicName, ViewInput]
    objects: Mapping[ObjectName, pa.Table] = field(default_factory=dict)
    decoded: Mapping[ObjectName, TopicInput] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Given:
    """Rows that a user gives to a derived object, beside what its query makes.

    As of a stream (`k0.., c0.., ts, part, off`), or of a table (`k0.., c0.., ts, present`).
    """

    program: Program
    rows: pa.Table


class Respelled(Exception):
    """A topic has JSON names in new spellings; the tick must run again."""


class Ticker:
    """Runs ticks; keeps nothing between them but what makes the next ones faster."""

    def __init__(self, engine: Engine, store: Store, decoder: RecordDecoder) -> None:
        self._engine = engine
        self._store = store
        self._decoder = decoder
        self._empty: dict[str, pa.Table] = {}

    def run(
        self,
        dataflow: Dataflow,
        queries: Mapping[QueryId, Program],
        inputs: TickInputs,
        given: "Given | None" = None,
    ) -> tuple[TickStage, Outcome]:
        """Stage one tick of some queries. The caller adds what moved, and commits."""
        while True:
            stage = self._store.stage()
            run = _Run(self._engine, dataflow, queries, inputs, stage, self._decoder, self._empty)
            try:
                if given is not None:
                    run.give(given)
                return stage, run.run()
            except Respelled:
                stage.abandon()
            except BaseException:
                stage.abandon()
                raise


class _Run:
    def __init__(
        self,
        engine: Engine,
        dataflow: Dataflow,
        queries: Mapping[QueryId, Program],
        inputs: TickInputs,
        stage: TickStage,
        decoder: RecordDecoder,
        empty: dict[str, pa.Table],
    ) -> None:
        self.engine, self.dataflow, self.queries, self.inputs, self.stage = engine, dataflow, queries, inputs, stage
        self.decoder, self.empty = decoder, empty
        self.objects: dict[ObjectName, pa.Table] = dict(inputs.objects)
        self.merged: set[tuple[QueryId, int]] = set()
        self.bad: dict[str, TopicInput] = {}
        self.outcome = Outcome()

    def run(self) -> Outcome:
        for planned in self.dataflow.rounds(self.queries):
            planned = [(p, i) for p, i in planned if p.query not in self.outcome.failed]
            ready = {(p.query, i) for p, i in planned if self._has_rows(p, i)}
            if ready:
                self._round(planned, ready)
        self._log_undecodable()
        return self.outcome

    def give(self, given: Given) -> None:
        if given.program.collection is None:
            self._append(given.program, given.rows)
        else:
            self.stage.upsert(given.program.query, given.program.collection, given.rows)
            self._show(given.program)

    def _has_rows(self, program: Program, index: int) -> bool:
        match program.stages[index].input:
            case TopicInput(topic=topic):
                return topic in self.inputs.topics
            case ObjectInput(name=name):
                return name in self.objects or name in self.inputs.decoded
            case StateInput():
                return (program.query, index - 1) in self.merged

    def _round(self, planned: list[tuple[Program, int]], ready: set[tuple[QueryId, int]]) -> None:
        """One job for the stages that have rows; small ones take along those that rest, to be one known job."""
        chosen = [(p, i) for p, i in planned if (p.query, i) in ready]
        views = self._views([p.stages[i] for p, i in chosen])
        resting = [(p, i) for p, i in planned if (p.query, i) not in ready]
        if 0 < len(resting) <= RESTING * len(chosen) and self.engine.prepares(views):
            chosen = [(p, i) for p, i in planned if (p.query, i) in ready or self._can_rest(p.stages[i])]
            views = self._views([p.stages[i] for p, i in chosen])
        results = self.engine.run([p.stages[i].fragment for p, i in chosen], views)
        for (program, index), rows in zip(chosen, results, strict=True):
            if (program.query, index) not in ready:
                continue
            if isinstance(rows, Failure):
                self._fail(program.query, rows.reason)
                continue
            good = self._sorted_out(program.stages[index], rows)
            try:
                self._apply(program, index, good)
            except HoldfastError as error:
                self._fail(program.query, str(error))

    def _can_rest(self, stage: Stage) -> bool:
        """Whether it is known what no rows look like."""
        return isinstance(stage.input, TopicInput) or stage.input.view in self.empty

    def _fail(self, query: QueryId, reason: str) -> None:
        self.stage.discard(query)
        self.outcome.touched.discard(query)
        self.outcome.failed[query] = reason

    def _views(self, stages: list[Stage]) -> Round:
        inputs: dict[str, ViewInput] = {}
        derived: dict[str, str] = {}
        uses: dict[str, int] = {}
        for stage in stages:
            match stage.input:
                case TopicInput() as source:
                    self._topic(source, inputs, derived)
                    uses[source.view] = uses.get(source.view, 0) + 1
                case ObjectInput(name=name, view=view) if name not in self.objects and name in self.inputs.decoded:
                    source = self.inputs.decoded[name]
                    self._topic(source, inputs, derived)
                    derived[view] = f"SELECT * FROM {source.view} WHERE bad = 0 AND NOT tombstone"
                case ObjectInput(name=name, view=view):
                    inputs[view] = self._known(view, self.objects.get(name))
                case StateInput(state=state, view=view):
                    merged = self._has_merged(state)
                    inputs[view] = self._known(view, self.stage.state_delta(state) if merged else None)
        if any(isinstance(source, TopicRange) for source in inputs.values()):
            return Round(inputs, derived, frozenset(view for view, n in uses.items() if n > 1))
        return Round(inputs, derived)

    def _has_merged(self, state: StateId) -> bool:
        return any(state == merged for query, _ in self.merged for merged, _ in self.queries[query].states)

    def _known(self, view: str, rows: pa.Table | None) -> pa.Table:
        """The rows of a view, or none of them in its shape."""
        if rows is None:
            return self.empty[view]
        self.empty.setdefault(view, rows.slice(0, 0))
        return rows

    def _topic(self, source: TopicInput, inputs: dict[str, ViewInput], derived: dict[str, str]) -> None:
        inputs[topic_view(source.topic)] = self.inputs.topics.get(source.topic, RECORDS.empty_table())
        derived[source.view] = self.decoder.sql(source)

    def _sorted_out(self, stage: Stage, rows: pa.Table) -> pa.Table:
        """The good rows. Unknown spellings end the run, undecodable records are remembered for the log."""
        if "bad" not in rows.column_names:
            return rows
        bad = rows.column("bad")
        worst = pc.max(bad).as_py() or 0
        source = stage.input
        if worst and isinstance(source, TopicInput):
            if worst == UNKNOWN_SPELLING:
                self.decoder.learn(source, self.inputs.topics[source.topic])
                raise Respelled
            self.bad[source.view] = source
        good = rows.filter(pc.equal(bad, 0)) if worst else rows
        return good.drop_columns(["bad"])

    def _apply(self, program: Program, index: int, rows: pa.Table) -> None:
        self.outcome.touched.add(program.query)
        match program.stages[index].action:
            case Append():
                self._append(program, rows)
            case Upsert(collection=collection):
                self.stage.upsert(program.query, collection, rows)
                self._show(program)
            case MergeInto(state=state, merge=merge, along=along, collection=collection):
                self.stage.merge(program.query, state, rows, merge)
                self.merged.add((program.query, index))
                if along is not None:
                    self.stage.derive(program.query, state, collection, along)
                    self._show(program)

    def _append(self, program: Program, rows: pa.Table) -> None:
        if rows.num_rows == 0:
            return
        rows = rows.sort_by([("part", "ascending"), ("off", "ascending")]) if rows.num_rows > 1 else rows
        if program.sink is not None:
            self.stage.append(program.query, rows.drop_columns(["part", "off"]))
        self.outcome.streams[program.object] = rows
        self.objects[program.object] = rows

    def _show(self, program: Program) -> None:
        assert program.collection is not None
        if program.sink is not None:
            self.stage.owe(program.query, program.collection)
        if any(reader.query in self.queries for reader in self.dataflow.readers(program.object)):
            self.objects[program.object] = self.stage.delta(program.collection)

    def _log_undecodable(self) -> None:
        for source in self.bad.values():
            found = self.decoder.undecodable(source, self.inputs.topics[source.topic], LOGGED_PER_TICK)
            total = found.column("total")[0].as_py() if found.num_rows else 0
            self.outcome.undecodable.append(
                Undecodable(source.topic, self._reader_of(source), found.drop_columns(["total"]), total)
            )

    def _reader_of(self, source: TopicInput) -> ObjectName:
        return next(
            p.object for p in self.queries.values() if isinstance(p.source, TopicInput) and p.source.view == source.view
        )
