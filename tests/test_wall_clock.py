"""The clock that a test moves."""

from holdfast.wall_clock import ManualClock, SteppedClock, WallClock


def test_small_steps_of_a_manual_clock_add_up_exactly():
    clock = ManualClock(1_000)
    for _ in range(1_001):
        clock.advance(0.001)
    assert (clock.now_ms(), clock.monotonic()) == (2_001, 1.001)


def test_a_stepped_clock_has_the_offset_of_its_file(tmp_path):
    clock, plain = SteppedClock(tmp_path / "clock"), WallClock()
    assert abs(clock.now_ms() - plain.now_ms()) < 1_000
    (tmp_path / "clock").write_text("-3600000")
    assert abs(clock.now_ms() + 3_600_000 - plain.now_ms()) < 1_000
