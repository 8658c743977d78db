"""Holds over a real store: where they may be, what they keep, and what moves them on by themselves."""

import pytest

from holdfast.errors import DependentObjects, HoldTimeError, ReadError, UnreadableTime
from holdfast.names import CollectionId, HoldId
from holdfast.runtime.progress import Progress, Status
from tests.serving.client_reads import plain

from .hold_world import START, WINDOW, World


def implied(world: World) -> int:
    return world.store.implied_since(CollectionId("T"))


# ---- placing


def test_without_a_time_a_hold_takes_the_least_that_can_be_read_on_all(world: World) -> None:
    world.run("CREATE HOLD h ON t, i;")
    assert world.at("H") == max(world.store.implied_since(CollectionId(name)) for name in ("T", "I"))


def test_select_and_subscribe_as_of_a_hold_will_successfully_execute(world: World) -> None:
    first = world.now()
    world.run(f"CREATE HOLD h ON t AT {first};")
    was = world.rows(f"SELECT id, n FROM t AS OF {first};")
    world.go(START + 2 * WINDOW)
    assert world.rows(f"SELECT id, n FROM t AS OF {first};") == was
    sub = world.reading.subscribe(f"SUBSCRIBE t AS OF {first};")
    assert sub.next(1) is not None
    sub.close()


def test_the_time_must_be_in_advance_of_the_read_frontier(world: World) -> None:
    least = implied(world)
    with pytest.raises(HoldTimeError) as raised:
        world.run(f"CREATE HOLD h ON t AT {least - 1};")
    assert str(raised.value) == (
        f'hold "H" cannot be at {least - 1}, which is no longer readable at line 1, column 23\n'
        f'DETAIL: "T" has the read frontier {least}.\n'
        f"HINT: Valid times are {least} and later."
    )
    assert world.store.holds() == {}
    assert "H" not in world.catalog.holds


def test_or_of_any_other_hold_s_time_on_that_object(world: World) -> None:
    early = world.now()
    world.run(f"CREATE HOLD old ON t AT {early};")
    world.go(START + 2 * WINDOW)
    world.run(f"CREATE HOLD new ON t AT {early};")
    world.run("DROP HOLD old;")
    world.go(START + 3 * WINDOW)
    assert world.at("NEW") == early
    assert world.rows(f"SELECT id FROM t AS OF {early};") == [("a",)]
    with pytest.raises(HoldTimeError, match='hold "NEW" on it'):
        world.run(f"CREATE HOLD both ON t AT {early - 1};")


def test_a_hold_on_one_object_does_not_hold_another(world: World) -> None:
    early = world.now()
    world.run(f"CREATE HOLD h ON t AT {early};")
    world.go(START + 2 * WINDOW)
    assert world.rows(f"SELECT id FROM t AS OF {early};") == [("a",)]
    with pytest.raises(UnreadableTime):
        world.rows(f"SELECT id FROM i AS OF {early};")


def test_max_lag_has_a_ceiling(world: World) -> None:
    with pytest.raises(HoldTimeError, match="MAX LAG must be at most 7 days"):
        world.run("CREATE HOLD h ON t WITH (MAX LAG = '3 weeks');")


def test_a_table_that_is_being_built_cannot_be_held_yet(world: World) -> None:
    world.progress = Progress(Status.BUILDING)
    with pytest.raises(ReadError, match='table "T" is still building'):
        world.run("CREATE HOLD h ON t;")


# ---- moving


def test_advance_releases_what_is_before_it(world: World) -> None:
    early = world.now()
    world.run(f"CREATE HOLD h ON t AT {early};")
    world.go(START + 2 * WINDOW)
    world.run(f"ALTER HOLD h ADVANCE TO {early + 10};")
    world.store.compact(limit=1000)
    assert world.store.frontier(CollectionId("T")).since == early + 10
    with pytest.raises(UnreadableTime) as raised:
        world.rows(f"SELECT id FROM t AS OF {early};")
    assert f'The nearest hold is "H" on "T" at {early + 10}, which is in advance of it.' in str(raised.value)


def test_advance_without_a_time_goes_to_the_read_frontier(world: World) -> None:
    world.run(f"CREATE HOLD h ON t, i AT {world.now()};")
    world.go(START + 2 * WINDOW)
    world.run("ALTER HOLD h ADVANCE;")
    assert world.at("H") == max(world.store.implied_since(CollectionId(name)) for name in ("T", "I"))


