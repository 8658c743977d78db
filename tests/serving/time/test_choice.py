"""AS OF: which times can be read, what is said of those that cannot, and that an answer never changes."""

from threading import Timer

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.catalog.objects import NamedHold
from holdfast.errors import NotSupported, UnreadableTime
from holdfast.names import CollectionId, ObjectName
from holdfast.runtime.progress import Progress, Status
from holdfast.runtime.store.port import Frontier, Time
from holdfast.serving.time.choice import Bounds, Decider, choose
from holdfast.sql.literals.moment import BoundAsOf, Moment
from tests.serving.client_reads import Reading, plain

T = CollectionId("T")


def bounds(name: str, since: int, upper: int, frozen: str | None = None, holds: tuple[NamedHold, ...] = ()) -> Bounds:
    return Bounds(ObjectName(name), Frontier(Time(since), Time(upper)), frozen, holds)


def at(time: int, *, least: bool = False) -> BoundAsOf:
    return BoundAsOf(Moment(time), at_least=least)


A, B = bounds("A", 100, 301), bounds("B", 150, 301)
STOPPED = bounds("S", 120, 200, "its query was terminated")


def test_a_plain_read_takes_the_latest_final_time():
    choice = choose([A, B], Time(300))
    assert (choice.time, choice.decided, choice.by, choice.notice) == (300, Decider.NOW, None, None)


def test_an_object_that_is_not_kept_current_holds_a_plain_read_back():
    choice = choose([A, B, STOPPED], Time(300))
    assert (choice.time, choice.decided, choice.by) == (199, Decider.FROZEN, "S")
    assert choice.notice == 'table "S" has been frozen since 199: its query was terminated'


def test_as_of_takes_exactly_that_time():
    assert [choose([A, B], Time(300), at(t)).time for t in (150, 300, 500)] == [150, 300, 500]


def test_as_of_at_least_takes_the_greatest_since_where_the_time_is_gone():
    early, late = (choose([A, B], Time(300), at(t, least=True)) for t in (10, 160))
    assert (early.time, early.decided, early.by) == (150, Decider.SINCE, "B")
    assert (late.time, late.decided, late.by) == (160, Decider.AS_OF, None)


def test_a_time_before_since_is_refused_with_every_bound():
    with pytest.raises(UnreadableTime) as raised:
        choose([A, B], Time(300), at(120))
    assert str(raised.value) == (
        "could not find a valid timestamp for the query\n"
        'DETAIL: The requested time is 120. "A" has since 100 and upper 301. "B" has since 150 and upper 301.\n'
        "HINT: Valid times are 150 and later."
    )
    assert raised.value.sqlstate == "55000"


def test_a_time_beyond_an_upper_that_stays_is_an_error_and_not_an_endless_wait():
    with pytest.raises(UnreadableTime) as raised:
        choose([A, STOPPED], Time(300), at(200))
    assert str(raised.value) == (
        "could not find a valid timestamp for the query\n"
        'DETAIL: The requested time is 200. "A" has since 100 and upper 301. '
        '"S" has since 120 and upper 200, which is frozen: its query was terminated.\n'
        "HINT: Valid times are from 120 to 199."
    )


def test_objects_without_a_common_time():
    with pytest.raises(UnreadableTime) as raised:
        choose([bounds("A", 250, 301), STOPPED], Time(300))
    assert raised.value.hint == "No time is valid for all of them; read them in separate queries."


def test_the_nearest_hold_is_named():
    held = bounds(
        "A", 100, 301, holds=(NamedHold(ObjectName("FAR"), Time(290)), NamedHold(ObjectName("NEAR"), Time(110)))
    )
    with pytest.raises(UnreadableTime) as raised:
        choose([held], Time(300), at(90))
    assert raised.value.detail is not None
    assert raised.value.detail.endswith('The nearest hold is "NEAR" on "A" at 110, which is in advance of it.')


# ---- reads


def test_a_past_time_shows_what_was_true_then(reading):
    first = reading.put("T", {"a": (1, "x"), "b": (2, "y")})
    second = reading.put("T", {"a": (5, "x"), "b": None, "c": (3, "z")})
    before = reading.pull(f"SELECT id, n FROM t AS OF {first};")
    assert (sorted(plain(before.rows)), before.time) == ([("a", 1), ("b", 2)], first)
    after = reading.pull(f"SELECT id, n FROM t WHERE n > 3 AS OF {second};")
    assert (plain(after.rows), after.time) == ([("a", 5)], second)
    assert plain(reading.pull(f"SELECT n FROM t WHERE id = 'a' LIMIT 1 AS OF {first};").rows) == [(1,)]


