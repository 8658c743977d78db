"""How far a query is.

A running query rides with the remap and has no positions of its own. One that is catching up, or has failed, keeps
where it is. Which of both it is lies with its positions, so that it changes in the commit that makes it true.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from holdfast.names import TopicName
from holdfast.runtime.store.port import Moved, Position, Time

FLAG = TopicName("")
"""Kafka has no topic without a name: under it a query's positions say whether it rides."""
PLACE, REPLAYED = 0, 1
"""What its partitions tell: the `Place`, and up to which time the inputs' history was replayed."""


class Status(StrEnum):
    """What a query is doing."""

    BUILDING = "BUILDING"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    ERROR = "ERROR"
    INCOMPATIBLE = "INCOMPATIBLE"
    """Its plan cannot be built by this release; one that can will run it, from where it is."""


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` is the part of its backfill that a building query has behind it; `reason` why one has failed."""

    status: Status
    done: float = 0.0
    reason: str | None = None


class Place(IntEnum):
    """Where a query is, as its positions say under `FLAG`."""

    OWN = 0
    """At its own positions."""
    RIDING = 1
    """With the remap."""
    LOST = 2
    """Nowhere: it failed on rows of another query, which are not kept, and has to be built anew."""

    def mark(self) -> Moved:
        return Moved(FLAG, PLACE, int(self))


def place_of(positions: Sequence[Position]) -> Place:
    return next((Place(p.offset) for p in positions if p.topic == FLAG and p.partition == PLACE), Place.OWN)


def replayed(upto: Time) -> Moved:
    """That a query has the changes of its inputs up to a time of the past."""
    return Moved(FLAG, REPLAYED, upto)


def replayed_upto(positions: Sequence[Position]) -> Time | None:
    return next((Time(p.offset) for p in positions if p.topic == FLAG and p.partition == REPLAYED), None)


def read_ends(positions: Sequence[Position]) -> dict[tuple[TopicName, int], int]:
    """The offsets that a query has read up to."""
    return {(p.topic, p.partition): p.offset for p in positions if p.topic != FLAG}
