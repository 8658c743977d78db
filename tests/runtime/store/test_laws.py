"""The same random operations on the embedded store and on the model, and the laws of time over both."""

import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.errors import ReadError, StoreError
from holdfast.names import HoldId, QueryId, TopicName
from holdfast.runtime.store import schemas
from holdfast.runtime.store.duckdb import compaction, open_store
from holdfast.runtime.store.duckdb import stage as stage_
from holdfast.runtime.store.duckdb.disk import flush
from holdfast.runtime.store.duckdb.memtable import small
from holdfast.runtime.store.memory import MemoryStore
from holdfast.runtime.store.port import EndOffset, GroupRead, Placement, StateView, Time
from tests.runtime.store.rows import (
    LAYOUT,
    PAIRS,
    PAIRS_LAYOUT,
    POSITIVE_TWICE,
    QUERY,
    SHOWN,
    SHOWN_LAYOUT,
    SUM_AND_LAST,
    TABLE,
    TOTALS,
    TOTALS_LAYOUT,
    apply,
    changes,
    evaluate,
    merge,
    partials,
    parts_of_changes,
    plain,
    snapshot,
    upserts,
)

LAYOUTS = {TABLE: LAYOUT, PAIRS: PAIRS_LAYOUT, SHOWN: SHOWN_LAYOUT}
OTHER, TOTALLING = QueryId("OTHER"), QueryId("TOTALLING")
COLLECTIONS = st.sampled_from(list(LAYOUTS))
HOLDS = st.sampled_from([HoldId("h1"), HoldId("h2"), HoldId("h3")])

numbers = st.integers(-3, 3)
texts = st.sampled_from(["", "a", "A", "'", '"', "é", "a\x00", "[1]", "null", None])
values = st.none() | st.tuples(numbers, texts)
table_rows = st.dictionaries(st.sampled_from(["", "a", "b", "'", "ß", "日本"]), st.tuples(values, numbers), max_size=5)
pair_keys = st.tuples(st.integers(-1, 1) | st.none(), texts)
pair_rows = st.dictionaries(pair_keys, st.tuples(st.none() | st.tuples(st.floats(0, 1)), numbers), max_size=5)
total_rows = st.dictionaries(st.integers(-2, 2), st.tuples(st.tuples(numbers, texts), numbers), max_size=4)


def lookups(store, id_, rows, at):
    """The rows of a snapshot, looked up by their keys."""
    layout = LAYOUTS[id_]
    keys = pa.Table.from_pylist(
        [{f"k{i}": row[i] for i in range(len(layout.key))} for row in rows], schema=schemas.key_schema(layout)
    )
    stage = store.stage()
    found = plain(stage.lookup(id_, keys, Time(at)))
    stage.abandon()
    return found


