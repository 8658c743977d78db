"""How a table over a windowed topic retains its windows: WINDOW_TOPIC and RETENTION."""

from datetime import timedelta

from holdfast.errors import BindError
from holdfast.names import show
from holdfast.runtime.plan.optional import value_of
from holdfast.runtime.plan.windows import Duration, WindowInfo, WindowStoreSettings, WindowTopic
from holdfast.sql.literals.duration import duration_text, span_text
from holdfast.sql.properties.with_clause import WithProperties
from holdfast.sql.syntax import statements as sql

BEYOND_SIZE = timedelta(days=1)
"""How much longer than its size a window is retained without RETENTION."""


def window_store_of(statement: sql.CreateSource, with_: WithProperties) -> WindowStoreSettings | None:
    """The window store of a table over a topic; None for a stream, and for a topic without windows."""
    if statement.kind is sql.ObjectKind.STREAM:
        _refuse_for_stream(statement, with_)
        return None
    if with_.window is None:
        _refuse_without_windows(with_)
        return None
    retention = with_.retention or default_retention(with_.window)
    _check_retention(statement.name.text, with_.window, retention, with_)
    return WindowStoreSettings(topic=with_.window_topic or WindowTopic.TOPIC, retention=retention)


def default_retention(window: WindowInfo) -> Duration:
    """The size of the window, of a session zero, and a day."""
    size = value_of(window.size)
    return Duration.of(BEYOND_SIZE if size is None else size.timedelta + BEYOND_SIZE)


def _check_retention(name: str, window: WindowInfo, retention: Duration, with_: WithProperties) -> None:
    size = value_of(window.size)
    if size is not None and retention.millis < size.millis:
        raise BindError(
            f'the retention of "{name}" must be no smaller than its window size',
            detail=f"Got size={duration_text(size.millis)}, retention={duration_text(retention.millis)}. "
            "A window would be dropped while rows still belong to it.",
            hint=f"Write RETENTION='{span_text(size.millis)}' or more, or leave it out.",
            position=with_.position("RETENTION"),
        )


def _refuse_for_stream(statement: sql.CreateSource, with_: WithProperties) -> None:
    stream = statement.name.text
    if with_.retention is not None:
        raise BindError(
            f'"{stream}" is a stream and retains no windows',
            detail="A stream has the records of its topic; how long they are retained is a setting of the topic.",
            hint="Leave RETENTION out, or write CREATE TABLE.",
            position=with_.position("RETENTION"),
        )
    if with_.window_topic is not None:
        raise BindError(
            f'"{stream}" is a stream and cannot have a WINDOW_TOPIC',
            detail="A changelog has the latest value of each window, which makes a table.",
            hint="Leave WINDOW_TOPIC out, or write CREATE TABLE.",
            position=with_.position("WINDOW_TOPIC"),
        )


def _refuse_without_windows(with_: WithProperties) -> None:
    if with_.retention is not None:
        raise BindError(
            "RETENTION needs WINDOW_TYPE",
            detail="A topic that is not windowed has no windows to retain.",
            hint="To make windows of its records, declare a stream over it and group that with WINDOW. "
            "For how long a table's history can be read, write RETAIN_HISTORY.",
            position=with_.position("RETENTION"),
        )
    if with_.window_topic is not None:
        raise BindError(
            "WINDOW_TOPIC needs WINDOW_TYPE",
            detail="It is the layout of windowed keys.",
            hint="Add WINDOW_TYPE, or leave WINDOW_TOPIC out.",
            position=with_.position("WINDOW_TOPIC"),
        )


def stream_notice(name: str, window: WindowInfo | None) -> tuple[str, ...]:
    """What a stream over a windowed topic lacks, as a notice of its CREATE."""
    if window is None:
        return ()
    return (
        f"The windows of stream {show(name)} have no retention: tables created from it retain them forever. "
        "For the topic's windows with their retention, create a table with WINDOW_TYPE.",
    )
