"""How far a query is.

A running query rides with the remap and has no positions of its own. One that is catching up, or has failed, keeps
where it is. Which of both it is lies with its positions, so that it changes in the commit that makes it true.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.names import TopicName
from holdfast.runtime.store.port import Moved, Position

FLAG = TopicName("")
"""Kafka has no topic without a name: under it a query's positions say whether it rides."""


class Status(StrEnum):
    """What a query is doing."""

    BUILDING = "BUILDING"
    RUNNING = "RUNNING"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` is the part of its backfill that a building query has behind it; `reason` why one has failed."""

    status: Status
    done: float = 0.0
    reason: str | None = None


def riding() -> Moved:
    return Moved(FLAG, 0, 1)


def own() -> Moved:
    return Moved(FLAG, 0, 0)


def is_riding(positions: Sequence[Position]) -> bool:
    return any(p.topic == FLAG and p.offset == 1 for p in positions)


def read_ends(positions: Sequence[Position]) -> dict[tuple[TopicName, int], int]:
    """The offsets that a query has read up to."""
    return {(p.topic, p.partition): p.offset for p in positions if p.topic != FLAG}
