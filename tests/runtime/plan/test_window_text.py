"""Windows as plans before 7.3 have them."""

import pytest

from holdfast.errors import PlanError
from holdfast.runtime.plan.optional import ABSENT
from holdfast.runtime.plan.window_text import parse_window
from holdfast.runtime.plan.windows import HoppingWindow, SessionWindow, TimeUnit, TumblingWindow, WindowTime

SECONDS, MINUTES = TimeUnit.SECONDS, TimeUnit.MINUTES


def time(value: int, unit: TimeUnit = SECONDS) -> WindowTime:
    return WindowTime(value=value, time_unit=unit)


@pytest.mark.parametrize(
    ("text", "window"),
    [
        (" TUMBLING ( SIZE 30 SECONDS ) ", TumblingWindow(size=time(30))),
        (
            " TUMBLING ( SIZE 2 MILLISECONDS , GRACE PERIOD 1 MINUTE ) ",
            TumblingWindow(size=time(2, TimeUnit.MILLISECONDS), grace_period=time(1, MINUTES)),
        ),
        (
            " HOPPING ( SIZE 5 SECONDS , ADVANCE BY 1 SECONDS , RETENTION 2 DAYS ) ",
            HoppingWindow(size=time(5), advance_by=time(1), retention=time(2, TimeUnit.DAYS)),
        ),
        (" SESSION ( 1 SECONDS ) ", SessionWindow(gap=time(1), retention=ABSENT, grace_period=ABSENT)),
    ],
)
def test_a_window_is_read(text, window):
    assert parse_window(text) == window


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SLIDING ( SIZE 1 SECONDS )",
        "TUMBLING ( 1 SECONDS )",
        "TUMBLING ( SIZE 1 SECONDS , ADVANCE BY 1 SECONDS )",
        "HOPPING ( SIZE 1 SECONDS )",
        "SESSION ( SIZE 1 SECONDS )",
        "TUMBLING ( SIZE 1 FORTNIGHTS )",
        "TUMBLING ( SIZE x SECONDS )",
    ],
)
def test_what_is_no_window_is_refused_with_its_text(text):
    with pytest.raises(PlanError, match="cannot be parsed") as refused:
        parse_window(text)
    assert text.strip() in str(refused.value)
