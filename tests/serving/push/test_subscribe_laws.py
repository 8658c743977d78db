"""SUBSCRIBE from a time, folded up to another, is the table then; and going on after any progress loses nothing."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from holdfast.names import CollectionId
from holdfast.runtime.spark.engine import Engine
from holdfast.runtime.store.port import Time
from holdfast.serving.push import batch_size
from holdfast.serving.push.query import PushQuery
from tests.serving.client_reads import Reading, plain

TABLE = CollectionId("T")
Rows = Counter[tuple[Any, ...]]

KEYS = st.sampled_from("abcdef")
VALUES = st.none() | st.tuples(st.integers(0, 3), st.sampled_from(["x", "y", None]))
TICKS = st.lists(st.dictionaries(KEYS, VALUES, max_size=6), min_size=1, max_size=12)
SHOWN = st.sampled_from(["t", "(SELECT * FROM t WHERE n > 0)", "(SELECT id, n, s FROM t WHERE s = 'x' OR n = 2)"])
KEPT = {
    "t": lambda row: row is not None,
    "(SELECT * FROM t WHERE n > 0)": lambda row: row[1] > 0,
    "(SELECT id, n, s FROM t WHERE s = 'x' OR n = 2)": lambda row: row[2] == "x" or row[1] == 2,
}


@dataclass
class Past:
    """A table that begins empty, and what it was at each time."""

    reading: Reading
    versions: dict[int, dict[str, tuple[Any, ...]]]

    def tick(self, rows: dict[str, tuple[Any, ...] | None], gap: int) -> None:
        # A gap of none: the tick is at exactly the time of the last progress.
        self.reading.now += gap
        before = self.versions[max(self.versions)]
        time = self.reading.put("T", rows)
        after = {**before, **{key: value for key, value in rows.items() if value is not None}}
        self.versions[time] = {key: value for key, value in after.items() if rows.get(key, ()) is not None}

    def at(self, time: int, shown: str) -> Rows:
        """What a query shows of the table at a time."""
        version = self.versions[max(known for known in self.versions if known <= time)]
        return Counter(row for row in ((key, *value) for key, value in version.items()) if KEPT[shown](row))

    def forget(self, before: int) -> None:
        self.reading.store.advance_since(TABLE, Time(before))
        self.reading.store.compact(limit=1_000)

    @property
    def since(self) -> int:
        return self.reading.store.frontier(TABLE).since


@pytest.fixture(scope="module")
def store(engine: Engine) -> Iterator[Reading]:
    opened = Reading(engine)
    with pytest.MonkeyPatch.context() as small:
        small.setattr(batch_size, "FIRST_ROWS", 3)
        small.setattr(batch_size, "MOST_ROWS", 3)
        yield opened
    opened.close()


def fresh(reading: Reading) -> Past:
    past = Past(reading, {reading.put("T", dict.fromkeys("abcdef")): {}})
    past.forget(reading.now)
    return past


def between(data: st.DataObject, least: int, most: int) -> int:
    """A time. The range of what is drawn must not depend on the times, which differ from run to run."""
    return least + data.draw(st.integers(0, 100)) % (most - least + 1)


def received(push: PushQuery) -> list[tuple[Any, ...]]:
    """All rows until it ends."""
    found: list[tuple[Any, ...]] = []
    while True:
        try:
            batch = push.next(0)
        except StopIteration:
            return found
        assert batch is not None, "it waits for a time that has passed"
        found += plain(batch.rows)


def changes(rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    return Counter(row for row in rows if not row[1])


def folded(rows: list[tuple[Any, ...]]) -> Rows:
    """What is there after changes; nothing may go that is not there."""
    found: Rows = Counter()
    for _, progressed, diff, *row in rows:
        if not progressed:
            found[tuple(row)] += diff
            assert found[tuple(row)] >= 0
    return +found


def check_progress(rows: list[tuple[Any, ...]]) -> None:
    """No change comes before a time that was said to be over."""
    over = 0
    for time, progressed, *_ in rows:
        assert time >= over
        if progressed:
            assert time > over
            over = time


@settings(deadline=None, max_examples=40)
@given(data=st.data(), ticks=TICKS, shown=SHOWN)
def test_from_a_time_up_to_another_is_the_table_then(
    store: Reading, data: st.DataObject, ticks: Any, shown: str
) -> None:
    past = fresh(store)
    for rows in ticks:
        past.tick(rows, data.draw(st.integers(0, 2)))
    past.forget(between(data, past.since, store.now))
    a = between(data, past.since, store.now)
    b = between(data, a + 1, store.now + 1)
    # Drawn before the subscription starts: a draw may abandon the example, and its pin would stay.
    forgotten = between(data, past.since, store.now)
    push = store.subscribe(f"SUBSCRIBE {shown} WITH (PROGRESS) AS OF {a} UP TO {b};")
    past.forget(forgotten)
    found = received(push)
    check_progress(found)
    assert all(a <= time < b for time, progressed, *_ in found if not progressed)
    assert found[-1][:2] == (b, True), "the last row says that all before the end was sent"
    assert folded(found) == past.at(b - 1, shown)
    pages = store.store.snapshot(TABLE, Time(b - 1)) if b - 1 >= past.since else ()
    stored = Counter(row[:3] for page in pages for row in plain(page))
    assert not pages or Counter({row: n for row, n in stored.items() if KEPT[shown](row)}) == past.at(b - 1, shown)


@settings(deadline=None, max_examples=40)
@given(data=st.data(), ticks=TICKS, later=TICKS, shown=SHOWN)
def test_going_on_after_any_progress_loses_and_repeats_nothing(
    store: Reading, data: st.DataObject, ticks: Any, later: Any, shown: str
) -> None:
    past = fresh(store)
    start = store.now
    for rows in ticks:
        past.tick(rows, data.draw(st.integers(0, 2)))
    first = store.subscribe(f"SUBSCRIBE {shown} WITH (PROGRESS) AS OF {start} UP TO {store.now + 1};")
    cut = received(first)
    places = [i for i, row in enumerate(cut) if row[1]]
    place = data.draw(st.sampled_from(places))
    progressed = cut[place][0]
    for rows in later:
        past.tick(rows, data.draw(st.integers(0, 1)))
    past.forget(between(data, past.since, progressed - 1))
    end = store.now + 1
    rest = f"WITH (PROGRESS, SNAPSHOT = false) AS OF {progressed - 1} UP TO {end};"
    resumed = received(store.subscribe(f"SUBSCRIBE {shown} {rest}"))
    together = cut[:place] + resumed
    check_progress(together)
    assert folded(together) == past.at(end - 1, shown)
    twice = {change: n for change, n in changes(together).items() if n > 1}
    assert twice == {}, "keys are shown, so no change can come twice"
