"""Which windows a record falls in, and which of them are closed, is as Kafka Streams has it."""

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.runtime.plan.windows import HoppingWindow, TimeUnit, TumblingWindow, WindowTime
from holdfast.runtime.spark.builders.window import STREAM_TIME, Timed, build_windows, is_late
from holdfast.runtime.spark.engine import Round
from holdfast.runtime.spark.relation import StreamRelation
from holdfast.runtime.store.schemas import rows_schema
from holdfast.types import Column, Role, Scalar

SOURCE = StreamRelation("SELECT * FROM rows", (Column("K", Scalar.STRING, Role.KEY),), ())
ROWS = pa.schema(
    [
        ("k0", pa.string()),
        ("present", pa.bool_()),
        ("ts", pa.int64()),
        ("part", pa.int32()),
        ("off", pa.int64()),
        ("bad", pa.int32()),
    ]
)


def millis(value: int) -> WindowTime:
    return WindowTime(value=value, time_unit=TimeUnit.MILLISECONDS)


def expected(window, records, times):
    """One record after the other; `times` is the stream time by partition, and moves along."""
    size = window.size.millis
    advance = window.advance_by.millis if isinstance(window, HoppingWindow) else size
    found = []
    for off, (part, ts) in enumerate(records):
        times[part] = max(times.get(part, 0), ts)
        start = max(0, ts - size + advance) // advance * advance
        while start <= ts:
            if start + size > times[part] - window.grace_period.millis:
                found.append((off, start, start + size))
            start += advance
    return sorted(found)


def spark(engine, window, records, times):
    rows = [{"k0": "a", "present": True, "ts": ts, "part": p, "off": i, "bad": 0} for i, (p, ts) in enumerate(records)]
    before = [{"k0": part, "c0": time, "ts": time} for part, time in times.items()]
    inputs = {
        "rows": pa.Table.from_pylist(rows, schema=ROWS),
        "before": pa.Table.from_pylist(before, schema=rows_schema(STREAM_TIME)),
    }
    found = engine.select(build_windows(window, Timed(SOURCE), "before").sql, Round(inputs, {}))
    reached = engine.select(Timed(SOURCE).fragment("before", is_late(window)).sql, Round(inputs, {}))
    for row in reached.to_pylist():
        times[row["k0"]] = max(times.get(row["k0"], 0), row["p0"])
    assert sum(reached.column("late").to_pylist()) == len(rows) - len(set(found.column("off").to_pylist()))
    return sorted((row["off"], row["k1"], row["k2"]) for row in found.to_pylist())


windows = st.sampled_from(
    [
        TumblingWindow(size=millis(10), grace_period=millis(0)),
        TumblingWindow(size=millis(10), grace_period=millis(15)),
        HoppingWindow(size=millis(10), advance_by=millis(4), grace_period=millis(3)),
        HoppingWindow(size=millis(9), advance_by=millis(3), grace_period=millis(0)),
    ]
)
records = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 60)), min_size=1, max_size=8)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(window=windows, ticks=st.lists(records, min_size=1, max_size=3))
def test_windows_and_late_records(engine, window, ticks):
    by_record: dict[int, int] = {}
    by_tick: dict[int, int] = {}
    for tick in ticks:
        assert spark(engine, window, tick, by_tick) == expected(window, tick, by_record)
        assert by_tick == by_record


def test_without_a_grace_period_it_is_the_rest_of_a_day(engine):
    window = TumblingWindow(size=millis(10))
    day = 24 * 3600 * 1000
    assert spark(engine, window, [(0, day - 1), (0, 0)], {}) == [(0, day - 10, day), (1, 0, 10)]
    assert spark(engine, window, [(0, day), (0, 0)], {}) == [(0, day, day + 10)]


def test_bad_records_pass_and_do_not_move_time(engine):
    bad = {"k0": None, "present": True, "ts": 10**6, "part": 0, "off": 0, "bad": 1}
    good = {"k0": "a", "present": True, "ts": 5, "part": 0, "off": 1, "bad": 0}
    inputs = {
        "rows": pa.Table.from_pylist([bad, good], schema=ROWS),
        "before": rows_schema(STREAM_TIME).empty_table(),
    }
    window = TumblingWindow(size=millis(10), grace_period=millis(0))
    found = engine.select(build_windows(window, Timed(SOURCE), "before").sql, Round(inputs, {}))
    assert sorted(found.column("off").to_pylist()) == [0, 1]
    reached = engine.select(Timed(SOURCE).fragment("before", is_late(window)).good.sql, Round(inputs, {}))
    assert [(row["p0"], row["late"]) for row in reached.to_pylist() if not row["bad"]] == [(5, 0)]
