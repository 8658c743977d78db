"""The intervals of the coordinator, which tests replace."""

from dataclasses import dataclass

WINDOW_MS = 1_000
"""How far since trails upper, unless RETAIN HISTORY says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """In seconds, where the name does not say otherwise."""

    poll: float = 0.05
    """How long a round waits for records."""
    retry: float = 1.0
    """The pause after a failed round."""
    topic_check: float = 2.0
    """Between two checks of the topics: new partitions, deleted and recreated topics."""
    pressure_check: float = 1.0
    """Between two checks of how much is pending in the outboxes."""
    settle: float = 0.25
    """After a change of the catalog, before backfills start: statements of a script then share their slices."""
    replay: float = 0.5
    """How long short backfill slices run before the next tick: replay has to be faster than the present."""
    compaction: float = 0.5
    compaction_rows: int = 50_000
    """Rows of history that one round of compaction drops at most."""
    window_ms: int = WINDOW_MS
