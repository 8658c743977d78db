"""Plans that are made up survive being written and read."""

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.explain.text import explain
from holdfast.names import QueryId
from holdfast.runtime.plan.codec import decode, encode
from holdfast.runtime.plan.document import Plan, QueryPlan
from holdfast.runtime.plan.steps import STEP_TYPES
from holdfast.runtime.plan.vocabulary import STEP_SHAPES
from holdfast.runtime.plan.windows import Duration, TimeUnit, WindowTime

from .made_up import PLANS, objects


def survives(plan: Plan) -> bool:
    text = encode(plan)
    return decode(text) == plan and encode(decode(text)) == text


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(PLANS)
def test_a_plan_survives_being_written_and_read(plan: Plan):
    assert survives(plan)
    assert explain(decode(encode(plan))) == explain(plan)


@pytest.mark.parametrize("tag", STEP_TYPES)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_every_step_survives_being_written_and_read(tag: str, data: st.DataObject):
    step = data.draw(objects(STEP_SHAPES[tag], flat=True))
    query = QueryPlan(sources=(), physical_plan=step, query_id=QueryId("Q"))
    assert survives(Plan(statement_text="", query_plan=query))


@given(st.timedeltas(min_value=timedelta(0)))
def test_a_duration_has_nine_decimals_and_whole_milliseconds(span: timedelta):
    duration = Duration.of(span)
    assert duration.seconds.as_tuple().exponent == -9
    assert duration.millis == span // timedelta(milliseconds=1)
    assert duration.timedelta == timedelta(milliseconds=duration.millis)


@pytest.mark.parametrize(
    ("time", "millis"),
    [
        (WindowTime(value=1_999_999, time_unit=TimeUnit.NANOSECONDS), 1),
        (WindowTime(value=2_500, time_unit=TimeUnit.MICROSECONDS), 2),
        (WindowTime(value=7, time_unit=TimeUnit.MILLISECONDS), 7),
        (WindowTime(value=30, time_unit=TimeUnit.SECONDS), 30_000),
        (WindowTime(value=2, time_unit=TimeUnit.MINUTES), 120_000),
        (WindowTime(value=1, time_unit=TimeUnit.HOURS), 3_600_000),
        (WindowTime(value=1, time_unit=TimeUnit.DAYS), 86_400_000),
    ],
)
def test_a_window_time_in_milliseconds(time: WindowTime, millis: int):
    assert time.millis == millis
    assert time.timedelta == timedelta(milliseconds=millis)
