"""The laws of readable times, one by one."""

from holdfast.runtime.store.frontier import first_frontier, held_since, implied_since, is_readable, raised_upper
from holdfast.runtime.store.port import Frontier, Time


def test_readable_times_are_from_since_up_to_and_without_upper():
    frontier = Frontier(Time(3), Time(6))
    assert [at for at in range(9) if is_readable(frontier, Time(at))] == [3, 4, 5]


def test_the_last_final_time_is_inside_every_window():
    assert implied_since(Time(100), 0) == 99
    assert implied_since(Time(100), 30) == 70
    assert implied_since(Time(10), 30) == 0


def test_since_moves_neither_back_nor_past_a_hold_nor_past_upper():
    frontier = Frontier(Time(10), Time(20))
    assert held_since(frontier, Time(5), []) == 10
    assert held_since(frontier, Time(15), []) == 15
    assert held_since(frontier, Time(15), [Time(12), Time(18)]) == 12
    assert held_since(frontier, Time(15), [Time(7)]) == 10
    assert held_since(frontier, Time(99), []) == 20


def test_upper_never_moves_back():
    assert raised_upper(Frontier(Time(1), Time(5)), Time(3)) == Frontier(Time(1), Time(5))
    assert raised_upper(Frontier(Time(1), Time(5)), Time(8)) == Frontier(Time(1), Time(8))


def test_a_built_collection_is_first_readable_just_below_its_upper():
    assert first_frontier(Time(50), history_from=None, written=Time(10)) == Frontier(Time(49), Time(50))


def test_a_build_that_kept_its_history_is_readable_from_where_it_says():
    assert first_frontier(Time(50), history_from=Time(20), written=Time(45)) == Frontier(Time(20), Time(50))


def test_a_first_upper_is_above_all_that_was_written():
    assert first_frontier(Time(50), history_from=None, written=Time(60)) == Frontier(Time(60), Time(61))
