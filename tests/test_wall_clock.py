"""The clock that a test moves."""

from holdfast.wall_clock import ManualClock


def test_small_steps_of_a_manual_clock_add_up_exactly():
    clock = ManualClock(1_000)
    for _ in range(1_001):
        clock.advance(0.001)
    assert (clock.now_ms(), clock.monotonic()) == (2_001, 1.001)
