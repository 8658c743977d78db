"""SUBSCRIBE over any other query: it is evaluated at each time at which one of its tables changed, and compared."""

from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from threading import Lock

import pyarrow as pa

from holdfast.errors import ReadError
from holdfast.names import CollectionId
from holdfast.runtime.store.port import Time
from holdfast.serving.follow import BATCH_BYTES, CATCH_UP_MS, ends_before_it_begins
from holdfast.serving.read import rows_at
from holdfast.serving.results import PushBatch
from holdfast.serving.rows import RowReader
from holdfast.serving.subscribe import Subscribing
from holdfast.serving.times import Times
from holdfast.serving.wakeup import Wakeup
from holdfast.sql.bound import BoundSubscribe
from holdfast.sql.bound_read import BoundRead

DIFFERENCE = """
SELECT CAST(1 AS BIGINT) AS diff, * FROM (SELECT * FROM after EXCEPT ALL SELECT * FROM before)
UNION ALL SELECT CAST(-1 AS BIGINT), * FROM (SELECT * FROM before EXCEPT ALL SELECT * FROM after)
ORDER BY 1"""


class QuerySubscription(Subscribing):
    """Follows a query over several tables, or one that computes over many rows."""

    def __init__(self, bound: BoundSubscribe, reader: RowReader, times: Times, wakeup: Wakeup) -> None:
        assert isinstance(bound.select, BoundRead)
        tables = list({table.name: table for table in bound.select.tables}.values())
        super().__init__(bound, [table.name for table in tables], wakeup)
        self._bound, self._query, self._tables = bound, bound.select, tables
        self._reader, self._times = reader, times
        self._collections = [CollectionId(table.name) for table in tables]
        self._ahead: deque[Time] = deque()
        self._pages: Iterator[pa.Table] | None = None
        self._known: pa.Table | None = None
        """The rows at `at`, where they are few."""
        self._holding = Lock()
        self._held: ExitStack | None = None
        self._at = Time(0)
        self._up_to: Time | None = None
        self._waiting = True
        if not self._building():
            self._begin()

    @property
    def held(self) -> Time | None:
        return self._at if self._held is not None else None

    def close(self) -> None:
        super().close()
        self._keep(None)

    def _building(self) -> bool:
        return any(self._times.building(table) for table in self._tables)

    def _pending(self) -> bool:
        if self._held is None:
            return not self._building()
        if self._waiting:
            return self._times.now() >= self._at
        store = self._reader.store
        return bool(self._pages or self._ahead) or any(store.changed_at(each) > self._at for each in self._collections)

    def _ended(self) -> bool:
        if self._up_to is None or self._waiting or self._pages is not None or self._ahead:
            return False
        return self._at + 1 >= self._up_to and self._is_told(self._at)

    def _begin(self) -> None:
        while not self._closed.is_set():
            at = self._times.choose(self._tables, self._bound.as_of).time
            try:
                self._advance(at)
                break
            except ReadError:  # since has moved on between the choice and the hold
                continue
        if self._bound.up_to is not None:
            self._up_to = Time(self._bound.up_to.at(self._times.now()))
            if self._up_to < self._at:
                self.close()
                raise ends_before_it_begins(self._bound.up_to, self._at, self._up_to)
        if not self._bound.snapshot:
            self._time = self._at
        self._waiting = self._up_to != self._at

    def _read(self) -> PushBatch | None:
        if self._held is None:
            if self._building():
                return None
            self._begin()
        if self._waiting and not self._arrive():
            return None
        if self._pages is not None:
            page = next(self._pages, None)
            if page is not None:
                return PushBatch(page, None)
            self._pages, self._time = None, self._at
            return self._snapshot_done(self._at)
        if not self._ahead and not self._look():
            return self._progress(self._time, ended=self._up_to is not None and self._at + 1 >= self._up_to)
        return self._change(self._ahead.popleft())

    def _arrive(self) -> bool:
        """Whether the time to begin at is there; one in the future is waited for."""
        if self._latest() < self._at:
            # An error, should a table stop short of it.
            self._times.choose(self._tables, self._bound.as_of)
            return False
        self._waiting = False
        if self._bound.snapshot:
            self._pages = self._snapshot(self._rows(self._at))
        return True

    def _snapshot(self, rows: pa.Table) -> Iterator[pa.Table]:
        nothing = rows.schema.empty_table()
        told = self._told_of(nothing, rows, self._at) if self._bound.key else self._told.rows(rows, self._at)
        width = max(1, BATCH_BYTES * told.num_rows // max(told.nbytes, 1))
        return (told.slice(start, width) for start in range(0, told.num_rows, width))

    def _latest(self) -> Time:
        """The latest time that is final for all of the tables."""
        return Time(min(self._times.latest(table).time for table in self._tables))

    def _look(self) -> bool:
        """Find the times at which something came since; where nothing did, only the time has moved on."""
        latest = self._latest()
        if self._up_to is not None:
            latest = Time(min(latest, self._up_to - 1))
        store = self._reader.store
        found: set[Time] = set()
        for each in self._collections:
            to = Time(min(latest, store.changed_at(each)))
            if to > self._at:
                found.update(store.change_times(each, self._at, to))
        self._ahead.extend(sorted(found))
        if not self._ahead:
            self._time = max(latest, self._at)
            if latest >= self._at + CATCH_UP_MS or latest + 1 == self._up_to:
                same = self._known
                self._advance(latest)
                self._known = same
        return bool(self._ahead)

    def _change(self, time: Time) -> PushBatch:
        before = self._known if self._known is not None else self._rows(self._at)
        after = self._rows(time)
        told = self._told_of(before, after, time)
        self._advance(time)
        self._known = after if after.nbytes < BATCH_BYTES else None
        self._time = time
        if told.num_rows and self._told.with_progress:
            told = pa.concat_tables([told, self._told.progress(Time(time + 1))])
        self._note(told)
        return PushBatch(told, time)

    def _rows(self, at: Time) -> pa.Table:
        return rows_at(self._query, at, self._reader.store, self._reader.engine)

    def _told_of(self, before: pa.Table, after: pa.Table, time: Time) -> pa.Table:
        sql = self._envelope() if self._bound.key else DIFFERENCE
        found = self._reader.store.evaluate_over(sql, {"before": before, "after": after})
        return self._told.rows(found.drop_columns(["diff"]), time, found.column("diff"))

    def _envelope(self) -> str:
        """Of each key whose rows changed: the row that it has now, that it has none, or that it has several."""
        names = [f"r{i}" for i in range(len(self._query.columns))]
        keys = [names[i] for i in self._bound.key]
        came = "count(*) FILTER (WHERE diff > 0)"
        values = [
            name
            if name in keys
            else f"CASE WHEN {came} = 1 THEN any_value({name}) FILTER (WHERE diff > 0) END AS {name}"
            for name in names
        ]
        state = f"CASE {came} WHEN 0 THEN 'delete' WHEN 1 THEN 'upsert' ELSE 'key_violation' END"
        return f"SELECT {state} AS diff, {', '.join(values)} FROM ({DIFFERENCE}) GROUP BY {', '.join(keys)}"

    def _advance(self, to: Time) -> None:
        store = self._reader.store
        with ExitStack() as taken:
            for each in self._collections:
                taken.callback(store.release, store.hold(each, to))
            self._keep(taken.pop_all())
        self._at, self._known = to, None

    def _keep(self, held: ExitStack | None) -> None:
        """Take holds in place of those before; a subscription that was closed meanwhile keeps none."""
        with self._holding:
            ended = [self._held, held] if self._closed.is_set() else [self._held]
            self._held = None if self._closed.is_set() else held
        for each in ended:
            if each is not None:
                each.close()
