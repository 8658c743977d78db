"""The bound form of a statement that has nothing to do."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BoundNothing:
    """A statement without effect, such as DROP … IF EXISTS of a missing object; `notice` says why."""

    notice: str
