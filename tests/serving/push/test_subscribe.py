"""SUBSCRIBE over a table."""

from collections.abc import Iterator

import pytest

from holdfast.errors import BadTime, UnreadableTime
from holdfast.names import CollectionId
from holdfast.runtime.progress import Progress, Status
from holdfast.serving.push import batch_size
from holdfast.serving.push.query import PushQuery
from tests.serving.client_reads import Reading, plain
from tests.serving.push.test_push import least_hold

TABLE = CollectionId("T")


def rows(push: PushQuery) -> list[tuple]:
    """The rows that are ready now."""
    return list(iterate(push))


def iterate(push: PushQuery) -> Iterator[tuple]:
    try:
        while (batch := push.next(0)) is not None:
            yield from plain(batch.rows)
    except StopIteration:
        return


def names(push: PushQuery) -> list[str]:
    return [column.name for column in push.columns]


def test_the_rows_as_of_a_time_then_what_came_and_what_went(reading: Reading) -> None:
    reading.put("T", {"a": (1, "x")})
    start = reading.put("T", {"b": (2, "y")})
    push = reading.subscribe("SUBSCRIBE t;")
    assert names(push) == ["mz_timestamp", "mz_diff", "ID", "N", "S"]
    assert rows(push) == [(start, 1, "a", 1, "x"), (start, 1, "b", 2, "y")]
    changed = reading.put("T", {"a": (3, "x"), "b": None})
    found = rows(push)
    assert sorted(found[:2]) == [(changed, -1, "a", 1, "x"), (changed, -1, "b", 2, "y")], "what went comes first"
    assert found[2:] == [(changed, 1, "a", 3, "x")]
    push.close()


def test_a_filter_and_a_projection_emit_only_changes_that_they_show(reading: Reading) -> None:
    push = reading.subscribe("SUBSCRIBE TO (SELECT id, n / 10 AS tens FROM t WHERE n > 9);")
    assert names(push) == ["mz_timestamp", "mz_diff", "ID", "TENS"]
    times = [reading.put("T", {"a": (n, "x")}) for n in (5, 10, 11, 25, 7)] + [reading.put("T", {"a": None})]
    assert rows(push) == [
        (times[1], 1, "a", 1),
        (times[3], -1, "a", 1),
        (times[3], 1, "a", 2),
        (times[4], -1, "a", 2),
    ]
    push.close()


def test_without_a_snapshot_only_later_times(reading: Reading) -> None:
    at = reading.put("T", {"a": (1, "x")})
    later = reading.put("T", {"a": (2, "x")})
    push = reading.subscribe(f"SUBSCRIBE t WITH (SNAPSHOT = false) AS OF {at};")
    assert rows(push) == [(later, -1, "a", 1, "x"), (later, 1, "a", 2, "x")]
    push.close()


def test_up_to_ends_it_before_that_time(reading: Reading) -> None:
    at = reading.put("T", {"a": (1, "x")})
    later = reading.put("T", {"b": (2, "x")})
    reading.put("T", {"c": (3, "x")})
    push = reading.subscribe(f"SUBSCRIBE t AS OF {at} UP TO {later + 1};")
    assert rows(push) == [(at, 1, "a", 1, "x"), (later, 1, "b", 2, "x")]
    with pytest.raises(StopIteration):
        push.next(0)
    assert least_hold(reading) == reading.now, "and it lets go of history"
    nothing = reading.subscribe(f"SUBSCRIBE t AS OF {reading.now} UP TO {reading.now};")
    assert rows(nothing) == [], "no time is at least the one and below the other"
    with pytest.raises(StopIteration):
        nothing.next(0)


def test_up_to_a_time_that_is_to_come(reading: Reading) -> None:
    push = reading.subscribe(f"SUBSCRIBE t WITH (PROGRESS) UP TO {reading.now + 3};")
    first = reading.now
    assert rows(push) == [(first + 1, True, None, None, None, None)]
    at = reading.put("T", {"a": (1, "x")})
    assert rows(push) == [(at, False, 1, "a", 1, "x"), (at + 1, True, None, None, None, None)]
    reading.put("T", {})
    reading.put("T", {"b": (1, "x")})
    assert rows(push) == [(first + 3, True, None, None, None, None)]
    with pytest.raises(StopIteration):
        push.next(0)


def test_progress_after_each_time_with_data_and_none_for_what_is_not_shown(reading: Reading) -> None:
    start = reading.now
    push = reading.subscribe("SUBSCRIBE (SELECT id FROM t WHERE n > 0) WITH (PROGRESS = true);")
    assert names(push) == ["mz_timestamp", "mz_progressed", "mz_diff", "ID"]
    assert rows(push) == [(start + 1, True, None, None)]
    one, two = reading.put("T", {"a": (1, "x")}), reading.put("T", {"b": (1, "x")})
    reading.put("T", {"c": (-1, "x")})
    assert rows(push) == [
        (one, False, 1, "a"),
        (one + 1, True, None, None),
        (two, False, 1, "b"),
        (two + 1, True, None, None),
    ]
    assert rows(push) == []
    push.close()


