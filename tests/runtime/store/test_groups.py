"""Grouped states: the same random operations on the embedded store and on the model."""

import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from holdfast.errors import StoreError
from holdfast.names import QueryId, StateId
from holdfast.runtime.store.duckdb import DuckDbStore, compaction, core, open_store
from holdfast.runtime.store.duckdb import stage as stage_
from holdfast.runtime.store.duckdb.disk import flush
from holdfast.runtime.store.duckdb.memtable import elements, small
from holdfast.runtime.store.memory import MemoryStore
from holdfast.runtime.store.port import Layout, Merge, Store, Time
from holdfast.types import Scalar
from tests.runtime.store.rows import merge, partials, plain, upserts

QUERY, OTHER = QueryId("Q"), QueryId("OTHER")
SEEN, PAIRS, LAST = StateId("seen"), StateId("pairs"), StateId("last")
LAYOUTS = {
    # Elements by a plain group, by a group of two columns, and rows without groups.
    SEEN: Layout((Scalar.STRING, Scalar.INTEGER, Scalar.BIGINT), (Scalar.STRING,), 1),
    PAIRS: Layout((Scalar.BIGINT, Scalar.STRING, Scalar.BIGINT), (Scalar.DOUBLE, Scalar.STRING), 2),
    LAST: Layout((Scalar.BIGINT,), (Scalar.STRING,)),
}

numbers = st.integers(0, 3)
texts = st.sampled_from(["", "a", "'", "日本"])
seen_rows = st.dictionaries(
    st.tuples(texts, st.integers(0, 1), numbers), st.tuples(st.none() | st.tuples(texts), st.integers(0, 9)), max_size=6
)
pair_rows = st.dictionaries(
    st.tuples(numbers | st.none(), texts, numbers),
    st.tuples(st.none() | st.tuples(st.floats(0, 1), texts | st.none()), st.integers(0, 9)),
    max_size=6,
)
last_rows = st.dictionaries(st.tuples(numbers), st.tuples(st.none() | st.tuples(texts), st.integers(0, 9)), max_size=3)
some_spans = st.lists(
    st.tuples(st.integers(0, 1), st.none() | st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=2
)
bounds = st.none() | some_spans


def spans(found: list[tuple[int, int | None, int]], *, by_part: bool) -> pa.Table:
    """Spans of time, for one value of `k1` each or for all rows."""
    table = pa.table(
        {
            "k1": pa.array([part for part, _, _ in found], pa.int32()),
            "after": pa.array([after for _, after, _ in found], pa.int64()),
            "upto": pa.array([upto for _, _, upto in found], pa.int64()),
        }
    )
    return table if by_part else table.drop_columns(["k1"])


def groups(state: StateId, *wanted: tuple) -> pa.Table:
    types = [pa.string()] if state == SEEN else [pa.int64(), pa.string()]
    columns = list(zip(*wanted, strict=True)) if wanted else [[] for _ in types]
    return pa.table({f"k{i}": pa.array(c, t) for i, (c, t) in enumerate(zip(columns, types, strict=True))})


class GroupsMachine(RuleBasedStateMachine):
    @initialize(
        largest_small=st.sampled_from([0, 2, 2_000]),
        loaded=st.sampled_from([0, 10_000]),
        loaded_elements=st.sampled_from([0, 3, 10_000]),
        flushed=st.sampled_from([2, 256]),
        memory=st.sampled_from([1, 3, 1_000]),
    )
    def open(self, largest_small: int, loaded: int, loaded_elements: int, flushed: int, memory: int) -> None:
        # Ticks of both sizes, on tables that are read whole, by group or by key, flushed soon or late.
        self.patched = pytest.MonkeyPatch()
        self.patched.setattr(stage_, "SMALL", largest_small)
        self.patched.setattr(small, "LOADED", loaded)
        self.patched.setattr(elements, "LOADED_ELEMENTS", loaded_elements)
        self.patched.setattr(compaction, "FLUSHED_TICKS", flushed)
        self.patched.setattr(core.Core, "allowance", lambda _: memory)
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-groups-"))
        self.duck: Store = open_store(self.folder)
        self.model: Store = MemoryStore()
        self.now = 0
        for store in self.stores():
            for state, layout in LAYOUTS.items():
                store.create_state(state, layout)

    def stores(self) -> tuple[Store, Store]:
        return self.duck, self.model

    def teardown(self) -> None:
        if hasattr(self, "duck"):
            self.patched.undo()
            self.duck.close()
            shutil.rmtree(self.folder)

    @rule(
        seen=seen_rows,
        pairs=pair_rows,
        last=last_rows,
        expired=bounds,
        all_expired=bounds,
        asks_before=st.booleans(),
        discard=st.booleans(),
    )
    def tick(self, seen, pairs, last, expired, all_expired, asks_before, discard) -> None:
        self.now += 1
        deltas = []
        for store in self.stores():
            stage = store.stage()
            if asks_before:
                stage.lookup_groups(SEEN, groups(SEEN, *{key[:1] for key in seen}), (2, 7))
            gone = None if expired is None else spans(expired, by_part=True)
            stage.put(QUERY, SEEN, upserts(LAYOUTS[SEEN], *((k, *row) for k, row in seen.items())), gone)
            gone = None if all_expired is None else spans(all_expired, by_part=False)
            stage.put(OTHER, PAIRS, upserts(LAYOUTS[PAIRS], *((k, *row) for k, row in pairs.items())), gone)
            stage.put(OTHER, LAST, upserts(LAYOUTS[LAST], *((k, *row) for k, row in last.items())))
            deltas.append([plain(stage.state_delta(state)) for state in LAYOUTS])
            if discard:
                stage.discard(OTHER)
            stage.commit(Time(self.now))
        assert deltas[0] == deltas[1]

    @rule(seen=seen_rows)
    def an_abandoned_tick_never_was(self, seen) -> None:
        stage = self.duck.stage()
        stage.put(QUERY, SEEN, upserts(LAYOUTS[SEEN], *((k, *row) for k, row in seen.items())))
        stage.abandon()

    @rule()
    def reopen(self) -> None:
        self.duck.close()
        self.duck = open_store(self.folder)

    @rule()
    def flush_tables(self) -> None:
        with self.duck._core.write_lock:
            flush.flush_all(self.duck._core)

    @rule()
    def memory_keeps_only_what_it_must(self) -> None:
        for target in self.duck._core.objects.states.values():
            target.memtable.limit(0)

    @rule()
    def compact(self) -> None:
        self.duck.compact(limit=10)

    @rule()
    def a_crash_loses_nothing(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            found = Path(shutil.copytree(self.folder, Path(folder) / "copy", ignore=shutil.ignore_patterns("spill")))
            copy = open_store(found)
            self.agree(copy)
            copy.close()

    @rule(
        asked=st.lists(st.tuples(texts), max_size=3),
        pairs=st.lists(st.tuples(numbers | st.none(), texts), max_size=3),
        within=st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9)),
    )
    def groups_are_found(self, asked, pairs, within) -> None:
        found = []
        for store in self.stores():
            stage = store.stage()
            asking = ((SEEN, asked), (PAIRS, pairs))
            rows = [stage.lookup_groups(state, groups(state, *wanted), within) for state, wanted in asking]
            found.append(list(map(plain, rows)))
            stage.abandon()
        assert found[0] == found[1]

    @rule(asked=some_spans, by_part=st.booleans())
    def spans_are_found(self, asked, by_part) -> None:
        found = []
        for store in self.stores():
            stage = store.stage()
            found.append(plain(stage.lookup_spans(SEEN, spans(asked, by_part=by_part))))
            stage.abandon()
        assert found[0] == found[1]

    @invariant()
    def stores_agree(self) -> None:
        self.agree(self.duck)

    def agree(self, other: Store) -> None:
        answers = []
        everything = pa.table({"after": pa.array([None], pa.int64()), "upto": pa.array([99], pa.int64())})
        for store in (other, self.model):
            stage = store.stage()
            answers.append([plain(stage.lookup_spans(state, everything)) for state in LAYOUTS])
            stage.abandon()
        assert answers[0] == answers[1]


