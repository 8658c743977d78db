"""Plans that are made up: every step, in any tree, with each optional property absent, null or there."""

from datetime import timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.names import QueryId
from holdfast.runtime.plan.codec import decode, encode
from holdfast.runtime.plan.document import Plan, QueryPlan
from holdfast.runtime.plan.explain import explain
from holdfast.runtime.plan.forms import Choice, Flag, Form, Many, Seconds, Shape, Tagged, Text, TextOr, Whole
from holdfast.runtime.plan.presence import ABSENT
from holdfast.runtime.plan.shapes import PLAN, STEP, STEP_SHAPES
from holdfast.runtime.plan.steps import STEP_TYPES, FkTableTableJoin, JoinType, SourceStep
from holdfast.runtime.plan.windows import Duration, TimeUnit, WindowTime

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
DURATIONS = st.decimals(0, 10**9, allow_nan=False, places=9) | st.integers(0, 10**9).map(Decimal)


@cache
def values(form: Form, *, flat: bool = False) -> st.SearchStrategy[Any]:
    """What a field of this form may hold; flat trees have nothing but sources below their top."""
    match form:
        case Text():
            return TEXTS
        case Flag():
            return st.booleans()
        case Whole():
            return st.integers(0, 2**31)
        case Seconds():
            return DURATIONS.map(Duration)
        case Choice():
            return st.sampled_from(list(form.names))
        case Many():
            return st.lists(values(form.element), max_size=2).map(tuple)
        case TextOr():
            return TEXTS | values(form.other)
        case Shape():
            return objects(form)
        case Tagged() if form is STEP:
            return LEAVES if flat else STEPS
        case Tagged():
            return st.one_of([objects(shape) for shape in form.shapes().values()])
    raise AssertionError(form)


@cache
def objects(shape: Shape, *, flat: bool = False) -> st.SearchStrategy[Any]:
    members = {
        row.field: values(row.form, flat=flat) if row.required else st.just(ABSENT) | st.none() | values(row.form)
        for row in shape.properties
    }
    if shape.type is not FkTableTableJoin:
        return st.builds(shape.type, **members)
    members["join_type"] = st.sampled_from([JoinType.INNER, JoinType.LEFT, JoinType.RIGHT])
    nothing = st.just(ABSENT) | st.none()
    by_column = {**members, "left_join_column_name": TEXTS, "left_join_expression": nothing}
    by_expression = {**members, "left_join_column_name": nothing, "left_join_expression": TEXTS}
    return st.builds(shape.type, **by_column) | st.builds(shape.type, **by_expression)


SOURCES = [shape for tag, shape in STEP_SHAPES.items() if issubclass(STEP_TYPES[tag], SourceStep)]
OTHERS = [shape for shape in STEP_SHAPES.values() if shape not in SOURCES]
LEAVES: st.SearchStrategy[Any] = st.deferred(lambda: st.one_of([objects(shape) for shape in SOURCES]))
STEPS: st.SearchStrategy[Any] = st.deferred(lambda: st.one_of([objects(shape) for shape in (*SOURCES, *OTHERS)]))
PLANS = values(PLAN)


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
