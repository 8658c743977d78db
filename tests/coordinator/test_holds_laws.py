"""Several holds, compactions, restarts, automatic advances: what a hold promises is readable, and no more is kept."""

import shutil
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from laws import slow_law

from holdfast.catalog.objects import Hold
from holdfast.catalog.snapshot import Catalog
from holdfast.coordinator.holds import Holds
from holdfast.coordinator.uppers import Uppers
from holdfast.errors import HoldTimeError
from holdfast.names import CollectionId, HoldId, ObjectName
from holdfast.runtime.progress import Progress, Status
from holdfast.runtime.store.duckdb import open_store
from holdfast.runtime.store.port import Layout, Time
from holdfast.sql.literals.moment import Moment
from holdfast.types import Scalar
from holdfast.wall_clock import WallClock
from tests.planner.test_draft import catalog_of
from tests.runtime.store.rows import QUERY, snapshot, upserts

pytestmark = pytest.mark.law
WINDOW_MS, MAX_LAG = 10, 60
LAYOUT = Layout((Scalar.STRING,), (Scalar.BIGINT,))
TABLES = (CollectionId("T"), CollectionId("U"))
SQL = "".join(
    f"CREATE TABLE {name} (id STRING PRIMARY KEY, n BIGINT) WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON');"
    for name in TABLES
)
NAMES = st.sampled_from(["A", "B", "C"])
ON = st.sampled_from([("T",), ("U",), ("T", "U")])
BACK = st.none() | st.integers(-80, 3)
ROWS = st.dictionaries(st.sampled_from("pqr"), st.none() | st.integers(0, 9), max_size=3)


class HeldTables(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-holds-"))
        self.catalog: Catalog = catalog_of(SQL)
        self.now, self.numbers = 100, 0
        self.seen: dict[CollectionId, Time] = {}
        self.answers: dict[tuple[CollectionId, int], list[tuple[Any, ...]]] = {}
        self.open()
        for id_ in TABLES:
            self.store.create_collection(id_, LAYOUT, window_ms=WINDOW_MS)
        self.tick({"p": 1}, {"p": 1}, 1)

    def open(self) -> None:
        self.store = open_store(self.folder)
        running = Progress(Status.RUNNING)
        uppers = Uppers(self.store, lambda: Time(self.now), lambda _query: running, lambda _query: None)
        self.holds = Holds(
            self.store, uppers, lambda: self.catalog, WallClock(), ceiling=timedelta(seconds=10), grace=timedelta(0)
        )

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.folder)

    # -- what happens --------------------------------------------------------------------------------

    @rule(t=ROWS, u=ROWS, gap=st.integers(1, 30))
    def tick(self, t, u, gap) -> None:
        self.now += gap
        stage = self.store.stage()
        for id_, rows in zip(TABLES, (t, u), strict=True):
            changed = [((key,), None if n is None else (n,), self.now) for key, n in rows.items()]
            stage.upsert(QUERY, id_, upserts(LAYOUT, *changed))
        stage.commit(Time(self.now))
        self.store.set_upper(TABLES, Time(self.now + 1))
        for id_ in TABLES:
            self.answers[id_, self.now] = snapshot(self.store, id_, self.now)

    @rule(name=NAMES, on=ON, back=BACK, lag=st.sampled_from([20, MAX_LAG]))
    def create(self, name, on, back, lag) -> None:
        if name in self.catalog.holds:
            return
        self.numbers += 1
        made = Hold(id=HoldId(f"h{self.numbers}"), name=ObjectName(name), on=tuple(map(ObjectName, on)), max_lag_ms=lag)
        at = None if back is None else Moment(self.now + back)
        allowed = back is None or all(self.now + back >= self.least(id_) for id_ in on)
        try:
            self.holds.create(made, at)
        except HoldTimeError:
            assert not allowed
        else:
            assert allowed
            self.catalog = self.catalog.with_hold(made)

    @precondition(lambda self: self.catalog.holds)
    @rule(name=NAMES, back=BACK)
    def advance(self, name, back) -> None:
        hold = self.catalog.holds.get(ObjectName(name))
        if hold is None:
            return
        allowed = back is None or all(self.now + back >= self.least(id_) for id_ in hold.on)
        try:
            at = self.holds.advance(hold, None if back is None else Moment(self.now + back))
        except HoldTimeError:
            assert not allowed
        else:
            assert allowed
            assert self.store.holds()[hold.id].at == at

    @rule(name=NAMES, crashes=st.booleans())
    def drop(self, name, crashes) -> None:
        """A process that dies between the command and the store leaves a time that belongs to no hold."""
        hold = self.catalog.holds.get(ObjectName(name))
        if hold is not None:
            self.catalog = self.catalog.without_holds(hold)
            if crashes:
                self.restart()

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.open()
        self.store.set_upper(TABLES, Time(self.now + 1))

    @rule()
    def compact(self) -> None:
        """As the coordinator does it between ticks; then nothing is kept that nobody needs."""
        before = {hold.id: hold for hold in self.catalog.holds.values()}
        self.holds.settle()
        self.holds.advance_overdue()
        while self.store.compact(limit=10):
            pass
        kept = self.store.holds()
        assert kept.keys() == before.keys()
        for id_, hold in before.items():
            assert self.now + 1 - kept[id_].at <= hold.max_lag_ms
        for id_ in TABLES:
            times = [each.at for each in kept.values() if id_ in each.on]
            since = min([self.store.implied_since(id_), *times])
            assert self.store.frontier(id_).since == max(since, self.seen.get(id_, Time(0)))
            self.seen[id_] = self.store.frontier(id_).since
            history = self.store._core.objects.collection(id_)
            stored = self.store._core.database.execute(f"SELECT count(*) FROM {history.history}").fetchall()[0][0]
            in_memory = history.past.table().num_rows
            needed = self.store.changes(id_, Time(self.seen[id_]), Time(self.now)).num_rows
            assert stored + in_memory == needed, "what no hold or window needs is reclaimed"

    # -- what is promised ----------------------------------------------------------------------------

    @invariant()
    def what_a_hold_promises_readable_is_readable(self) -> None:
        if not hasattr(self, "store"):
            return
        for kept in self.store.holds().values():
            for id_ in kept.on:
                frontier = self.store.frontier(id_)
                assert frontier.since <= kept.at
                at = min(kept.at, frontier.upper - 1)
                ticks = [time for table, time in self.answers if table == id_ and time <= at]
                assert snapshot(self.store, id_, at) == (self.answers[id_, max(ticks)] if ticks else [])

    def least(self, id_: str) -> int:
        """The least time that a hold may take on a table."""
        ids = {hold.id for hold in self.catalog.holds.values()}
        held = [kept.at for hold, kept in self.store.holds().items() if id_ in kept.on and hold in ids]
        return min([self.store.implied_since(CollectionId(id_)), *held])


TestHeldTables = HeldTables.TestCase
TestHeldTables.settings = settings(slow_law(6), stateful_step_count=25)