def test_progress_of_a_tick_that_is_read_in_parts_comes_after_the_last(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_size, "FIRST_ROWS", 3)
    monkeypatch.setattr(batch_size, "MOST_ROWS", 3)
    push = reading.subscribe("SUBSCRIBE t WITH (PROGRESS, SNAPSHOT = false);")
    large = reading.put("T", {f"k{i}": (i, "x") for i in range(8)})
    small = reading.put("T", {"k1": None})
    found = rows(push)
    assert [row[1] for row in found] == [False] * 8 + [True, False, True]
    assert [row[0] for row in found if row[1]] == [large + 1, small + 1]
    push.close()


def test_progress_comes_where_nothing_happens(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.serving.push.subscribe.PROGRESS_SECONDS", 0)
    push = reading.subscribe("SUBSCRIBE t WITH (PROGRESS, SNAPSHOT = false);")
    reading.now += 5_000
    assert push.next(0).rows.to_pylist()[0]["r0"] == reading.now + 1
    assert push.next(0) is None, "not twice for one time"
    push.close()


def test_an_envelope_shows_the_row_of_a_key_or_its_deletion(reading: Reading) -> None:
    start = reading.put("T", {"a": (1, "x")})
    push = reading.subscribe("SUBSCRIBE (SELECT n, id, s FROM t) ENVELOPE UPSERT (KEY (id)) WITH (PROGRESS);")
    assert names(push) == ["mz_timestamp", "mz_progressed", "mz_state", "ID", "N", "S"]
    assert rows(push) == [(start, False, "upsert", "a", 1, "x"), (start + 1, True, None, None, None, None)]
    one, two = reading.put("T", {"a": (2, "x")}), reading.put("T", {"a": None})
    assert [row for row in rows(push) if not row[1]] == [
        (one, False, "upsert", "a", 2, "x"),
        (two, False, "delete", "a", None, None),
    ]
    push.close()


def test_an_envelope_whose_key_has_a_value_in_it(reading: Reading) -> None:
    reading.put("T", {"a": (1, "x")})
    push = reading.subscribe("SUBSCRIBE t WITH (SNAPSHOT = false) ENVELOPE UPSERT (KEY (id, n));")
    one, two = reading.put("T", {"a": (1, "y")}), reading.put("T", {"a": (2, "y")})
    assert rows(push) == [
        (one, "upsert", "a", 1, "y"),
        (two, "delete", "a", 1, None),
        (two, "upsert", "a", 2, "y"),
    ]
    push.close()


def test_a_time_before_since_is_refused_with_the_times_that_are_not(reading: Reading) -> None:
    reading.put("T", {"a": (1, "x")})
    reading.now += 100
    since = least_hold(reading)
    assert since == reading.now
    with pytest.raises(UnreadableTime) as refused:
        reading.subscribe("SUBSCRIBE t AS OF 2;")
    assert refused.value.message == "could not find a valid timestamp for the query"
    assert f'The requested time is 2. "T" has since {since} and upper {reading.now + 1}.' == refused.value.detail
    assert refused.value.hint == f"Valid times are {since} and later."
    assert refused.value.position is not None
    push = reading.subscribe("SUBSCRIBE t AS OF AT LEAST 2;")
    assert [row[0] for row in rows(push)] == [since]
    push.close()


def test_a_time_after_a_frozen_upper_is_refused(reading: Reading) -> None:
    upper = reading.put("T", {"a": (1, "x")}) + 1
    reading.progress = Progress(Status.ERROR, reason="it broke")
    with pytest.raises(UnreadableTime) as refused:
        reading.subscribe(f"SUBSCRIBE t AS OF {upper};")
    assert "which is frozen: its query TABLE_T stopped: it broke" in (refused.value.detail or "")
    assert (refused.value.hint or "").endswith(f" to {upper - 1}.")


def test_up_to_below_as_of_is_refused(reading: Reading) -> None:
    at = reading.put("T", {"a": (1, "x")})
    with pytest.raises(BadTime) as refused:
        reading.subscribe(f"SUBSCRIBE t AS OF {at} UP TO {at - 1};")
    assert refused.value.message == "UP TO must not be below AS OF"
    assert refused.value.detail == f"The query would start at {at} and end before {at - 1}."
    assert least_hold(reading) == reading.now, "nothing is held"


def test_a_time_in_the_future_is_waited_for(reading: Reading) -> None:
    reading.put("T", {"a": (1, "x")})
    at = reading.now + 2
    push = reading.subscribe(f"SUBSCRIBE t AS OF {at};")
    assert rows(push) == []
    assert push.time is None
    assert not push.ready()
    reading.put("T", {"b": (2, "x")})
    assert rows(push) == []
    reading.put("T", {"a": None})
    assert push.ready()
    assert rows(push) == [(at, 1, "b", 2, "x")]
    push.close()


def test_resuming_after_progress_is_one_less(reading: Reading) -> None:
    """Also where something changed at exactly that time."""
    first = reading.subscribe("SUBSCRIBE t WITH (PROGRESS);")
    reading.put("T", {"a": (1, "x")})
    progressed = rows(first)[-1][0]
    at = reading.put("T", {"b": (2, "x")})
    assert at == progressed
    second = reading.subscribe(f"SUBSCRIBE t WITH (SNAPSHOT = false) AS OF {progressed - 1};")
    assert rows(second) == [(at, 1, "b", 2, "x")]
    first.close()
    second.close()


def test_it_keeps_history_until_it_has_read_it_and_not_after_it_is_closed(reading: Reading) -> None:
    push = reading.subscribe("SUBSCRIBE t WITH (SNAPSHOT = false);")
    place = reading.now
    for value in range(5):
        reading.put("T", {"a": (value, "x")})
    assert least_hold(reading) == place == push.pinned_at
    assert len(rows(push)) == 9
    assert least_hold(reading) == push.pinned_at > place
    push.close()
    assert least_hold(reading) == reading.now


def test_both_dialects_emit_the_same(engine) -> None:
    reading = Reading(engine)
    here = reading.subscribe("SUBSCRIBE (SELECT id, n + 1 AS m FROM t WHERE n > 1) WITH (PROGRESS);")
    spark = reading.subscribe(
        "SUBSCRIBE (SELECT id, n + 1 AS m FROM t WHERE n > 1 AND UCASE(id) <> '') WITH (PROGRESS);"
    )
    for value in (1, 2, 3, 3, 1, None):
        reading.put("T", {"a": (value, "x")})
        reading.put("T", {f"b{value}": (value, "y")})
    found = rows(here)
    assert found == rows(spark)
    assert [row[2:] for row in found if row[3] == "a"] == [(1, "a", 3), (-1, "a", 3), (1, "a", 4), (-1, "a", 4)]
    here.close()
    spark.close()
    reading.close()


def test_any_other_query_is_compared_at_each_time(reading: Reading) -> None:
    start = reading.put("T", {"a": (1, "x"), "b": (2, "x"), "c": (3, "y")})
    push = reading.subscribe("SUBSCRIBE (SELECT s, SUM(n) AS total FROM t GROUP BY s) WITH (PROGRESS);")
    assert names(push) == ["mz_timestamp", "mz_progressed", "mz_diff", "S", "TOTAL"]
    found = rows(push)
    assert sorted(found[:2]) == [(start, False, 1, "x", 3), (start, False, 1, "y", 3)]
    assert found[2:] == [(start + 1, True, None, None, None)]
    one = reading.put("T", {"a": (5, "x")})
    reading.put("T", {"b": (2, "x")})
    two = reading.put("T", {"c": None})
    assert rows(push) == [
        (one, False, -1, "x", 3),
        (one, False, 1, "x", 7),
        (one + 1, True, None, None, None),
        (two, False, -1, "y", 3),
        (two + 1, True, None, None, None),
    ], "a time at which the result stays the same is not reported"
    assert push.pinned_at == two
    push.close()
    assert least_hold(reading) == reading.now


def test_a_query_over_two_tables_is_read_at_one_time(reading: Reading) -> None:
    reading.put("I", {1: (10,), 2: (20,)})
    start = reading.put("T", {"a": (1, "x")})
    push = reading.subscribe("SUBSCRIBE (SELECT t.id, i.n FROM t JOIN i ON t.n = i.id);")
    assert rows(push) == [(start, 1, "a", 10)]
    one, two = reading.put("T", {"a": (2, "x")}), reading.put("I", {2: None})
    assert rows(push) == [(one, -1, "a", 10), (one, 1, "a", 20), (two, -1, "a", 20)]
    push.close()


def test_resuming_another_query(reading: Reading) -> None:
    reading.put("T", {"a": (1, "x")})
    at = reading.now
    one = reading.put("T", {"b": (2, "x")})
    query = "(SELECT COUNT(*) AS n FROM t)"
    push = reading.subscribe(f"SUBSCRIBE {query} WITH (SNAPSHOT = false) AS OF {at} UP TO {one + 1};")
    assert rows(push) == [(one, -1, 1), (one, 1, 2)]
    with pytest.raises(StopIteration):
        push.next(0)
    with pytest.raises(BadTime):
        reading.subscribe(f"SUBSCRIBE {query} AS OF {one} UP TO {at};")
    later = reading.subscribe(f"SUBSCRIBE {query} AS OF {reading.now + 1};")
    assert rows(later) == []
    two = reading.put("T", {"c": (1, "x")})
    assert rows(later) == [(two, 1, 3)]
    later.close()
    assert least_hold(reading) == reading.now


def test_an_envelope_of_another_query_reports_keys_that_are_not_unique(reading: Reading) -> None:
    start = reading.put("T", {"a": (1, "x"), "b": (2, "y"), "c": (2, "z")})
    push = reading.subscribe("SUBSCRIBE (SELECT DISTINCT n, s FROM t) ENVELOPE UPSERT (KEY (n));")
    assert sorted(rows(push)) == [(start, "key_violation", 2, None), (start, "upsert", 1, "x")]
    one = reading.put("T", {"a": (1, "w")})
    two = reading.put("T", {"a": None})
    assert rows(push) == [(one, "upsert", 1, "w"), (two, "delete", 1, None)]
    push.close()