class StoreMachine(RuleBasedStateMachine):
    @initialize(
        window=st.sampled_from([0, 3, 20]),
        largest_small=st.sampled_from([0, 2, 2_000]),
        loaded=st.sampled_from([0, 10_000]),
        flushed=st.sampled_from([2, 256]),
    )
    def open(self, window: int, largest_small: int, loaded: int, flushed: int) -> None:
        # Ticks of both sizes, on tables that are read whole or by key, flushed soon or late.
        self.patched = pytest.MonkeyPatch()
        self.patched.setattr(stage_, "SMALL", largest_small)
        self.patched.setattr(small, "LOADED", loaded)
        self.patched.setattr(compaction, "FLUSHED_TICKS", flushed)
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-laws-"))
        self.duck = open_store(self.folder)
        self.model = MemoryStore(evaluate)
        self.now = 0
        self.holds: list[tuple[int, int]] = []
        self.answers: dict[tuple[str, int], list[tuple]] = {}
        self.seen = dict.fromkeys(LAYOUTS, (0, 0))
        self.trimmed = 0
        for store in self.stores():
            for id_, layout in LAYOUTS.items():
                store.create_collection(id_, layout, window_ms=window)
            store.create_state(TOTALS, TOTALS_LAYOUT)
            store.create_outbox(QUERY, LAYOUT)
            store.create_outbox(OTHER, LAYOUT)

    def stores(self):
        return (self.duck, self.model)

    def teardown(self) -> None:
        if hasattr(self, "duck"):
            self.patched.undo()
            self.duck.close()
            shutil.rmtree(self.folder)

    # -- ticks ---------------------------------------------------------------------------------------

    def run_tick(self, rows, pairs, totals, discard, *, checkpoint=False, frozen=frozenset()) -> None:
        stages = [store.stage() for store in self.stores()]
        for stage in stages:
            stage.upsert(QUERY, TABLE, upserts(LAYOUT, *(((k,), v, ts) for k, (v, ts) in rows.items())))
            stage.enqueue_changes(QUERY, TABLE)
            stage.enqueue_changes(OTHER, TABLE)
            stage.enqueue(OTHER, upserts(LAYOUT, ((str(self.now),), (self.now, "x"), 0)))
            stage.upsert(OTHER, PAIRS, upserts(PAIRS_LAYOUT, *((k, v, ts) for k, (v, ts) in pairs.items())))
            totalled = partials(TOTALS_LAYOUT, *(((k,), v, ts) for k, (v, ts) in totals.items()))
            merge(stage, TOTALLING, TOTALS, totalled, SUM_AND_LAST, StateView(SHOWN, POSITIVE_TWICE))
            placement = list(Placement)[self.now % len(Placement)]
            stage.move(QUERY, [EndOffset(TopicName("t"), 0, self.now)], placement, replayed_to=Time(self.now // 2))
            stage.remap([EndOffset(TopicName("t"), 0, self.now)])
        if checkpoint:
            self.duck._core.checkpoint(beyond=-1)
        deltas = [[plain(stage.delta(id_)) for id_ in LAYOUTS] + [plain(stage.state_delta(TOTALS))] for stage in stages]
        assert deltas[0] == deltas[1]
        for stage in stages:
            for query in discard:
                stage.discard(query)
            stage.commit(Time(self.now), frozen)

    def next_time(self, gap: int) -> None:
        uppers = [self.model.frontier(id_).upper for id_ in LAYOUTS]
        self.now = max(self.now + gap, *uppers)

    @rule(
        rows=table_rows,
        pairs=pair_rows,
        totals=total_rows,
        discard=st.sets(st.sampled_from([QUERY, OTHER, TOTALLING]), max_size=2),
        gap=st.integers(1, 4),
        checkpoint=st.booleans(),
        frozen=st.sets(COLLECTIONS, max_size=2),
    )
    def tick(self, rows, pairs, totals, discard, gap, checkpoint, frozen) -> None:
        self.next_time(gap)
        uppers = [self.model.frontier(id_).upper for id_ in frozen]
        self.run_tick(rows, pairs, totals, discard, checkpoint=checkpoint, frozen=frozen)
        assert [self.duck.frontier(id_).upper for id_ in frozen] == uppers

    @precondition(lambda self: self.now > 0)
    @rule(rows=table_rows)
    def a_tick_that_comes_too_late_changes_nothing(self, rows) -> None:
        for store in self.stores():
            written = store.frontier(TABLE).upper
            if written == 0:
                return
            stage = store.stage()
            stage.upsert(QUERY, TABLE, upserts(LAYOUT, *(((k,), v, ts) for k, (v, ts) in rows.items())))
            with pytest.raises(StoreError):
                stage.commit(Time(written - 1))
            stage.abandon()

    @rule(rows=table_rows)
    def an_abandoned_tick_never_was(self, rows) -> None:
        for store in self.stores():
            stage = store.stage()
            stage.upsert(QUERY, TABLE, upserts(LAYOUT, *(((k,), v, ts) for k, (v, ts) in rows.items())))
            stage.abandon()

    @rule(id_=COLLECTIONS, page=st.integers(1, 4), rows=table_rows, pairs=pair_rows, totals=total_rows)
    def a_snapshot_is_paged_while_ticks_go_on(self, id_, page, rows, pairs, totals) -> None:
        frontier = self.model.frontier(id_)
        upper = frontier.upper
        if frontier.since == upper:
            return
        expected = snapshot(self.model, id_, upper - 1)
        held = self.model.pin(id_, Time(upper - 1))  # as the pages of the store under test do
        found: list[tuple] = []
        for part in self.duck.snapshot(id_, Time(upper - 1), page=page):
            assert 0 < part.num_rows <= page
            found += plain(part)
            if len(found) <= 2 * page:
                self.next_time(1)
                self.run_tick(rows, pairs, totals, ())
                self.compact(100)
        self.model.unpin(held)
        assert sorted(found, key=repr) == expected

    # -- time ----------------------------------------------------------------------------------------

    @rule(ids=st.sets(COLLECTIONS, min_size=1), step=st.integers(0, 5))
    def set_upper(self, ids, step) -> None:
        built = any(self.model.frontier(id_).upper == 0 for id_ in ids)
        for store in self.stores():
            # A collection becomes readable when it has caught up with the last tick.
            store.set_upper(list(ids), Time(self.now + step + built))

    @rule(id_=COLLECTIONS, step=st.integers(-10, 3))
    def advance_since(self, id_, step) -> None:
        for store in self.stores():
            store.advance_since(id_, Time(max(0, self.now + step)))

    @rule(id_=COLLECTIONS, step=st.integers(-10, 3))
    def hold(self, id_, step) -> None:
        at = Time(max(0, self.now + step))
        tokens = []
        for store in self.stores():
            try:
                tokens.append(store.pin(id_, at))
            except ReadError:
                tokens.append(None)
        assert (tokens[0] is None) == (tokens[1] is None)
        if tokens[0] is not None:
            self.holds.append((tokens[0], tokens[1]))

    @precondition(lambda self: self.holds)
    @rule(place=st.integers(0, 100))
    def release(self, place) -> None:
        for store, token in zip(self.stores(), self.holds.pop(place % len(self.holds)), strict=True):
            store.unpin(token)

    @rule(hold=HOLDS, ids=st.sets(COLLECTIONS, min_size=1), step=st.integers(-10, 3))
    def keep(self, hold, ids, step) -> None:
        refused = []
        for store in self.stores():
            try:
                store.put_hold(hold, sorted(ids), Time(max(0, self.now + step)))
                refused.append(False)
            except ReadError:
                refused.append(True)
        assert refused[0] == refused[1]

    @rule(moves=st.dictionaries(HOLDS, st.integers(-10, 3)))
    def move_holds(self, moves) -> None:
        there = {hold: Time(max(0, self.now + step)) for hold, step in moves.items() if hold in self.model.holds()}
        assert self.duck.move_holds(there).keys() == self.model.move_holds(there).keys()

    @rule(holds=st.lists(HOLDS, max_size=2))
    def drop_holds(self, holds) -> None:
        for store in self.stores():
            store.drop_holds(holds)

    @rule(id_=COLLECTIONS, window=st.sampled_from([0, 3, 20]))
    def set_window(self, id_, window) -> None:
        for store in self.stores():
            store.set_window(id_, window)

    @rule(limit=st.integers(1, 10))
    def compact(self, limit) -> None:
        assert self.duck.compact(limit=limit) == self.model.compact(limit=limit)
        # The offsets of a time are retained for collections that are built from a time on or take part in ticks, not
        # for frozen ones and those that have no history yet.
        committed = self.model.committed_time()
        collections = [self.model.collection(id_) for id_ in LAYOUTS]
        building = [c.history_from for c in collections if c.frontier.upper == 0 and c.history_from is not None]
        live = [c.frontier.since for c in collections if c.frontier.upper > committed]
        self.trimmed = max(self.trimmed, min([committed, *building, *live]))

    @rule()
    def reopen(self) -> None:
        for pair in self.holds:
            for store, token in zip(self.stores(), pair, strict=True):
                store.unpin(token)
        self.holds.clear()
        id_ = self.duck.id
        self.duck.close()
        self.duck = open_store(self.folder)
        assert self.duck.id == id_
        for collection in LAYOUTS:
            # What was asked of since, but not yet allowed, is asked again by whoever opens a store.
            self.model.collection(collection).wanted = Time(0)

    @rule()
    def flush_tables(self) -> None:
        with self.duck._core.write_lock:
            flush.flush_all(self.duck._core)

    @rule()
    def memory_keeps_only_what_it_must(self) -> None:
        for target in (*self.duck._core.objects.collections.values(), *self.duck._core.objects.states.values()):
            target.memtable.limit(0)

    @rule(totals=total_rows)
    def a_crash_loses_nothing(self, totals) -> None:
        """The files as they are now, opened elsewhere."""
        with tempfile.TemporaryDirectory() as folder:
            found = Path(shutil.copytree(self.folder, Path(folder) / "copy", ignore=shutil.ignore_patterns("spill")))
            copy = open_store(found)
            assert copy.pending() == self.model.pending()
            assert copy.holds() == self.model.holds()
            for pending in self.model.pending()[-3:]:
                assert plain(copy.pending_rows(pending.query, pending.time)) == plain(
                    self.model.pending_rows(pending.query, pending.time)
                )
            for id_ in LAYOUTS:
                known = self.model.frontier(id_)
                if copy.frontier(id_).upper:
                    assert copy.frontier(id_).since <= known.since
                    # The uppers of live queries follow the clock after a start; the others were frozen durably.
                    copy.set_upper([id_], known.upper)
                frontier = copy.frontier(id_)
                given = [at for of, at in self.answers if of == id_ and frontier.since <= at < frontier.upper]
                for at in given:
                    assert snapshot(copy, id_, at) == self.answers[id_, at]
                times = {at for at in (frontier.upper - 1, known.since) if known.since <= at < frontier.upper}
                for at in times:
                    assert snapshot(copy, id_, at) == snapshot(self.model, id_, at)
                if times:
                    assert changes(copy, id_, min(times), max(times)) == changes(
                        self.model, id_, min(times), max(times)
                    )
            totalled = partials(TOTALS_LAYOUT, *(((k,), v, ts) for k, (v, ts) in totals.items()))
            stages = [copy.stage(), self.model.stage()]
            for stage in stages:
                merge(stage, TOTALLING, TOTALS, totalled, SUM_AND_LAST)
            deltas = [plain(stage.state_delta(TOTALS)) for stage in stages]
            assert deltas[0] == deltas[1]
            for stage in stages:
                stage.abandon()
            copy.close()

    @rule(upto=st.integers(0, 3), query=st.sampled_from([QUERY, OTHER]))
    def settle(self, upto, query) -> None:
        for store in self.stores():
            store.mark_published({query: Time(max(0, self.now - upto))}, [EndOffset(TopicName("sink"), 0, self.now)])

    # -- the laws ------------------------------------------------------------------------------------

    @invariant()
    def frontiers_agree_and_never_move_back(self) -> None:
        for id_ in LAYOUTS:
            frontier = self.duck.frontier(id_)
            assert frontier == self.model.frontier(id_)
            since, upper = self.seen[id_]
            assert since <= frontier.since <= frontier.upper >= upper
            self.seen[id_] = (frontier.since, frontier.upper)

    @invariant()
    def what_a_hold_keeps_is_readable(self) -> None:
        assert self.duck.holds() == self.model.holds()
        for id_ in LAYOUTS:
            assert self.duck.implied_since(id_) == self.model.implied_since(id_)
        for kept in self.duck.holds().values():
            for id_ in kept.on:
                frontier = self.duck.frontier(id_)
                assert frontier.upper == 0 or frontier.since <= kept.at
        for hold in self.duck.holds():
            pinned, expected = self.duck.retained_by(hold), self.model.retained_by(hold)
            assert pinned.rows == expected.rows
            assert (pinned.bytes > 0) == (pinned.rows > 0)

    @invariant()
    def every_readable_time_gives_its_one_answer(self) -> None:
        for id_, layout in LAYOUTS.items():
            frontier = self.model.frontier(id_)
            since, upper = frontier.since, frontier.upper
            times = sorted({since, (since + upper) // 2, upper - 1}) if since < upper else []
            for at in times:
                answer = snapshot(self.duck, id_, at)
                assert answer == snapshot(self.model, id_, at)
                assert lookups(self.duck, id_, answer, at) == lookups(self.model, id_, answer, at) == answer
                assert answer == self.answers.setdefault((id_, at), answer)
            if times:
                first, last = self.answers[id_, times[0]], self.answers[id_, times[-1]]
                between = changes(self.duck, id_, times[0], times[-1])
                assert between == changes(self.model, id_, times[0], times[-1])
                assert apply(first, between, layout) == last
                parts = parts_of_changes(self.duck, id_, times[0], times[-1], 2)
                assert sorted((row for part in parts for row in plain(part)), key=repr) == sorted(between, key=repr)
            assert self.duck.changed_at(id_) == self.model.changed_at(id_)
            for unreadable in (since - 1, upper):
                if unreadable >= 0:
                    with pytest.raises(ReadError):
                        self.duck.snapshot(id_, Time(unreadable))

    @rule(groups=st.none() | st.lists(st.integers(-1, 1) | st.none(), max_size=3), back=st.integers(0, 5))
    def a_part_is_what_the_snapshot_has_of_its_groups(self, groups, back) -> None:
        frontier = self.model.frontier(PAIRS)
        at = Time(max(frontier.since, frontier.upper - 1 - back))
        if not frontier.since <= at < frontier.upper:
            return
        asked = None if groups is None else pa.table({"k0": pa.array(groups, pa.int64())})
        part = GroupRead(PAIRS, at, asked)
        wanted = [row for row in snapshot(self.model, PAIRS, at) if groups is None or row[0] in set(groups) - {None}]
        expected = sorted((row[1:] for row in wanted), key=repr)
        assert plain(self.duck.read_groups(part)) == plain(self.model.read_groups(part)) == expected
        evaluated = self.duck.evaluate("SELECT k0, c0, ts FROM p WHERE ts > ?", {"p": part}, [0])
        assert plain(evaluated) == [row for row in expected if row[-1] > 0]

    @invariant()
    def what_a_tick_moved_agrees(self) -> None:
        assert self.duck.last_time() == self.model.last_time()
        assert self.duck.committed_time() == self.model.committed_time()
        assert self.duck.position(QUERY) == self.model.position(QUERY)
        assert self.duck.remap_ends() == self.model.remap_ends()
        frontiers = [self.model.frontier(id_) for id_ in LAYOUTS]
        readable = [frontier.since for frontier in frontiers if frontier.upper]
        if readable:
            for at in (max(self.trimmed, min(readable)), self.now):
                assert self.duck.remap_at(Time(at)) == self.model.remap_at(Time(at))
        assert self.duck.published_ends() == self.model.published_ends()
        assert self.duck.pending() == self.model.pending()
        for pending in self.model.pending()[-3:]:
            rows = [plain(store.pending_rows(pending.query, pending.time)) for store in self.stores()]
            assert rows[0] == rows[1]


StoreMachine.TestCase.settings = settings(
    max_examples=20,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    # Shrinking a failure would take minutes; a failing run of 20 steps can be read as it is.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    report_multiple_bugs=False,
)
TestLaws = StoreMachine.TestCase