def test_now_is_the_latest_final_time(reading):
    reading.put("T", {"a": (1, "x")})
    reading.now += 500
    assert reading.pull("SELECT * FROM t AS OF now();").time == reading.now
    assert reading.pull("SELECT * FROM t AS OF now() - 1;").time == reading.now - 1


def test_a_time_in_the_future_is_waited_for(reading):
    reading.put("T", {"a": (1, "x")})
    wanted = reading.now + 1
    later = Timer(0.1, lambda: reading.put("T", {"a": (2, "x")}))
    later.start()
    result = reading.pull(f"SELECT n FROM t AS OF {wanted};")
    assert (plain(result.rows), result.time) == ([(2,)], wanted)
    later.join()


def test_waiting_ends_when_the_table_is_not_kept_current_any_more(reading):
    reading.put("T", {"a": (1, "x")})

    def stop() -> None:
        reading.progress = Progress(Status.ERROR, reason="on purpose")

    later = Timer(0.1, stop)
    later.start()
    with pytest.raises(UnreadableTime, match="could not find a valid timestamp") as raised:
        reading.pull(f"SELECT n FROM t AS OF {reading.now + 1_000};")
    assert "its query TABLE_T stopped: on purpose" in str(raised.value)
    later.join()


def test_nothing_is_held_when_a_read_is_over(reading):
    first = reading.put("T", {"a": (1, "x")})
    reading.pull(f"SELECT * FROM t AS OF {first};")
    reading.now += 10_000_000
    reading.pull("SELECT * FROM t;")
    reading.store.compact(limit=100)
    assert reading.store.frontier(T).since > first
    with pytest.raises(UnreadableTime) as raised:
        reading.pull(f"SELECT * FROM t AS OF {first};")
    assert raised.value.position is not None
    assert raised.value.position.column == 23


def test_as_of_is_for_reading_once(reading):
    with pytest.raises(NotSupported, match="AS OF cannot be used with EMIT CHANGES"):
        reading.bound("SELECT * FROM t EMIT CHANGES AS OF 5;")


KEYS = st.sampled_from("abc")
STEPS = st.one_of(
    st.tuples(st.just("put"), st.dictionaries(KEYS, st.one_of(st.none(), st.integers(0, 9)), max_size=3)),
    st.tuples(st.just("wait"), st.integers(1, 700_000)),
    st.tuples(st.just("compact"), st.integers(1, 50)),
)


@pytest.fixture(scope="module")
def kept(engine):
    """Tables for many examples: each begins with an empty one, and no history."""
    opened = Reading(engine)
    yield opened
    opened.close()


AGES = st.one_of(st.integers(0, 10), st.integers(0, 2_000_000))
"""Of the times asked for; what is kept is the last million milliseconds."""


@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, max_size=12), st.lists(AGES, min_size=1, max_size=6))
def test_reads_over_random_histories_and_compactions_equal_the_model(kept, steps, ages):
    reading = kept
    start = reading.put("T", dict.fromkeys("abc"))
    reading.store.advance_since(T, start)
    reading.store.compact(limit=1_000)
    rows: dict[str, int] = {}
    history: list[tuple[int, dict[str, int]]] = [(start, {})]
    for kind, value in steps:
        if kind == "put":
            time = reading.put("T", {k: None if v is None else (v, "") for k, v in value.items()})
            rows = {k: v for k, v in {**rows, **value}.items() if v is not None}
            history.append((time, rows))
        elif kind == "wait":
            reading.let_pass(value)
        else:
            reading.store.compact(limit=value)
    since = reading.store.frontier(T).since
    for age in ages:
        wanted = max(0, reading.now - age)
        expected = [shown for time, shown in history if time <= max(wanted, since)][-1]
        least = reading.pull(f"SELECT id, n FROM t AS OF AT LEAST {wanted};")
        assert least.time == max(wanted, since)
        assert dict(plain(least.rows)) == expected
        if wanted < since:
            with pytest.raises(UnreadableTime, match=f"Valid times are {since} and later"):
                reading.pull(f"SELECT id, n FROM t AS OF {wanted};")
        else:
            assert dict(plain(reading.pull(f"SELECT id, n FROM t AS OF {wanted};").rows)) == expected