def test_a_hold_can_go_backward_where_another_hold_allows_it(world: World) -> None:
    early = world.now()
    world.run(f"CREATE HOLD back ON t AT {early};")
    world.run("CREATE HOLD h ON t;")
    world.go(START + 2 * WINDOW)
    world.run("ALTER HOLD h ADVANCE;")
    world.run(f"ALTER HOLD h ADVANCE TO {early};")
    world.run("DROP HOLD back;")
    world.store.compact(limit=1000)
    assert world.rows(f"SELECT id FROM t AS OF {early};") == [("a",)]
    world.run("ALTER HOLD h ADVANCE;")
    with pytest.raises(HoldTimeError, match="cannot be at"):
        world.run(f"ALTER HOLD h ADVANCE TO {early};")


def test_beyond_max_lag_a_hold_advances_by_itself(world: World) -> None:
    world.run(f"CREATE HOLD h ON t AT {world.now()} WITH (MAX LAG = '20 min');")
    world.go(START + 1_000)
    assert [status.advanced for status in world.holds.status()] == [0]
    world.go(START + 2 * WINDOW)
    (status,) = world.holds.status()
    assert status.at == world.store.frontier(CollectionId("T")).upper - 1_200_000
    assert (status.advanced, status.lag_ms) == (1, 1_200_000)
    assert status.reason is not None
    assert "more than 1200000 ms behind" in status.reason
    world.run("DROP HOLD h;")
    assert world.store.get(f"hold/{status.hold.id}") is None


def test_in_progress_subscribes_are_not_affected_by_advance_and_drop(world: World) -> None:
    early = world.now()
    world.run(f"CREATE HOLD h ON t AT {early};")
    sub = world.reading.subscribe(f"SUBSCRIBE t AS OF {early};")
    world.go(START + 2 * WINDOW)
    world.run("ALTER HOLD h ADVANCE;")
    world.run("DROP HOLD h;")
    world.go(START + 3 * WINDOW)
    seen = []
    while len(seen) < 5 and (batch := sub.next(1)) is not None:
        seen += [(row[0], row[1]) for row in plain(batch.rows)]
    times = [time for time, _ in seen]
    assert times[0] == early
    assert len(times) == 5
    assert times == sorted(times)
    sub.close()


# ---- dropping, renaming, starting again


def test_it_is_an_error_to_drop_a_held_object_unless_cascade(world: World) -> None:
    world.run("CREATE HOLD h ON t, i;")
    world.run("CREATE HOLD other ON i;")
    with pytest.raises(DependentObjects) as raised:
        world.run("DROP TABLE t;")
    assert str(raised.value) == (
        'cannot drop table "T" because holds depend on it at line 1, column 12\n'
        "DETAIL: It is held by H.\n"
        "HINT: Write CASCADE to drop the holds too, or drop them first: DROP HOLD H;"
    )
    world.run("DROP TABLE t CASCADE;")
    assert set(world.catalog.holds) == {"OTHER"}
    assert len(world.store.holds()) == 1


def test_a_renamed_hold_keeps_its_time_so_that_one_can_be_swapped_for_another(world: World) -> None:
    early = world.now()
    world.run(f"CREATE HOLD h ON t AT {early};")
    world.go(START + 2 * WINDOW)
    world.run(f"CREATE HOLD h2 ON t AT {early};")
    world.run("DROP HOLD h;")
    world.run("ALTER HOLD h2 RENAME TO h;")
    assert set(world.catalog.holds) == {"H"}
    assert world.at("H") == early


def test_a_time_whose_command_was_never_written_is_let_go(world: World) -> None:
    world.store.put_hold(HoldId("stray"), [CollectionId("T")], world.now())
    world.holds.settle()
    assert world.store.holds() == {}


def test_a_hold_whose_store_was_rebuilt_begins_where_it_can(world: World) -> None:
    world.run("CREATE HOLD h ON t;")
    world.store.drop_holds(list(world.store.holds()))
    world.progress = Progress(Status.BUILDING)
    world.holds.settle()
    assert world.store.holds() == {}
    world.progress = Progress(Status.RUNNING)
    world.holds.settle()
    assert world.at("H") == world.store.frontier(CollectionId("T")).since
    assert [status.reason for status in world.holds.status()] == ["what it held was rebuilt"]
