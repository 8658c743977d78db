"""The properties of a windowed topic: WINDOW_TYPE, WINDOW_SIZE, WINDOW_TOPIC and RETENTION."""

from enum import StrEnum

from holdfast.errors import BindError
from holdfast.runtime.plan.windows import Duration, OutputRefinement, WindowInfo, WindowTopic, WindowType
from holdfast.sql.properties.values import INTEGER, wrong_value
from holdfast.sql.syntax.span import UNITS, span_of
from holdfast.sql.syntax.statements import Property


def window_of(kind: Property | None, size: Property | None) -> WindowInfo | None:
    """The window of a topic's keys; None if the keys have none."""
    if kind is None:
        if size is not None:
            raise BindError("WINDOW_SIZE needs WINDOW_TYPE", position=size.position)
        return None
    type_ = WindowType(_choice(kind, WindowType))
    if type_ is WindowType.SESSION:
        if size is not None:
            raise BindError(
                "WINDOW_SIZE cannot be set for SESSION windows",
                detail="The length of each session is in its key.",
                hint="Leave WINDOW_SIZE out.",
                position=size.position,
            )
        return WindowInfo(type=type_, size=None, emit_strategy=OutputRefinement.CHANGES)
    if size is None:
        raise BindError(
            f"WINDOW_SIZE is missing for {type_} windows",
            detail="A key has only the start of its window.",
            hint="Write WINDOW_SIZE='1 HOUR'.",
            position=kind.position,
        )
    return WindowInfo(type=type_, size=_duration(size), emit_strategy=OutputRefinement.CHANGES)


def window_topic_of(item: Property | None) -> WindowTopic | None:
    """The layout of a topic's windowed keys."""
    if item is None:
        return None
    hint = "CHANGELOG is the changelog of a window store, TOPIC everything else."
    return WindowTopic(_choice(item, WindowTopic, hint))


def retention_of(item: Property | None) -> Duration | None:
    return None if item is None else _duration(item)


def _choice(item: Property, names: type[StrEnum], hint: str | None = None) -> str:
    name = str(item.value).upper()
    if name not in list(names):
        raise wrong_value(item, f"one of {', '.join(names)}", hint)
    return name


def _duration(item: Property) -> Duration:
    """A positive duration."""
    words = str(item.value).split()
    unit = UNITS.get(words[1].upper().removesuffix("S")) if len(words) == 2 else None
    if unit is None or not INTEGER.fullmatch(words[0].removeprefix("-")):
        raise wrong_value(item, "a number and a unit of time, such as '10 SECONDS'")
    if int(words[0]) <= 0:
        raise wrong_value(item, "longer than zero", hint=f"Write {item.name}='10 SECONDS', for instance.")
    return Duration.of(span_of(int(words[0]), unit, item.position).timedelta)