GroupsMachine.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    report_multiple_bugs=False,
)
TestGroups = GroupsMachine.TestCase


@pytest.fixture(params=["duckdb", "memory"])
def any_store(request, tmp_path):
    opened = open_store(tmp_path) if request.param == "duckdb" else MemoryStore()
    for state, layout in LAYOUTS.items():
        opened.create_state(state, layout)
    yield opened
    opened.close()


def test_a_grouped_state_cannot_be_merged(any_store):
    rows = partials(LAYOUTS[SEEN], (("a", 0, 1), ("x",), 1))
    with pytest.raises(StoreError, match="has groups"):
        merge(any_store.stage(), QUERY, SEEN, rows, Merge(("NULL",), ("p0",)))


def test_a_state_is_put_once_per_tick(any_store):
    stage = any_store.stage()
    stage.put(QUERY, LAST, upserts(LAYOUTS[LAST]))
    with pytest.raises(StoreError, match="already"):
        stage.put(OTHER, LAST, upserts(LAYOUTS[LAST]))


def test_an_element_has_a_group(any_store):
    with pytest.raises(StoreError, match="without a group"):
        any_store.stage().put(QUERY, SEEN, upserts(LAYOUTS[SEEN], ((None, 0, 1), ("x",), 1)))


def test_layouts_with_groups_are_found_again(tmp_path):
    store = open_store(tmp_path)
    store.create_state(PAIRS, LAYOUTS[PAIRS])
    store.close()
    store = open_store(tmp_path)
    assert store.states() == {PAIRS: LAYOUTS[PAIRS]}
    store.close()


def test_rows_in_memory_stay_there_while_others_are_loaded(any_store, monkeypatch):
    monkeypatch.setattr(small, "LOADED", 0)
    monkeypatch.setattr(core.Core, "allowance", lambda _: 2)
    rows = upserts(LAYOUTS[LAST], *(((i,), (str(i),), i) for i in range(8)))
    stage = any_store.stage()
    stage.put(QUERY, LAST, rows)
    stage.commit(Time(1))
    if isinstance(any_store, DuckDbStore):
        with any_store._core.write_lock:
            flush.flush_all(any_store._core)
        any_store._core.objects.state(LAST).memtable.clear()
    for asked in ([0, 1, 2], [2, 3], [0, 3, 4, 5]):
        stage = any_store.stage()
        found = stage.lookup_state(LAST, pa.table({"k0": pa.array(asked, pa.int64())}))
        assert sorted(found.column("k0").to_pylist()) == asked
        stage.abandon()
